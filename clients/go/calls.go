package postbote

import (
	"context"
	"sync"
	"time"
)

// callsMax is how many single calls a client may have under way, as many as a stream has pairs by default; a stream
// takes more at less cost.
const callsMax = 16_384

// calls are the single calls in progress. Each is retried as retry.go says, until its context or Close gives it up.
//
// An error describes all attempts of a call: if an earlier attempt may have been carried out, IsOutcomeUnknown is set
// whatever the last attempt failed with.
type calls struct {
	options    *Options
	connection *connection

	mu       sync.Mutex
	underWay map[*underWay]struct{}
	isClosed bool
	// idle is closed once no call is in progress and none can come.
	idle chan struct{}
}

type underWay struct {
	cancel context.CancelFunc
	// isGivenUp says that Close has ended the call; calls.mu guards it.
	isGivenUp bool
}

func newCalls(options *Options, connection *connection) *calls {
	return &calls{
		options:    options,
		connection: connection,
		underWay:   map[*underWay]struct{}{},
		idle:       make(chan struct{}),
	}
}

// run makes attempts of a call until one succeeds or no retry is left. It returns the body of the response.
func (c *calls) run(ctx context.Context, of *call, isRepeatable bool) ([]byte, *Error) {
	if err := ctx.Err(); err != nil {
		return nil, givenUp(CodeAborted, false, err)
	}
	callContext, cancel := context.WithCancel(ctx)
	defer cancel()
	mine := &underWay{cancel: cancel}
	if err := c.add(mine); err != nil {
		return nil, err
	}
	defer c.remove(mine)
	isOutcomeUnknown := false
	for attempt := 1; ; attempt++ {
		text, err := c.attempt(callContext, of)
		if err == nil {
			return text, nil
		}
		isOutcomeUnknown = isOutcomeUnknown || err.IsOutcomeUnknown
		if ended := c.ended(ctx, mine, isOutcomeUnknown); ended != nil {
			return nil, ended
		}
		failed := failedAttempt{err, attempt, isRepeatable, c.connection.unreached()}
		delay, isRetried := failed.retryDelay(c.options)
		if !isRetried {
			if isOutcomeUnknown {
				return nil, withUnknownOutcome(err)
			}
			return nil, err
		}
		if c.options.OnRetry != nil {
			c.options.OnRetry(Retry{Err: err, Attempt: attempt, Delay: delay})
		}
		sleep(callContext, delay)
		if ended := c.ended(ctx, mine, isOutcomeUnknown); ended != nil {
			return nil, ended
		}
	}
}

// attempt makes one attempt within the time limit.
func (c *calls) attempt(ctx context.Context, of *call) ([]byte, *Error) {
	attemptContext, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	text, isSent, err := c.connection.call(attemptContext, of)
	if err == nil || attemptContext.Err() == nil || err.Status != 0 {
		return text, err
	}
	ended := clientError(CodeTimeout, err)
	if ctx.Err() != nil {
		ended = clientError(CodeAborted, ctx.Err())
	}
	ended.IsOutcomeUnknown = isSent
	return nil, ended
}

// ended returns the error of a call that its context or Close has ended, and nil otherwise.
func (c *calls) ended(ctx context.Context, mine *underWay, isOutcomeUnknown bool) *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if mine.isGivenUp {
		return givenUp(CodeClosed, isOutcomeUnknown, nil)
	}
	if err := ctx.Err(); err != nil {
		return givenUp(CodeAborted, isOutcomeUnknown, err)
	}
	return nil
}

func (c *calls) add(mine *underWay) *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed {
		return clientError(CodeClosed, nil)
	}
	if len(c.underWay) >= callsMax {
		return clientError(CodeTooManyUnderWay, nil)
	}
	c.underWay[mine] = struct{}{}
	return nil
}

func (c *calls) remove(mine *underWay) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.underWay, mine)
	if c.isClosed && len(c.underWay) == 0 {
		close(c.idle)
	}
}

// close accepts no more calls and waits for those in progress. Those without a response when the context ends are given
// up with CLOSED.
func (c *calls) close(ctx context.Context) {
	c.mu.Lock()
	if !c.isClosed {
		c.isClosed = true
		if len(c.underWay) == 0 {
			close(c.idle)
		}
	}
	c.mu.Unlock()
	select {
	case <-c.idle:
		return
	case <-ctx.Done():
	}
	c.mu.Lock()
	for each := range c.underWay {
		each.isGivenUp = true
		each.cancel()
	}
	c.mu.Unlock()
	<-c.idle
}

// sleep returns after the delay, or when the context ends.
func sleep(ctx context.Context, delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
