// Package postbote is the client for producers of Postbote: it pushes updates to bots and manages bots over the private
// API of a server or a cluster.
//
// It handles what a producer must do right: idempotency keys, repetitions, back-pressure and order. Every failed call
// and push is an *Error. A call is retried as long as that may help and cannot do anything twice.
package postbote

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// Client pushes updates and manages bots. It is safe for use by many goroutines at a time.
type Client struct {
	options    *Options
	connection *connection
	shards     *shardLooks
	calls      *calls
	random     *randomSource

	mu       sync.Mutex
	isClosed bool
	streams  map[*Stream]struct{}
}

// NewBot is what CreateBot registers.
type NewBot struct {
	// BotID is from 100 to 2^52 - 1. The server picks a free id if it is 0.
	BotID     int64  `json:"bot_id,omitempty"`
	FirstName string `json:"first_name"`
	Username  string `json:"username"`
	// Polls "take_over": a later getUpdates call ends the one that waits with an empty list, instead of 409.
	Polls string `json:"polls,omitempty"`
	// Token is one that another server has made; its bot has the id in it. Only a server with --foreign-tokens takes
	// one.
	Token string `json:"token,omitempty"`
}

// IssuedToken is a bot id with its new token.
type IssuedToken struct {
	BotID int64 `json:"bot_id"`
	// Token is the complete token, which the server shows only this once.
	Token string `json:"token"`
}

// BotState is the part of a bot's state that a producer needs; GET /v1/bots/:id returns more.
type BotState struct {
	BotID     int64  `json:"bot_id"`
	FirstName string `json:"first_name"`
	Username  string `json:"username"`
	// Mode is "polling" or "webhook".
	Mode string `json:"mode"`
	// PendingCount is how many updates the bot has not confirmed yet, or its webhook has not accepted yet.
	PendingCount int64 `json:"pending"`
}

// RotateOptions are the options of RotateToken.
type RotateOptions struct {
	// Overlap is a time in whole seconds for which the old token stays valid, at most a week. Default: not at all.
	Overlap time.Duration
	// Token is one that another server has made for this bot. Default: a new one.
	Token string
}

// New returns a client. It connects with the first call. The error names an option that cannot be used.
func New(options Options) (*Client, error) {
	complete, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	at, err := complete.place()
	if err != nil {
		return nil, err
	}
	nodePlaces, err := complete.nodePlaces()
	if err != nil {
		return nil, err
	}
	server := newConnection(complete, at)
	var nodes []*connection
	for _, each := range nodePlaces {
		nodes = append(nodes, newConnection(complete, each))
	}
	return &Client{
		options:    complete,
		connection: server,
		shards:     newShardLooks(complete, server, nodes),
		calls:      newCalls(complete, server),
		random:     newRandomSource(),
		streams:    map[*Stream]struct{}{},
	}, nil
}

// CreateBot registers a bot. A call that may have been carried out is not retried, because a retry could not return the
// token. Codes: BOT_EXISTS if the id is taken, BAD_REQUEST if the server rejects a field, or any code of a call.
func (c *Client) CreateBot(ctx context.Context, bot NewBot) (IssuedToken, error) {
	return c.token(ctx, "/v1/bots", bot)
}

// GetBot returns the names, the mode and the number of pending updates of a bot. Codes: UNKNOWN_BOT, or any code of a
// call.
func (c *Client) GetBot(ctx context.Context, botID int64) (BotState, error) {
	text, failed := c.calls.run(ctx, &call{method: "GET", path: botPath(botID)}, true)
	if failed != nil {
		return BotState{}, failed
	}
	var state BotState
	err := json.Unmarshal(text, &state)
	if err != nil || state.BotID == 0 || (state.Mode != "polling" && state.Mode != "webhook") {
		return BotState{}, clientError(CodeUnexpectedAnswer, err)
	}
	return state, nil
}

// RotateToken issues a new token for a bot. A call that may have been carried out is not retried. Codes: UNKNOWN_BOT,
// BAD_REQUEST for an overlap that cannot be used, or any code of a call.
func (c *Client) RotateToken(ctx context.Context, botID int64, options RotateOptions) (IssuedToken, error) {
	if options.Overlap%time.Second != 0 {
		return IssuedToken{}, badOption("Overlap: expected a whole number of seconds")
	}
	body := struct {
		Overlap int64  `json:"overlap"`
		Token   string `json:"token,omitempty"`
	}{int64(options.Overlap / time.Second), options.Token}
	return c.token(ctx, botPath(botID)+"/token", body)
}

// RemoveBot removes a bot with its queues. A call that may have been carried out is not retried, because the retry
// would fail with UNKNOWN_BOT. Codes: UNKNOWN_BOT, or any code of a call.
func (c *Client) RemoveBot(ctx context.Context, botID int64) error {
	if _, err := c.calls.run(ctx, &call{method: "DELETE", path: botPath(botID)}, false); err != nil {
		return err
	}
	return nil
}

// Push pushes one update and returns its result when it is synced to disk, or filtered because the bot does not want
// its type. The end of the context ends the wait: then IsOutcomeUnknown says whether the update may have been stored.
//
// Codes: BAD_REQUEST for an option that cannot be used, BAD_UPDATE, UPDATE_TOO_LARGE, UNKNOWN_BOT,
// IDEMPOTENCY_MISMATCH, TOO_MANY_KEYS, QUEUE_FULL, DISK_LOW, OUTCOME_UNKNOWN, or any code of a call.
func (c *Client) Push(ctx context.Context, item Item) (Result, error) {
	key := c.keyOf(&item)
	of, err := item.call(key)
	if err != nil {
		return Result{}, err
	}
	text, failed := c.calls.run(ctx, of, key != "")
	if failed != nil {
		return Result{}, failed
	}
	result, failed := pushOutcome(text)
	if failed != nil {
		return Result{}, c.connection.withoutKey(failed)
	}
	return result, nil
}

// OpenStream opens a stream: many pushes over a few connections, where no push waits for the result of another. It
// connects with its first push; close it when it is not used any more. Code: CLOSED if the client is closed. Another
// error names an option that cannot be used.
func (c *Client) OpenStream(options StreamOptions) (*Stream, error) {
	bounds, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isClosed {
		return nil, clientError(CodeClosed, nil)
	}
	stream := newStream(c, bounds)
	c.streams[stream] = struct{}{}
	return stream, nil
}

// Close accepts no more calls, waits for those in progress, and closes the connections. Calls and pushes without a
// result when the context ends fail with CLOSED, and IsOutcomeUnknown is set if they were sent. A context without a
// deadline ends after Options.Timeout.
func (c *Client) Close(ctx context.Context) {
	ctx, cancel := c.closing(ctx)
	defer cancel()
	c.mu.Lock()
	c.isClosed = true
	var ending sync.WaitGroup
	for stream := range c.streams {
		ending.Add(1)
		go func(stream *Stream) {
			defer ending.Done()
			stream.Close(ctx)
		}(stream)
	}
	c.mu.Unlock()
	c.calls.close(ctx)
	ending.Wait()
	c.shards.end()
	c.connection.close()
}

// closing returns the context of a Close, which always has a deadline.
func (c *Client) closing(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, hasDeadline := ctx.Deadline(); hasDeadline {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, c.options.Timeout)
}

func (c *Client) token(ctx context.Context, path string, body any) (IssuedToken, error) {
	// Numbers and texts can always be written.
	text, _ := json.Marshal(body)
	response, failed := c.calls.run(ctx, &call{method: "POST", path: path, body: text}, false)
	if failed != nil {
		return IssuedToken{}, failed
	}
	var issued IssuedToken
	if err := json.Unmarshal(response, &issued); err != nil || issued.BotID == 0 || issued.Token == "" {
		// The cause is left out: it could show a part of the token.
		return IssuedToken{}, clientError(CodeUnexpectedAnswer, nil)
	}
	return issued, nil
}

// keyOf returns the idempotency key of an item, or a random one, or "" if the client makes none.
func (c *Client) keyOf(item *Item) string {
	if item.IdempotencyKey != "" || c.options.WithoutIdempotencyKeys {
		return item.IdempotencyKey
	}
	return c.random.key()
}

func (c *Client) removeStream(stream *Stream) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.streams, stream)
}
