package postbote

import (
	"context"
	"sync"
	"time"
)

// pieceBytes is about how much is written at a time, which is what a worker of the server reads at a time.
const pieceBytes = 64 << 10

// Stream is many pushes over one connection, each with its own result. It is safe for use by many goroutines at a time.
//
//	push --> unsent --take--> sent --result--> settled
//	           ^  ^             |  `--503-----> held --after a delay--> unsent
//	           |  `--broken-----'                 ^
//	           `--pairs of a queue that has held pairs
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

	mu     sync.Mutex
	unsent []*Pending
	// sent is in the order in which their results arrive.
	sent []*Pending
	held heldPairs
	// waiting are the calls of Push that wait for room, in the order in which they came.
	waiting []*waiter
	// pairs and bytes are those of all pushes without a result.
	pairs, bytes int
	pushes       uint64
	request      *streamRequest
	// results is the number of results of the current request.
	results int
	// failures is the number of requests in a row that ended without a result.
	failures int
	// reopening runs from a failed request to the next one.
	reopening *time.Timer
	// silence runs while pairs wait for their results, and progressed is when the last of them came.
	silence    *time.Timer
	progressed time.Time
	isClosed   bool
	// over is closed when the stream is closed, every push has its result, and the request has ended.
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
	return &Stream{client: client, bounds: bounds, held: heldPairs{}, over: make(chan struct{})}
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

// Close accepts no more pushes. It returns when every push has its result and the connection is closed. Pushes without a
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
	s.unsent = append(s.unsent, pair)
	s.schedule()
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

// schedule has the unsent pairs sent.
func (s *Stream) schedule() {
	if s.request != nil {
		s.request.wake()
	} else if s.reopening == nil && len(s.unsent) > 0 {
		s.open()
	}
}

func (s *Stream) open() {
	s.results = 0
	request := newStreamRequest(s)
	s.request = request
	go func() { s.onEnd(request.run()) }()
}

// take appends the next piece to what the request sends. From then on its pairs count as sent.
func (s *Stream) take(to []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	wereSent := len(s.sent) > 0
	end := len(to) + pieceBytes
	count := 0
	for _, pair := range s.unsent {
		if len(to) >= end {
			break
		}
		s.unsent[count] = nil
		count++
		if s.held.holdIfQueueWaits(pair) {
			continue
		}
		to = append(to, pair.text...)
		s.sent = append(s.sent, pair)
	}
	s.unsent = s.unsent[count:]
	if !wereSent && len(s.sent) > 0 {
		s.expectResults()
	}
	return to
}

// expectResults notes that there was progress just now. The timer checks this when it has run, which costs less than
// setting it again for each result.
func (s *Stream) expectResults() {
	s.progressed = time.Now()
	if s.silence == nil {
		s.silence = time.AfterFunc(s.client.options.Timeout, s.onSilence)
	}
}

func (s *Stream) onSilence() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silence = nil
	if len(s.sent) == 0 || s.isOver {
		return
	}
	rest := s.client.options.Timeout - time.Since(s.progressed)
	if rest > 0 {
		s.silence = time.AfterFunc(rest, s.onSilence)
	} else if s.request != nil {
		s.request.destroy(clientError(CodeTimeout, nil))
	}
}

// lineOutcome is what a line of the response says.
type lineOutcome struct {
	result Result
	err    *Error
}

// settle matches outcomes to pairs: the server sends the results in the order of the pairs.
func (s *Stream) settle(outcomes []lineOutcome) {
	s.mu.Lock()
	defer s.unlockAndReport()
	s.failures = 0
	for _, of := range outcomes {
		if len(s.sent) == 0 {
			s.request.destroy(clientError(CodeUnexpectedAnswer, nil))
			break
		}
		pair := s.sent[0]
		s.sent[0] = nil
		s.sent = s.sent[1:]
		s.results++
		s.settleOne(pair, of)
	}
	if len(s.sent) > 0 {
		s.expectResults()
	}
	s.admitWaiting()
	s.finishIfDone()
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

// onDue sends the held pairs of a queue before all unsent ones, once they are due.
func (s *Stream) onDue(queue queue, of *lane) {
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
	s.unsent = append(of.pairs, s.unsent...)
	s.schedule()
}

// onEnd handles the end of a request, either a normal end by the server (nil) or an error.
func (s *Stream) onEnd(err *Error) {
	s.mu.Lock()
	defer s.unlockAndReport()
	s.request = nil
	s.takeBack(err)
	if len(s.unsent) > 0 {
		s.reopen(err)
	}
	s.admitWaiting()
	s.finishIfDone()
}

// takeBack puts the pairs without a result before all unsent ones. If the server ended its response normally, it stored
// none of them.
func (s *Stream) takeBack(err *Error) {
	isLost := err != nil && err.IsOutcomeUnknown
	var again []*Pending
	for _, pair := range s.sent {
		pair.mayBeStored = pair.mayBeStored || isLost
		if isLost && !pair.isRepeatable {
			s.fail(pair, err)
		} else {
			again = append(again, pair)
		}
	}
	s.sent = nil
	s.unsent = append(again, s.unsent...)
}

// reopen opens the next request, after a delay if the last one had no result.
func (s *Stream) reopen(ended *Error) {
	if ended == nil && s.results > 0 {
		s.schedule()
		return
	}
	if ended == nil {
		ended = clientError(CodeConnectionLost, nil)
	}
	s.failures++
	failed := failedAttempt{ended, s.failures, true, s.client.connection.unreached()}
	delay, isRetried := failed.retryDelay(s.client.options)
	if !isRetried {
		s.failures = 0
		pairs := append(s.held.clear(), s.unsent...)
		s.unsent = nil
		for _, pair := range pairs {
			s.fail(pair, ended)
		}
		return
	}
	s.retries = append(s.retries, Retry{Err: ended, Attempt: failed.attempt, Delay: delay})
	s.reopening = time.AfterFunc(delay, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.reopening = nil
		s.schedule()
	})
}

// giveUp fails all pushes that have no result.
func (s *Stream) giveUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reopening != nil {
		s.reopening.Stop()
		s.reopening = nil
	}
	for _, pair := range s.sent {
		pair.mayBeStored = true
	}
	pairs := append(append(s.sent, s.held.clear()...), s.unsent...)
	s.sent, s.unsent = nil, nil
	for _, pair := range pairs {
		s.fail(pair, givenUp(CodeClosed, pair.mayBeStored, nil))
	}
	if s.request != nil {
		s.request.destroy(clientError(CodeClosed, nil))
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

// finishIfDone ends the request of a closed stream without pairs, and then the stream.
func (s *Stream) finishIfDone() {
	if !s.isClosed || s.pairs > 0 || s.isOver {
		return
	}
	if s.request != nil {
		s.request.end()
		return
	}
	s.isOver = true
	if s.silence != nil {
		s.silence.Stop()
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
