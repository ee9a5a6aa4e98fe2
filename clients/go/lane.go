package postbote

import "time"

// lane is the part of a stream that has a request of its own, for the shards of one worker of the server.
//
//	unsent --take--> sent --result--> settled
//	  ^               |
//	  `----broken-----'
//
// Stream.mu guards all fields.
type lane struct {
	stream *Stream
	place  lanePlace
	unsent []*Pending
	// sent is in the order in which their results arrive.
	sent    []*Pending
	request *streamRequest
	// mustLook says that the shards are looked at before the next request.
	mustLook bool
	// results is the number of results of the current request.
	results int
	// failures is the number of requests in a row that ended without a result.
	failures int
	// reopening runs from a failed request to the next one.
	reopening *time.Timer
	// silence runs while pairs wait for their results, and progressed is when the last of them came.
	silence    *time.Timer
	progressed time.Time
	// isRetired says that the stream has other lanes now, and only the end of the request is to come.
	isRetired bool
}

// schedule has the unsent pairs sent.
func (l *lane) schedule() {
	if l.request != nil {
		l.request.wake()
	} else if l.reopening == nil && len(l.unsent) > 0 {
		l.open()
	}
}

func (l *lane) open() {
	l.results = 0
	request := newStreamRequest(l)
	l.request = request
	l.stream.requests[request] = struct{}{}
	mustLook := l.mustLook
	go func() { l.onEnd(l.exchange(request, mustLook)) }()
}

// exchange returns when the request is over, or was not made because the stream has other lanes now.
func (l *lane) exchange(request *streamRequest, mustLook bool) *Error {
	defer request.cancel()
	if mustLook {
		if err := l.stream.client.shards.look(request.dialing); err != nil {
			return err
		}
		if !l.isUsed() {
			return nil
		}
	}
	return request.run()
}

// isUsed follows the map of shards and says whether the lane goes on.
func (l *lane) isUsed() bool {
	l.stream.mu.Lock()
	defer l.stream.mu.Unlock()
	l.stream.follow()
	return !l.stream.isDealing && !l.isRetired
}

// take appends the next piece to what the request sends. From then on its pairs count as sent.
func (l *lane) take(to []byte) []byte {
	l.stream.mu.Lock()
	defer l.stream.mu.Unlock()
	l.stream.follow()
	if l.stream.isDealing {
		return to
	}
	wereSent := len(l.sent) > 0
	end := len(to) + pieceBytes
	count := 0
	for _, pair := range l.unsent {
		if len(to) >= end {
			break
		}
		l.unsent[count] = nil
		count++
		if l.stream.held.holdIfQueueWaits(pair) {
			continue
		}
		to = append(to, pair.text...)
		l.sent = append(l.sent, pair)
	}
	l.unsent = l.unsent[count:]
	if !wereSent && len(l.sent) > 0 {
		l.expectProgress()
	}
	return to
}

// expectProgress notes that there was progress just now. The timer checks this when it has run, which costs less than
// setting it again for each result.
func (l *lane) expectProgress() {
	l.progressed = time.Now()
	if l.silence == nil {
		l.silence = time.AfterFunc(l.stream.client.options.Timeout, l.onSilence)
	}
}

func (l *lane) onSilence() {
	l.stream.mu.Lock()
	defer l.stream.mu.Unlock()
	l.silence = nil
	if (len(l.sent) == 0 && !l.isRetired) || l.stream.isOver {
		return
	}
	rest := l.stream.client.options.Timeout - time.Since(l.progressed)
	if rest > 0 {
		l.silence = time.AfterFunc(rest, l.onSilence)
	} else if l.request != nil {
		l.request.destroy(clientError(CodeTimeout, nil))
	}
}

// settle matches outcomes to pairs: the server sends the results in the order of the pairs.
func (l *lane) settle(outcomes []lineOutcome) {
	s := l.stream
	s.mu.Lock()
	defer s.unlockAndReport()
	l.failures = 0
	for _, of := range outcomes {
		if len(l.sent) == 0 {
			l.request.destroy(clientError(CodeUnexpectedAnswer, nil))
			break
		}
		pair := l.sent[0]
		l.sent[0] = nil
		l.sent = l.sent[1:]
		l.results++
		s.settleOne(pair, of)
	}
	if len(l.sent) > 0 {
		l.expectProgress()
	}
	s.proceed()
}

// onEnd handles the end of a request, either a normal end by the server (nil) or an error.
func (l *lane) onEnd(err *Error) {
	s := l.stream
	s.mu.Lock()
	defer s.unlockAndReport()
	delete(s.requests, l.request)
	l.request = nil
	l.mustLook = true
	l.takeBack(err)
	switch {
	case l.isRetired:
	case s.isDealing:
		if err != nil {
			l.failures++
		}
	case l.isHintRefused(err):
		s.client.shards.forget(s.plan)
		s.follow()
	case len(l.unsent) > 0:
		l.reopen(err)
	}
	s.proceed()
}

// isHintRefused says that the request may have been refused for good because of its hint, which an older server or a
// proxy does not know. What is wrong with the request without it shows when it is sent so.
func (l *lane) isHintRefused(err *Error) bool {
	return l.place.hint != noHint && err != nil && err.Status >= 400 && err.Status < 500 && !err.IsRetryable()
}

// takeBack puts the pairs without a result before all unsent ones. If the server ended its response normally, it stored
// none of them.
func (l *lane) takeBack(err *Error) {
	isLost := err != nil && err.IsOutcomeUnknown
	var again []*Pending
	for _, pair := range l.sent {
		pair.mayBeStored = pair.mayBeStored || isLost
		if isLost && !pair.isRepeatable {
			l.stream.fail(pair, err)
		} else {
			again = append(again, pair)
		}
	}
	l.sent = nil
	l.unsent = append(again, l.unsent...)
}

// reopen opens the next request, after a delay if the last one had no result.
func (l *lane) reopen(ended *Error) {
	s := l.stream
	if ended == nil && l.results > 0 {
		l.schedule()
		return
	}
	if ended == nil {
		ended = clientError(CodeConnectionLost, nil)
	}
	l.failures++
	failed := failedAttempt{ended, l.failures, true, l.place.node.unreached()}
	delay, isRetried := failed.retryDelay(s.client.options)
	if !isRetried {
		l.failures = 0
		pairs := append(s.held.clear(l.isFor), l.unsent...)
		l.unsent = nil
		for _, pair := range pairs {
			s.fail(pair, ended)
		}
		return
	}
	s.retries = append(s.retries, Retry{Err: ended, Attempt: failed.attempt, Delay: delay})
	l.reopening = time.AfterFunc(delay, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		l.reopening = nil
		if s.isDealing {
			s.dealIfSettled()
		} else {
			l.schedule()
		}
	})
}

// isFor says that a pair belongs to this lane.
func (l *lane) isFor(pair *Pending) bool {
	return l.stream.placeOf(pair.queue.botID) == l.place
}

// stopReopening stops the timer of the next request.
func (l *lane) stopReopening() {
	if l.reopening != nil {
		l.reopening.Stop()
		l.reopening = nil
	}
}

// retire ends a lane whose pairs go to other lanes. A server that does not end its response has as long for it as for a
// result.
func (l *lane) retire() {
	l.isRetired = true
	l.unsent = nil
	if l.request != nil {
		l.request.end()
		l.expectProgress()
	}
}
