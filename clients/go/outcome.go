package postbote

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"time"
)

// answer is the JSON of any response of the private API that the client reads, and of a line of a stream.
type answer struct {
	UpdateID  *float64 `json:"update_id"`
	Duplicate any      `json:"duplicate"`
	Filtered  any      `json:"filtered"`
	Error     *struct {
		Code    string `json:"code"`
		Message any    `json:"message"`
	} `json:"error"`
}

var wellFormedCode = regexp.MustCompile(`^\w{1,64}$`)

// answerIn reads JSON. Of a text that is not an answer, it returns one without any field.
func answerIn(text []byte) answer {
	var of answer
	if json.Unmarshal(text, &of) != nil {
		return answer{}
	}
	return of
}

// code returns the server's code and text, or "" if there is no well-formed error.
func (a *answer) code() (Code, string) {
	if a.Error == nil || !wellFormedCode.MatchString(a.Error.Code) {
		return "", ""
	}
	message, _ := a.Error.Message.(string)
	return Code(a.Error.Code), message
}

// pushOutcome interprets the response to a push, or a line of a stream without its end.
func pushOutcome(text []byte) (Result, *Error) {
	if result, isUsual := usualResult(text); isUsual {
		return result, nil
	}
	of := answerIn(text)
	if id := of.UpdateID; id != nil && *id == math.Trunc(*id) && math.Abs(*id) < 1<<53 {
		return Result{UpdateID: int64(*id), IsDuplicate: of.Duplicate == true}, nil
	}
	if of.Filtered == true {
		return Result{IsFiltered: true}, nil
	}
	code, message := of.code()
	if _, isKnown := serverCodes[code]; !isKnown {
		got := "something else"
		if code != "" {
			got = "code " + string(code)
		}
		return Result{}, newError(CodeUnexpectedAnswer, "expected the result of a push, got "+got, 0, nil)
	}
	return Result{}, newError(code, message, 0, nil)
}

// usualResult reads the text that nearly every push gets, in a tenth of the time that encoding/json takes.
func usualResult(text []byte) (Result, bool) {
	const head, duplicate = `{"update_id":`, `,"duplicate":true`
	if len(text) < len(head)+2 || string(text[:len(head)]) != head || text[len(text)-1] != '}' {
		return Result{}, false
	}
	digits := text[len(head) : len(text)-1]
	isDuplicate := bytes.HasSuffix(digits, []byte(duplicate))
	if isDuplicate {
		digits = digits[:len(digits)-len(duplicate)]
	}
	if len(digits) == 0 || len(digits) > 15 {
		return Result{}, false
	}
	id := int64(0)
	for _, digit := range digits {
		if digit < '0' || digit > '9' {
			return Result{}, false
		}
		id = 10*id + int64(digit-'0')
	}
	return Result{UpdateID: id, IsDuplicate: isDuplicate}, true
}

// responseError converts a response with a status other than 200 into an error, with the server's code, or
// UNEXPECTED_ANSWER if the body has no code that Postbote knows.
func responseError(status int, header http.Header, text []byte) *Error {
	of := answerIn(text)
	code, message := of.code()
	if _, isKnown := serverCodes[code]; !isKnown {
		shown := fmt.Sprintf("status %d", status)
		if code != "" {
			shown += ", code " + string(code)
		} else if status == http.StatusNotFound {
			// The public listener responds with this to a path that it does not have.
			shown += ": expected URL to be the address of the private listener"
		}
		code, message = CodeUnexpectedAnswer, "expected a response of Postbote, got "+shown
	}
	err := newError(code, message, status, nil)
	err.RetryAfter = retryAfterIn(header)
	return err
}

// retryAfterIn returns the time of the header Retry-After, or 0 if it is no number of seconds.
func retryAfterIn(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	seconds, err := strconv.ParseUint(text, 10, 31)
	if err != nil || len(text) > 9 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}
