package postbote

import (
	"errors"
	"net/http"
	"time"
)

// Error is what every failed call and push returns. It tells a producer two facts: whether the same push may succeed
// later (IsRetryable), and whether the update may have been stored although the push failed (IsOutcomeUnknown). No text
// of an Error contains the key.
type Error struct {
	// Code is a code of the server (docs/reference/errors.md), or one of the client's codes below.
	Code Code
	// Status is the HTTP status of the response, or the one that belongs to Code. It is 0 if there is none.
	Status int
	// RetryAfter is the server's Retry-After. It is 0 if the server sent none.
	RetryAfter time.Duration
	// IsOutcomeUnknown says that this attempt or an earlier one may have stored the update. A push with the same
	// idempotency key stores it only once.
	IsOutcomeUnknown bool

	message string
	cause   error
}

// Code names the reason of an Error. Codes are stable.
type Code string

// The codes that only the client uses.
const (
	// CodeConnectionFailed: no connection could be made, or the TLS handshake failed. Nothing was sent.
	CodeConnectionFailed Code = "CONNECTION_FAILED"
	// CodeConnectionLost: the connection broke before the response was complete.
	CodeConnectionLost Code = "CONNECTION_LOST"
	// CodeTimeout: no response within Options.Timeout; in a stream, no result.
	CodeTimeout Code = "TIMEOUT"
	// CodeAborted: the context of the call ended. Unwrap returns the reason.
	CodeAborted Code = "ABORTED"
	// CodeUnexpectedAnswer: the response is not from Postbote's private listener.
	CodeUnexpectedAnswer Code = "UNEXPECTED_ANSWER"
	// CodeTooManyUnderWay: 16,384 single calls are under way. Nothing was sent.
	CodeTooManyUnderWay Code = "TOO_MANY_UNDER_WAY"
	// CodeClosed: the client or the stream was closed, before the push or before its result.
	CodeClosed Code = "CLOSED"
)

type clientCode struct {
	message          string
	isRetryable      bool
	isOutcomeUnknown bool
}

var clientCodes = map[Code]clientCode{
	CodeConnectionFailed: {"the client could not connect to the server, and nothing was sent", true, false},
	CodeConnectionLost:   {"the connection broke before the response was complete", true, true},
	CodeTimeout:          {"the response did not arrive within the timeout", true, true},
	CodeAborted:          {"the context ended before the response arrived", false, true},
	CodeUnexpectedAnswer: {"expected a response of Postbote: another server may use this address", false, true},
	CodeTooManyUnderWay:  {"too many calls are under way, and nothing was sent: use a stream", false, false},
	CodeClosed:           {"the client or the stream was closed before anything was sent", false, false},
}

// serverCode is what the client knows of a code of the server; tables.go has all of them.
type serverCode struct {
	status int
	// storesNothing says that also a response with a status of 5xx guarantees that nothing was stored.
	storesNothing bool
}

// Error returns the code and the text.
func (e *Error) Error() string {
	return "postbote: " + string(e.Code) + ": " + e.message
}

// Unwrap returns the underlying error, if there is one: that of the context of an ABORTED, or of the network.
func (e *Error) Unwrap() error {
	return e.cause
}

// Message returns the text without the code: the server's, if it sent one.
func (e *Error) Message() string {
	return e.message
}

// IsRetryable says that the same push may succeed later. The client itself has stopped retrying by then.
func (e *Error) IsRetryable() bool {
	if clientCodes[e.Code].isRetryable {
		return true
	}
	return e.Status == http.StatusTooManyRequests ||
		(e.Status >= 500 && e.Status != http.StatusInsufficientStorage)
}

// CodeOf returns the code of the Error in the chain of err, or "" if there is none.
func CodeOf(err error) Code {
	var of *Error
	if errors.As(err, &of) {
		return of.Code
	}
	return ""
}

// newError returns an error with what its code implies. An empty message becomes that of the code, and a status of 0
// the one of the code.
func newError(code Code, message string, status int, cause error) *Error {
	server, isServers := serverCodes[code]
	kind := clientCodes[code]
	if status == 0 {
		status = server.status
	}
	if message == "" {
		message = kind.message
	}
	if message == "" {
		message = "the server sent no text"
	}
	isOutcomeUnknown := kind.isOutcomeUnknown && (status < 400 || status >= 500)
	if isServers {
		isOutcomeUnknown = status >= 500 && !server.storesNothing
	}
	return &Error{Code: code, Status: status, IsOutcomeUnknown: isOutcomeUnknown, message: message, cause: cause}
}

// clientError returns an error with one of the client's codes and its text.
func clientError(code Code, cause error) *Error {
	return newError(code, "", 0, cause)
}

// withUnknownOutcome returns the error of a push of which an earlier attempt may have stored the update.
func withUnknownOutcome(of *Error) *Error {
	if of.IsOutcomeUnknown {
		return of
	}
	copied := *of
	copied.IsOutcomeUnknown = true
	return &copied
}

// givenUp returns the error of a call that its context (ABORTED) or Close (CLOSED) ended.
func givenUp(code Code, isOutcomeUnknown bool, cause error) *Error {
	what := "the client or the stream was closed"
	if code == CodeAborted {
		what = "the context ended"
	}
	when := " before anything was sent"
	if isOutcomeUnknown {
		when = " before the response arrived"
	}
	of := newError(code, what+when, 0, cause)
	of.IsOutcomeUnknown = isOutcomeUnknown
	return of
}
