// The driver of the client for Go (clients/conformance/README.md).
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"time"

	"postbote"
)

// beginTime is how long a push takes at most from the call to its first byte.
const beginTime = 50 * time.Millisecond

type job struct {
	Client struct {
		URL                string   `json:"url"`
		NodeURLs           []string `json:"nodeUrls"`
		Key                string   `json:"key"`
		TimeoutMs          int      `json:"timeoutMs"`
		Retries            *int     `json:"retries"`
		RetryDelayMsMin    int      `json:"retryDelayMsMin"`
		RetryDelayMsMax    int      `json:"retryDelayMsMax"`
		Connections        int      `json:"connections"`
		HasIdempotencyKeys *bool    `json:"hasIdempotencyKeys"`
	} `json:"client"`
	Stream struct {
		PairsMax int `json:"pairsMax"`
		BytesMax int `json:"bytesMax"`
	} `json:"stream"`
	Mode        string  `json:"mode"`
	Count       int     `json:"count"`
	Bots        []int64 `json:"bots"`
	Text        string  `json:"text"`
	Concurrency int     `json:"concurrency"`
	KeyPrefix   *string `json:"keyPrefix"`
	CloseMs     *int    `json:"closeMs"`
	Options     struct {
		OrderingKey string `json:"orderingKey"`
		TTLS        int    `json:"ttlS"`
		IsTest      bool   `json:"isTest"`
		Validate    string `json:"validate"`
		Traceparent string `json:"traceparent"`
	} `json:"options"`
	NewBot struct {
		BotID     int64  `json:"botId"`
		FirstName string `json:"firstName"`
		Username  string `json:"username"`
		Polls     string `json:"polls"`
		Token     string `json:"token"`
	} `json:"newBot"`
	Rotation struct {
		OverlapS int    `json:"overlapS"`
		Token    string `json:"token"`
	} `json:"rotation"`
}

type run struct {
	job         job
	client      *postbote.Client
	inFlightMax int
}

type object = map[string]any

func main() {
	// net/http logs a response that nobody asked for, besides closing its connection.
	log.SetOutput(io.Discard)
	out := newPrinter()
	jobs := bufio.NewScanner(os.Stdin)
	jobs.Buffer(nil, 4<<20)
	for jobs.Scan() {
		var each job
		of := json.NewDecoder(bytes.NewReader(jobs.Bytes()))
		of.DisallowUnknownFields()
		if err := of.Decode(&each); err != nil {
			fail(err)
		}
		each.run(out)
	}
	out.close()
}

func (j job) run(out *printer) {
	of := j.Client
	options := postbote.Options{
		URL:                    of.URL,
		NodeURLs:               of.NodeURLs,
		Key:                    of.Key,
		Timeout:                milliseconds(of.TimeoutMs),
		RetryDelayMin:          milliseconds(of.RetryDelayMsMin),
		RetryDelayMax:          milliseconds(of.RetryDelayMsMax),
		Connections:            of.Connections,
		WithoutIdempotencyKeys: of.HasIdempotencyKeys != nil && !*of.HasIdempotencyKeys,
		OnRetry: func(retry postbote.Retry) {
			line := object{"code": retry.Err.Code, "attempt": retry.Attempt}
			if retry.BotID != 0 {
				line["botId"] = retry.BotID
			}
			out.print(object{"retry": line})
		},
	}
	if of.Retries != nil {
		options.Retries = *of.Retries
		if options.Retries == 0 {
			options.Retries = -1
		}
	}
	client, err := postbote.New(options)
	if err != nil {
		fail(err)
	}
	mine := &run{job: j, client: client}
	began := time.Now()
	switch j.Mode {
	case "single":
		mine.single(out)
	case "stream":
		mine.stream(out)
	case "pushAll":
		mine.pushAll(out)
	case "calls":
		mine.calls(out)
	default:
		fail(fmt.Errorf("mode %q", j.Mode))
	}
	pushMs := time.Since(began).Milliseconds()
	client.Close(context.Background())
	out.print(object{"done": true, "pushMs": pushMs, "inFlightMax": mine.inFlightMax})
}

func (r *run) single(out *printer) {
	numbers := make(chan int)
	var begun, ended sync.WaitGroup
	begun.Add(r.job.Count)
	for lane := 0; lane < r.job.Concurrency; lane++ {
		ended.Add(1)
		go func() {
			defer ended.Done()
			for n := range numbers {
				item := r.item(n)
				begun.Done()
				result, err := r.client.Push(context.Background(), item)
				out.result(n, result, err)
			}
		}()
	}
	for n := 0; n < r.job.Count; n++ {
		numbers <- n
	}
	close(numbers)
	begun.Wait()
	r.closeEarly()
	ended.Wait()
}

func (r *run) stream(out *printer) {
	stream, err := r.client.OpenStream(r.streamOptions())
	if err != nil {
		fail(err)
	}
	type push struct {
		n       int
		pending *postbote.Pending
	}
	pushes := make(chan push, r.job.Count)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for each := range pushes {
			result, err := each.pending.Wait(context.Background())
			out.result(each.n, result, err)
		}
	}()
	for n := 0; n < r.job.Count; n++ {
		pending, err := stream.Push(context.Background(), r.item(n))
		if err != nil {
			out.result(n, postbote.Result{}, err)
			continue
		}
		pushes <- push{n, pending}
		if now := stream.PairsInFlight(); now > r.inFlightMax {
			r.inFlightMax = now
		}
	}
	close(pushes)
	r.closeEarly()
	<-ended
}

func (r *run) pushAll(out *printer) {
	items := make(chan postbote.Item)
	go func() {
		defer close(items)
		for n := 0; n < r.job.Count; n++ {
			items <- r.item(n)
		}
	}()
	results, err := r.client.PushAll(context.Background(), items, r.streamOptions())
	if err != nil {
		fail(err)
	}
	for each := range results {
		n, _ := each.Item.Tag.(int)
		out.result(n, each.Result, each.Err)
	}
}

func (r *run) calls(out *printer) {
	ctx := context.Background()
	bot := r.job.Bots[0]
	issued, err := r.client.CreateBot(ctx, postbote.NewBot(r.job.NewBot))
	out.call("createBot", object{"botId": issued.BotID, "token": issued.Token}, err)
	state, err := r.client.GetBot(ctx, bot)
	out.call("getBot", object{
		"botId": state.BotID, "firstName": state.FirstName, "username": state.Username, "mode": state.Mode,
		"pendingCount": state.PendingCount,
	}, err)
	rotation := postbote.RotateOptions{Overlap: seconds(r.job.Rotation.OverlapS), Token: r.job.Rotation.Token}
	issued, err = r.client.RotateToken(ctx, bot, rotation)
	out.call("rotateToken", object{"botId": issued.BotID, "token": issued.Token}, err)
	out.call("removeBot", object{}, r.client.RemoveBot(ctx, bot))
}

func (r *run) closeEarly() {
	if r.job.CloseMs == nil {
		return
	}
	// What was not sent by then would fail with another property.
	time.Sleep(beginTime)
	ctx, cancel := context.WithTimeout(context.Background(), milliseconds(*r.job.CloseMs))
	defer cancel()
	r.client.Close(ctx)
}

func (r *run) streamOptions() postbote.StreamOptions {
	return postbote.StreamOptions{PairsMax: r.job.Stream.PairsMax, BytesMax: r.job.Stream.BytesMax}
}

type message struct {
	MessageID int    `json:"message_id"`
	Date      int    `json:"date"`
	Chat      chat   `json:"chat"`
	Text      string `json:"text"`
}

type chat struct {
	ID   int    `json:"id"`
	Type string `json:"type"`
}

type update struct {
	Message message `json:"message"`
}

func (r *run) item(n int) postbote.Item {
	options := r.job.Options
	item := postbote.Item{
		BotID:       r.job.Bots[n%len(r.job.Bots)],
		Update:      update{message{n, 1_795_259_700, chat{n%7 + 1, "private"}, r.job.Text}},
		OrderingKey: options.OrderingKey,
		TTL:         seconds(options.TTLS),
		IsTest:      options.IsTest,
		Validate:    options.Validate,
		Traceparent: options.Traceparent,
		Tag:         n,
	}
	if r.job.KeyPrefix != nil {
		item.IdempotencyKey = fmt.Sprint(*r.job.KeyPrefix, n)
	}
	return item
}

func seconds(count int) time.Duration {
	return time.Duration(count) * time.Second
}

func milliseconds(count int) time.Duration {
	return time.Duration(count) * time.Millisecond
}

// printer prints lines of JSON, and writes them when no more come at the moment.
type printer struct {
	lines chan any
	ended chan struct{}
}

func newPrinter() *printer {
	p := &printer{lines: make(chan any, 1024), ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		out := bufio.NewWriter(os.Stdout)
		encoder := json.NewEncoder(out)
		for line := range p.lines {
			if err := encoder.Encode(line); err != nil {
				fail(err)
			}
			if len(p.lines) == 0 {
				_ = out.Flush()
			}
		}
		_ = out.Flush()
	}()
	return p
}

func (p *printer) print(line any) { p.lines <- line }

func (p *printer) close() {
	close(p.lines)
	<-p.ended
}

type resultLine struct {
	N           int    `json:"n"`
	UpdateID    *int64 `json:"updateId,omitempty"`
	IsDuplicate *bool  `json:"isDuplicate,omitempty"`
	IsFiltered  bool   `json:"isFiltered,omitempty"`
	Error       object `json:"error,omitempty"`
}

func (p *printer) result(n int, result postbote.Result, err error) {
	line := resultLine{N: n, IsFiltered: result.IsFiltered}
	if err != nil {
		line.Error = printed(err)
	} else if !result.IsFiltered {
		line.UpdateID, line.IsDuplicate = &result.UpdateID, &result.IsDuplicate
	}
	p.print(line)
}

func (p *printer) call(name string, result object, err error) {
	if err != nil {
		p.print(object{"call": name, "error": printed(err)})
	} else {
		p.print(object{"call": name, "result": result})
	}
}

func printed(err error) object {
	var of *postbote.Error
	if !errors.As(err, &of) {
		fail(err)
	}
	line := object{
		"code": of.Code, "isRetryable": of.IsRetryable(), "isOutcomeUnknown": of.IsOutcomeUnknown, "message": of.Message(),
	}
	if of.Status != 0 {
		line["status"] = of.Status
	}
	if of.RetryAfter != 0 {
		line["retryAfterS"] = int(of.RetryAfter / time.Second)
	}
	return line
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
