package postbote

import (
	"context"
	"sort"
	"sync"
	"time"
)

// pieceBytes is about how much is written at a time, which is what a worker of the server reads at a time.
const pieceBytes = 64 << 10

// Stream is many pushes over a few connections, each push with its own result. It is safe for use by many goroutines at
// a time.
//
//	push --> lane of the bot: unsent --take--> sent --result--> settled
//	                 ^          ^                |  `--503--> held --after a delay--> unsent
//	                 |          `-----broken-----'             ^
//	                 `------another map of shards              `--pairs of a queue that has held pairs
//
// There is a lane, with a connection, for each worker of the server that has shards, so that no pair needs to be handed
// on within the server. A server that does not say where its shards are has one lane, and so has one with a single
// worker. A bot changes its lane only when all pairs that were sent have their results.
//
// A request lasts until the server ends it (a reload, ten idle minutes) or the connection breaks. Pairs without a result
// are then sent again in the next request, in the same order and with the same keys, so none is lost or stored twice. A
// request is opened only when there is a pair to send.
//
// Order: the updates of a queue are stored in the order of their pushes, also across broken connections. The exception
// is a pair that the server refused temporarily: it is stored after the pairs of its queue that were already sent. A
// producer that cannot accept this waits for each result before the next push of the same chat.
type Stream struct {
	client *Client
	bounds StreamOptions

	mu sync.Mutex
	// lanes are by where their requests are sent, as plan says.
	lanes map[lanePlace]*lane
	plan  *shardMap
	slots slotMemory
	// isDealing says that the lanes have pairs of another plan, and send no more until all have their results.
	isDealing bool
	// undealt are the pairs that came in the meantime.
	undealt []*Pending
	held    heldPairs
	// waiting are the calls of Push that wait for room, in the order in which they came.
	waiting []*waiter
	// pairs and bytes are those of all pushes without a result.
	pairs, bytes int
	pushes       uint64
	// requests are those under way.
	requests map[*streamRequest]struct{}
	isClosed bool
	// over is closed when the stream is closed, every push has its result, and all requests have ended.
	over   chan struct{}
	isOver bool
	// retries are those to report once mu is free, because OnRetry may push.
	retries []Retry
}

// waiter is a call of Push that waits for room.
type waiter struct {
	pair *Pending
	// decided is closed when the pair was admitted, or refused with err.
	decided chan struct{}
	err     *Error
}

func newStream(client *Client, bounds StreamOptions) *Stream {
	s := &Stream{
		client:   client,
		bounds:   bounds,
		lanes:    map[lanePlace]*lane{},
		plan:     client.shards.none,
		slots:    slotMemory{},
		held:     heldPairs{},
		requests: map[*streamRequest]struct{}{},
		over:     make(chan struct{}),
	}
	// The first pair finds this lane, whose first request waits for a look at the shards.
	s.lane(s.placeOf(0)).mustLook = true
	return s
}

// PairsInFlight returns the number of pushes that have no result yet.
func (s *Stream) PairsInFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pairs
}

// BytesInFlight returns the bytes of the pushes that have no result yet, with their header lines.
func (s *Stream) BytesInFlight() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}

// Push pushes one update. It waits while the bounds of the stream are reached, but not for a result: Pending.Wait
// returns that. The context ends only the wait for room.
//
// Codes: CLOSED after Close, ABORTED if the context ended before there was room, BAD_REQUEST for an option that cannot
// be used, BAD_UPDATE. In each of these cases nothing was sent.
func (s *Stream) Push(ctx context.Context, item Item) (*Pending, error) {
	if err := ctx.Err(); err != nil {
		return nil, givenUp(CodeAborted, false, err)
	}
	key := s.client.keyOf(&item)
	text, err := item.appendPair(nil, key)
	if err != nil {
		return nil, err
	}
	pair := &Pending{done: make(chan struct{}), queue: item.queue(), text: text, isRepeatable: key != ""}
	mine := s.admitOrQueue(pair)
	if mine == nil {
		return pair, nil
	}
	select {
	case <-mine.decided:
	case <-ctx.Done():
		s.leave(mine, givenUp(CodeAborted, false, ctx.Err()))
	}
	if mine.err != nil {
		return nil, mine.err
	}
	return pair, nil
}

// Close accepts no more pushes. It returns when every push has its result and its connections are closed. Pushes without a
// result when the context ends fail with CLOSED, and IsOutcomeUnknown is set if they were sent. A context without a
// deadline ends after Options.Timeout.
func (s *Stream) Close(ctx context.Context) {
	ctx, cancel := s.client.closing(ctx)
	defer cancel()
	s.mu.Lock()
	s.isClosed = true
	for _, each := range s.waiting {
		each.decide(clientError(CodeClosed, nil))
	}
	s.waiting = nil
	s.finishIfDone()
	s.mu.Unlock()
	select {
	case <-s.over:
	case <-ctx.Done():
		s.giveUp()
		<-s.over
	}
	s.client.removeStream(s)
}

// admitOrQueue takes the pair if there is room. Otherwise, it returns what the caller waits for.
func (s *Stream) admitOrQueue(pair *Pending) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isClosed && len(s.waiting) == 0 && s.hasRoom() {
		s.admit(pair)
		return nil
	}
	mine := &waiter{pair: pair, decided: make(chan struct{})}
	if s.isClosed {
		mine.decide(clientError(CodeClosed, nil))
	} else {
		s.waiting = append(s.waiting, mine)
	}
	return mine
}

// leave refuses a waiting call, unless it was decided in the meantime.
func (s *Stream) leave(mine *waiter, err *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for at, each := range s.waiting {
		if each == mine {
			s.waiting = append(s.waiting[:at:at], s.waiting[at+1:]...)
			mine.decide(err)
			return
		}
	}
}

func (w *waiter) decide(err *Error) {
	w.err = err
	close(w.decided)
}

func (s *Stream) hasRoom() bool {
	return s.pairs < s.bounds.PairsMax && s.bytes < s.bounds.BytesMax
}

func (s *Stream) admit(pair *Pending) {
	pair.nth = s.pushes
	s.pushes++
	s.pairs++
	s.bytes += len(pair.text)
	if s.isDealing {
		s.undealt = append(s.undealt, pair)
		return
	}
	of := s.laneOf(pair)
	of.unsent = append(of.unsent, pair)
	of.schedule()
}

func (s *Stream) laneOf(pair *Pending) *lane {
	return s.lane(s.placeOf(pair.queue.botID))
}

func (s *Stream) placeOf(botID int64) lanePlace {
	return s.plan.place(botID, s.slots)
}

// lane returns the lane of a place. It connects with its first pair.
func (s *Stream) lane(place lanePlace) *lane {
	of := s.lanes[place]
	if of == nil {
		of = &lane{stream: s, place: place}
		s.lanes[place] = of
	}
	return of
}

// follow has the pairs dealt anew if the map of shards is another one. Until then, the server ends each request when it
// has sent its results.
func (s *Stream) follow() {
	latest := s.client.shards.latest()
	if latest == s.plan {
		return
	}
	isFirst := !s.isDealing
	s.plan, s.isDealing = latest, true
	if !isFirst {
		return
	}
	for _, each := range s.lanes {
		if each.request != nil {
			each.request.end()
		}
	}
	s.dealIfSettled()
}

// dealIfSettled deals the unsent pairs to new lanes once all that were sent have their results, so that no pair
// overtakes one of its bot. It waits for delays, too: the server may have asked for them.
func (s *Stream) dealIfSettled() {
	if !s.isDealing {
		return
	}
	for _, each := range s.lanes {
		if len(each.sent) > 0 || each.reopening != nil {
			return
		}
	}
	pairs, failures := s.undealt, 0
	for _, each := range s.lanes {
		pairs = append(pairs, each.unsent...)
		// Otherwise a server that changes its map each time would be tried for ever.
		if each.failures > failures {
			failures = each.failures
		}
		each.retire()
	}
	sort.Slice(pairs, func(a, b int) bool { return pairs[a].nth < pairs[b].nth })
	s.isDealing, s.undealt, s.lanes = false, nil, map[lanePlace]*lane{}
	for _, pair := range pairs {
		of := s.laneOf(pair)
		of.failures = failures
		of.unsent = append(of.unsent, pair)
	}
	for _, each := range s.lanes {
		each.schedule()
	}
}

// proceed does what results and ends of requests have made possible.
func (s *Stream) proceed() {
	s.dealIfSettled()
	s.admitWaiting()
	s.finishIfDone()
}

// admitWaiting admits as many waiting calls as there is room for.
func (s *Stream) admitWaiting() {
	for len(s.waiting) > 0 && s.hasRoom() {
		first := s.waiting[0]
		s.waiting[0] = nil
		s.waiting = s.waiting[1:]
		s.admit(first.pair)
		first.decide(nil)
	}
}

// lineOutcome is what a line of the response says.
type lineOutcome struct {
	result Result
	err    *Error
}

func (s *Stream) settleOne(pair *Pending, of lineOutcome) {
	if of.err == nil {
		s.finish(pair, of.result, nil)
		return
	}
	pair.refusals++
	pair.mayBeStored = pair.mayBeStored || of.err.IsOutcomeUnknown
	failed := failedAttempt{err: of.err, attempt: pair.refusals, isRepeatable: pair.isRepeatable, unreached: -1}
	delay, isRetried := failed.retryDelay(s.client.options)
	if !isRetried {
		s.fail(pair, of.err)
		return
	}
	s.retries = append(s.retries, Retry{of.err, pair.refusals, delay, pair.queue.botID})
	s.held.hold(pair, delay, s.onDue)
}

// onDue sends the held pairs of a queue before all unsent ones of their lane, once they are due.
func (s *Stream) onDue(queue queue, of *heldQueue) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.held[queue] != of {
		return
	}
	if rest := time.Until(of.due); rest > 0 {
		of.timer.Reset(rest)
		return
	}
	delete(s.held, queue)
	if s.isDealing {
		s.undealt = append(s.undealt, of.pairs...)
		return
	}
	to := s.laneOf(of.pairs[0])
	to.unsent = append(of.pairs, to.unsent...)
	to.schedule()
}

// giveUp fails all pushes that have no result.
func (s *Stream) giveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	pairs := append(s.held.clear(func(*Pending) bool { return true }), s.undealt...)
	s.undealt = nil
	for _, each := range s.lanes {
		each.stopReopening()
		for _, pair := range each.sent {
			pair.mayBeStored = true
		}
		pairs = append(append(pairs, each.sent...), each.unsent...)
		each.sent, each.unsent = nil, nil
	}
	for _, pair := range pairs {
		s.fail(pair, givenUp(CodeClosed, pair.mayBeStored, nil))
	}
	for request := range s.requests {
		request.destroy(clientError(CodeClosed, nil))
	}
	s.finishIfDone()
}

func (s *Stream) fail(pair *Pending, err *Error) {
	if pair.mayBeStored {
		err = withUnknownOutcome(err)
	}
	s.finish(pair, Result{}, err)
}

func (s *Stream) finish(pair *Pending, result Result, err *Error) {
	s.pairs--
	s.bytes -= len(pair.text)
	pair.settle(result, err)
}

// finishIfDone ends the requests of a closed stream without pairs, and then the stream.
func (s *Stream) finishIfDone() {
	if !s.isClosed || s.pairs > 0 || s.isOver {
		return
	}
	for request := range s.requests {
		request.end()
	}
	if len(s.requests) > 0 {
		return
	}
	s.isOver = true
	for _, each := range s.lanes {
		if each.silence != nil {
			each.silence.Stop()
		}
	}
	close(s.over)
}

// unlockAndReport reports the retries of this turn.
func (s *Stream) unlockAndReport() {
	retries := s.retries
	s.retries = nil
	s.mu.Unlock()
	if onRetry := s.client.options.OnRetry; onRetry != nil {
		for _, each := range retries {
			onRetry(each)
		}
	}
}
