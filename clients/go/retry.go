package postbote

import (
	"math"
	"time"
)

// A longer Retry-After is reported to the caller instead of waited for: a caller expects its call to end within a minute
// or so.
const retryAfterMax = time.Minute

// failedAttempt is a failed attempt, as far as the retry depends on it.
type failedAttempt struct {
	err *Error
	// attempt is the number of attempts so far, from 1.
	attempt int
	// isRepeatable says that carrying out the call twice has the same effect as once.
	isRepeatable bool
	// unreached is how long the client has tried to reach the server; negative once it has reached it.
	unreached time.Duration
}

// retryDelay returns the time until the next attempt: a random part of a delay that doubles, and not before the
// server's Retry-After. The random part keeps producers that lost the same server from returning at the same moment.
// The second result is false if there is no retry.
func (f failedAttempt) retryDelay(options *Options) (time.Duration, bool) {
	if !f.err.IsRetryable() || f.attempt > options.Retries {
		return 0, false
	}
	if f.err.IsOutcomeUnknown && !f.isRepeatable {
		return 0, false
	}
	if f.err.RetryAfter > retryAfterMax {
		return 0, false
	}
	// It lasts until the end of the UTC day. Only the response to a single push tells how long that is.
	if f.err.Code == CodeTooManyKeys && f.err.RetryAfter == 0 {
		return 0, false
	}
	ceiling := math.Min(
		float64(options.RetryDelayMax),
		float64(options.RetryDelayMin)*math.Pow(2, float64(f.attempt-1)),
	)
	delay := f.err.RetryAfter + time.Duration(options.random()*ceiling)
	if f.unreached >= 0 && f.unreached+delay > firstContact {
		return 0, false
	}
	return delay, true
}
