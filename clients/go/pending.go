package postbote

import "context"

// Pending is a push of a stream that has its result later.
type Pending struct {
	done   chan struct{}
	result Result
	err    *Error

	// nth is the position in the order of pushes, from 0. Stream.mu guards this and all that follows.
	nth   uint64
	queue queue
	// text is both lines, each with its line end.
	text []byte
	// isRepeatable says that sending the pair again stores nothing twice, because it has an idempotency key.
	isRepeatable bool
	// refusals is how often the server refused the pair.
	refusals int
	// mayBeStored says that an earlier attempt may have stored the update.
	mayBeStored bool
}

// Done is closed when the push has its result. Then Wait returns at once.
func (p *Pending) Done() <-chan struct{} {
	return p.done
}

// Wait returns the result of the push, when its update is synced to disk or filtered. The end of the context ends only
// this wait: the push goes on.
//
// Codes: CLOSED after Close, BAD_UPDATE, UNKNOWN_BOT, QUEUE_FULL or any other code of docs/reference/errors.md, the last
// failure of the connection when the retries are used up (CONNECTION_FAILED, CONNECTION_LOST, TIMEOUT,
// UNEXPECTED_ANSWER), or ABORTED.
func (p *Pending) Wait(ctx context.Context) (Result, error) {
	select {
	case <-p.done:
		return p.outcome()
	default:
	}
	select {
	case <-p.done:
		return p.outcome()
	case <-ctx.Done():
		return Result{}, givenUp(CodeAborted, true, ctx.Err())
	}
}

// outcome returns the result after done is closed.
func (p *Pending) outcome() (Result, error) {
	if p.err != nil {
		return Result{}, p.err
	}
	return p.result, nil
}

// settle gives the push its result. The text is not needed any more, but the caller may keep the Pending for long.
func (p *Pending) settle(result Result, err *Error) {
	p.result, p.err, p.text = result, err, nil
	close(p.done)
}
