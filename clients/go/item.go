package postbote

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"
)

// Item is one update to push, with its options. An option with its zero value is left out.
type Item struct {
	// BotID is the bot that receives the update.
	BotID int64
	// Update is the update without its id: anything that encoding/json writes as an object with one of the update types
	// as its only key. A json.RawMessage or []byte is taken as JSON, without the white space around its tokens.
	Update any
	// OrderingKey: a webhook receives updates with the same key one after the other. Up to 256 bytes. Default: derived
	// from the update.
	OrderingKey string
	// TTL is a time in whole seconds after which the update is no longer delivered, up to a year. Default: depends on
	// the update type.
	TTL time.Duration
	// IsTest sends the update to the bot's /test/ queue.
	IsTest bool
	// Validate "telegram": the server refuses the update if it lacks a field that bot frameworks need. Default: not
	// checked.
	Validate string
	// IdempotencyKey: the server stores nothing if the same key was pushed for the same bot within 24 hours. 1 to 128
	// printable ASCII characters. Default: a random key for each push.
	IdempotencyKey string
	// Traceparent is the place of the producer in a trace (W3C Trace Context). The server must run with
	// --trace-context.
	Traceparent string
	// Tag is for the caller, who finds it again in the results of PushAll. The client does not use it.
	Tag any
}

// Result is the result of a push: the update is synced to disk under UpdateID, or was filtered.
type Result struct {
	// UpdateID is the id of the stored update, 0 if it was filtered.
	UpdateID int64
	// IsDuplicate says that the key was pushed before, possibly by an earlier attempt of the same push whose response
	// was lost.
	IsDuplicate bool
	// IsFiltered says that nothing was stored, because the bot does not want this type (allowed_updates).
	IsFiltered bool
}

// appendPair appends the two lines of a pair of a stream, with the fields in the order that the server parses fastest.
func (i *Item) appendPair(to []byte, key string) ([]byte, error) {
	if err := i.check(); err != nil {
		return nil, err
	}
	to = append(to, `{"bot_id":`...)
	to = strconv.AppendInt(to, i.BotID, 10)
	to = appendField(to, "ordering_key", i.OrderingKey)
	to = appendField(to, "idempotency_key", key)
	if i.TTL != 0 {
		to = append(to, `,"ttl":`...)
		to = strconv.AppendInt(to, int64(i.TTL/time.Second), 10)
	}
	if i.IsTest {
		to = append(to, `,"test":true`...)
	}
	to = appendField(to, "validate", i.Validate)
	to = appendField(to, "traceparent", i.Traceparent)
	to = append(to, "}\n"...)
	return appendJSON(to, i.Update)
}

// call returns the push as a single call: the idempotency key and the trace become headers, the other options query
// parameters.
func (i *Item) call(key string) (*call, error) {
	if err := i.check(); err != nil {
		return nil, err
	}
	query := url.Values{}
	if i.OrderingKey != "" {
		query.Set("ordering_key", i.OrderingKey)
	}
	if i.TTL != 0 {
		query.Set("ttl", strconv.FormatInt(int64(i.TTL/time.Second), 10))
	}
	if i.IsTest {
		query.Set("test", "true")
	}
	if i.Validate != "" {
		query.Set("validate", i.Validate)
	}
	body, err := appendJSON(nil, i.Update)
	if err != nil {
		return nil, err
	}
	path := botPath(i.BotID) + "/updates"
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	headers := map[string]string{}
	for _, each := range []struct{ option, header, text string }{
		{"IdempotencyKey", "idempotency-key", key},
		{"Traceparent", "traceparent", i.Traceparent},
	} {
		if each.text == "" {
			continue
		}
		if !isHeaderText(each.text) {
			return nil, badOption(each.option + ": expected printable ASCII characters without a space at either end")
		}
		headers[each.header] = each.text
	}
	return &call{method: "POST", path: path, body: body[:len(body)-1], headers: headers}, nil
}

// check refuses options that Go would write as something else than what they are. The server refuses all others.
func (i *Item) check() error {
	if i.TTL%time.Second != 0 {
		return badOption("TTL: expected a whole number of seconds")
	}
	switch {
	case !utf8.ValidString(i.OrderingKey):
		return badOption("OrderingKey: expected UTF-8")
	case !utf8.ValidString(i.IdempotencyKey):
		return badOption("IdempotencyKey: expected UTF-8")
	case !utf8.ValidString(i.Validate):
		return badOption("Validate: expected UTF-8")
	case !utf8.ValidString(i.Traceparent):
		return badOption("Traceparent: expected UTF-8")
	}
	return nil
}

// queue names the queue of the bot that the item is for.
func (i *Item) queue() queue {
	return queue{botID: i.BotID, isTest: i.IsTest}
}

type queue struct {
	botID  int64
	isTest bool
}

func botPath(botID int64) string {
	return "/v1/bots/" + strconv.FormatInt(botID, 10)
}

func badOption(message string) *Error {
	return newError(CodeBadRequest, message, 0, nil)
}

// appendField appends a field of the header of a pair, unless its text is empty.
func appendField(to []byte, name, text string) []byte {
	if text == "" {
		return to
	}
	to = append(to, `,"`...)
	to = append(to, name...)
	to = append(to, `":`...)
	if isPlain(text) {
		to = append(to, '"')
		to = append(to, text...)
		return append(to, '"')
	}
	// A string can always be written.
	quoted, _ := json.Marshal(text)
	return append(to, quoted...)
}

// appendJSON appends the update and a line end. The text has no other line end, because encoding/json compacts all JSON
// that it is given.
func appendJSON(to []byte, update any) ([]byte, error) {
	if raw, isBytes := update.([]byte); isBytes {
		update = json.RawMessage(raw)
	}
	buffer := bytes.NewBuffer(to)
	encoder := json.NewEncoder(buffer)
	// The update is stored byte for byte: "<" stays "<".
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(update); err != nil {
		message := "bad update: expected a value that encoding/json can write, and nothing was sent"
		return nil, newError(CodeBadUpdate, message, 0, err)
	}
	return buffer.Bytes(), nil
}

// isPlain says that a text is printable ASCII without a character that JSON escapes.
func isPlain(text string) bool {
	for at := 0; at < len(text); at++ {
		if c := text[at]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func isPrintable(text string) bool {
	for at := 0; at < len(text); at++ {
		if c := text[at]; c < ' ' || c > '~' {
			return false
		}
	}
	return true
}

// isHeaderText says that a text is the same as the value of a header: HTTP strips spaces from both ends.
func isHeaderText(text string) bool {
	return isPrintable(text) && text != "" && text[0] != ' ' && text[len(text)-1] != ' '
}
