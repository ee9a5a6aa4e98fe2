package postbote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const testKey = "secret-key-of-the-test"

var message = map[string]any{"message": map[string]any{"text": "<hello> & bye"}}

// clientOf returns a client with short delays, which is closed at the end of the test, and checks that no goroutine of
// it stays.
func clientOf(t *testing.T, url string, change func(*Options)) *Client {
	t.Helper()
	before := runtime.NumGoroutine()
	options := Options{
		URL: url, Key: testKey + "\n", Timeout: 5 * time.Second,
		RetryDelayMin: time.Millisecond, RetryDelayMax: 2 * time.Millisecond,
	}
	if change != nil {
		change(&options)
	}
	client, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close(context.Background())
		deadline := time.Now().Add(5 * time.Second)
		for runtime.NumGoroutine() > before {
			if time.Now().After(deadline) {
				stacks := make([]byte, 1<<16)
				t.Fatalf("goroutines stay:\n%s", stacks[:runtime.Stack(stacks, true)])
			}
			time.Sleep(time.Millisecond)
		}
	})
	return client
}

// serverOf returns the address of a server with this handler.
func serverOf(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// silentServer returns the address of a server that receives requests and never answers. The channel says that one has
// arrived.
func silentServer(t *testing.T) (string, <-chan struct{}) {
	t.Helper()
	received := make(chan struct{}, 1)
	url := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		received <- struct{}{}
		<-r.Context().Done()
	})
	return url, received
}

// listenerOf returns a listener on a free port. The test closes it.
func listenerOf(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

func refuse(w http.ResponseWriter, status int, code Code) {
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"error":{"code":%q,"message":"text of the server"}}`, code)
}

// breakOff closes the connection without a response.
func breakOff(w http.ResponseWriter) {
	conn, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = conn.Close()
	}
}

func errorOf(t *testing.T, err error) *Error {
	t.Helper()
	var of *Error
	if !errors.As(err, &of) {
		t.Fatalf("expected an *Error, got %v", err)
	}
	if strings.Contains(fmt.Sprintf("%+v", of), testKey) {
		t.Fatalf("the error shows the key: %v", of)
	}
	return of
}

func TestAPushIsRepeatedWithTheSameKeyAndBytes(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	url := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.RequestURI+" "+r.Header.Get("Idempotency-Key")+" "+string(body))
		switch len(seen) {
		case 1:
			breakOff(w)
		case 2:
			refuse(w, 503, CodeStoreUnavailable)
		default:
			fmt.Fprint(w, `{"update_id":7,"duplicate":true}`)
		}
	})
	var retries []Retry
	client := clientOf(t, url+"/prefix/", func(o *Options) { o.OnRetry = func(r Retry) { retries = append(retries, r) } })
	item := Item{BotID: 4711, Update: message, OrderingKey: "a b", TTL: time.Minute, IsTest: true, Validate: "telegram"}
	result, err := client.Push(context.Background(), item)
	if err != nil || result != (Result{UpdateID: 7, IsDuplicate: true}) {
		t.Fatal(result, err)
	}
	if len(seen) != 3 || seen[0] != seen[1] || seen[1] != seen[2] {
		t.Fatalf("expected three equal requests, got %q", seen)
	}
	const path = "/prefix/v1/bots/4711/updates?ordering_key=a+b&test=true&ttl=60&validate=telegram "
	if key := strings.Split(seen[0], " ")[1]; len(key) != 36 {
		t.Errorf("expected a UUID as the key, got %q", key)
	}
	if !strings.HasPrefix(seen[0], path) || !strings.HasSuffix(seen[0], ` {"message":{"text":"<hello> & bye"}}`) {
		t.Fatalf("unexpected request %q", seen[0])
	}
	if len(retries) != 2 || retries[0].Err.Code != CodeConnectionLost || retries[1].Err.Code != CodeStoreUnavailable {
		t.Fatalf("unexpected retries %v", retries)
	}
}

func TestACallThatCannotBeRepeatedFailsWithAnUnknownOutcome(t *testing.T) {
	var count atomic.Int32
	url := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		_, _ = io.ReadAll(r.Body)
		breakOff(w)
	})
	client := clientOf(t, url, func(o *Options) { o.WithoutIdempotencyKeys = true })
	_, createError := client.CreateBot(context.Background(), NewBot{FirstName: "Echo", Username: "echo_bot"})
	_, rotateError := client.RotateToken(context.Background(), 4711, RotateOptions{})
	_, pushError := client.Push(context.Background(), Item{BotID: 4711, Update: message})
	removeError := client.RemoveBot(context.Background(), 4711)
	for _, err := range []error{createError, rotateError, pushError, removeError} {
		if of := errorOf(t, err); of.Code != CodeConnectionLost || !of.IsOutcomeUnknown || !of.IsRetryable() {
			t.Errorf("unexpected %v", err)
		}
	}
	if count.Load() != 4 {
		t.Errorf("expected 4 requests, got %d", count.Load())
	}
}

func TestTheCallsAboutBotsSendAndReadWhatTheServerDoes(t *testing.T) {
	url := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != "Bearer "+testKey {
			refuse(w, 401, CodeUnauthorized)
			return
		}
		switch r.Method + " " + r.URL.Path + " " + string(body) {
		case `POST /v1/bots {"bot_id":4711,"first_name":"Echo","username":"echo_bot"}`:
			fmt.Fprint(w, `{"bot_id":4711,"token":"4711:a"}`)
		case `POST /v1/bots/4711/token {"overlap":60,"token":"4711:c"}`:
			fmt.Fprint(w, `{"bot_id":4711,"token":"4711:c"}`)
		case `GET /v1/bots/4711 `:
			fmt.Fprint(w, `{"bot_id":4711,"first_name":"Echo","username":"echo_bot","mode":"webhook","pending":3,"new":[]}`)
		case `DELETE /v1/bots/4711 `:
			fmt.Fprint(w, `{}`)
		default:
			refuse(w, 400, CodeBadRequest)
		}
	})
	client := clientOf(t, url, nil)
	ctx := context.Background()
	created, err := client.CreateBot(ctx, NewBot{BotID: 4711, FirstName: "Echo", Username: "echo_bot"})
	if err != nil || created != (IssuedToken{4711, "4711:a"}) {
		t.Error(created, err)
	}
	rotated, err := client.RotateToken(ctx, 4711, RotateOptions{Overlap: time.Minute, Token: "4711:c"})
	if err != nil || rotated != (IssuedToken{4711, "4711:c"}) {
		t.Error(rotated, err)
	}
	state, err := client.GetBot(ctx, 4711)
	if err != nil || state != (BotState{4711, "Echo", "echo_bot", "webhook", 3}) {
		t.Error(state, err)
	}
	if err := client.RemoveBot(ctx, 4711); err != nil {
		t.Error(err)
	}
}

func TestErrorsHaveTheCodeStatusTextAndRetryAfterOfTheServer(t *testing.T) {
	url := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", "3600")
		switch r.URL.Path {
		case "/v1/bots/100":
			refuse(w, 429, CodeTooManyKeys)
		case "/v1/bots/101":
			refuse(w, 507, CodeQueueFull)
		case "/v1/bots/102":
			refuse(w, 404, "NO_SUCH_CODE")
		default:
			http.NotFound(w, r)
		}
	})
	client := clientOf(t, url, nil)
	for botID, expected := range map[int64]Error{
		100: {Code: CodeTooManyKeys, Status: 429, RetryAfter: time.Hour, message: "text of the server"},
		101: {Code: CodeQueueFull, Status: 507, RetryAfter: time.Hour, message: "text of the server"},
		102: {Code: CodeUnexpectedAnswer, Status: 404, RetryAfter: time.Hour,
			message: "expected a response of Postbote, got status 404, code NO_SUCH_CODE"},
		103: {Code: CodeUnexpectedAnswer, Status: 404, RetryAfter: time.Hour,
			message: "expected a response of Postbote, got status 404: expected URL to be the address of the private listener"},
	} {
		_, err := client.GetBot(context.Background(), botID)
		if of := errorOf(t, err); *of != expected {
			t.Errorf("expected %+v, got %+v", expected, *of)
		}
	}
}

func TestAnAddressWhereNobodyListensFailsWithinThreeSeconds(t *testing.T) {
	listener := listenerOf(t)
	address := listener.Addr().String()
	_ = listener.Close()
	client := clientOf(t, "http://"+address, func(o *Options) { o.RetryDelayMin, o.RetryDelayMax = time.Second, time.Minute })
	began := time.Now()
	silent := silentHandshake(t)
	_, err := client.Push(context.Background(), Item{BotID: 4711, Update: message})
	of := errorOf(t, err)
	if of.Code != CodeConnectionFailed || of.IsOutcomeUnknown || !strings.Contains(of.Message(), address) {
		t.Error(err)
	}
	if time.Since(began) > 3*time.Second {
		t.Errorf("it took %v", time.Since(began))
	}
	stream, err := client.OpenStream(StreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pending, err := stream.Push(context.Background(), Item{BotID: 4711, Update: message})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = pending.Wait(context.Background()); errorOf(t, err).Code != CodeConnectionFailed {
		t.Error(err)
	}
	if err = <-silent; errorOf(t, err).Code != CodeConnectionFailed || errorOf(t, err).IsOutcomeUnknown {
		t.Error(err)
	}
	if time.Since(began) > 3*time.Second {
		t.Errorf("it took %v", time.Since(began))
	}
}

// silentHandshake pushes to a server that accepts the connection, but never takes part in the TLS handshake.
func silentHandshake(t *testing.T) <-chan error {
	listener := listenerOf(t)
	t.Cleanup(func() { _ = listener.Close() })
	client := clientOf(t, "https://"+listener.Addr().String(), func(o *Options) { o.Timeout = time.Minute })
	ended := make(chan error, 1)
	go func() {
		_, err := client.Push(context.Background(), Item{BotID: 4711, Update: message})
		ended <- err
	}()
	return ended
}

func TestACallLongAfterAServerThatWasNeverReachedHasOneAttempt(t *testing.T) {
	url := serverOf(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"update_id":1}`) })
	client := clientOf(t, url, nil)
	client.connection.tried = time.Now().Add(-time.Hour)
	if _, err := client.Push(context.Background(), Item{BotID: 4711, Update: message}); err != nil {
		t.Error(err)
	}
}

func TestAPushThatWaitsForAConnectionWasNotSent(t *testing.T) {
	url, received := silentServer(t)
	client := clientOf(t, url, func(o *Options) { o.Connections = 1 })
	first, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() { _, _ = client.Push(first, Item{BotID: 4711, Update: message}) }()
	<-received
	second, cancelSecond := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancelSecond()
	_, err := client.Push(second, Item{BotID: 4711, Update: message})
	if of := errorOf(t, err); of.Code != CodeAborted || of.IsOutcomeUnknown || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("unexpected %+v", of)
	}
}

func TestTheEndOfTheContextEndsACallAndSaysWhetherItWasSent(t *testing.T) {
	url, received := silentServer(t)
	client := clientOf(t, url, nil)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-received
		cancel()
	}()
	_, err := client.Push(ctx, Item{BotID: 4711, Update: message})
	if of := errorOf(t, err); of.Code != CodeAborted || !of.IsOutcomeUnknown || !errors.Is(err, context.Canceled) {
		t.Errorf("unexpected %+v", of)
	}
	_, err = client.Push(ctx, Item{BotID: 4711, Update: message})
	if of := errorOf(t, err); of.Code != CodeAborted || of.IsOutcomeUnknown {
		t.Errorf("unexpected %+v", of)
	}
}

func TestAnAttemptWithoutAResponseIsATimeout(t *testing.T) {
	url := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.ReadAll(r.Body)
		<-r.Context().Done()
	})
	client := clientOf(t, url, func(o *Options) { o.Timeout, o.Retries = 20*time.Millisecond, 1 })
	_, err := client.Push(context.Background(), Item{BotID: 4711, Update: message})
	if of := errorOf(t, err); of.Code != CodeTimeout || !of.IsOutcomeUnknown {
		t.Errorf("unexpected %+v", of)
	}
}

func TestCloseGivesUpCallsAtItsDeadline(t *testing.T) {
	url, received := silentServer(t)
	client := clientOf(t, url, nil)
	ended := make(chan error, 1)
	go func() {
		_, err := client.Push(context.Background(), Item{BotID: 4711, Update: message})
		ended <- err
	}()
	<-received
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	began := time.Now()
	client.Close(ctx)
	if took := time.Since(began); took > time.Second {
		t.Errorf("it took %v", took)
	}
	if of := errorOf(t, <-ended); of.Code != CodeClosed || !of.IsOutcomeUnknown {
		t.Errorf("unexpected %+v", of)
	}
	_, err := client.Push(context.Background(), Item{BotID: 4711, Update: message})
	if of := errorOf(t, err); of.Code != CodeClosed || of.IsOutcomeUnknown {
		t.Errorf("unexpected %+v", of)
	}
	if _, err := client.OpenStream(StreamOptions{}); CodeOf(err) != CodeClosed {
		t.Error(err)
	}
}

func TestAUnixSocketIsAnAddress(t *testing.T) {
	path := t.TempDir() + "/private.sock"
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"filtered":true}`)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	client := clientOf(t, "", func(o *Options) { o.SocketPath = path })
	result, err := client.Push(context.Background(), Item{BotID: 4711, Update: message})
	if err != nil || result != (Result{IsFiltered: true}) {
		t.Error(result, err)
	}
}

func TestTLSChecksTheCertificate(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"update_id":1}`)
	}))
	// It logs the handshake that fails.
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	trusting := clientOf(t, server.URL, func(o *Options) {
		o.TLSConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
	})
	if result, err := trusting.Push(context.Background(), Item{BotID: 4711, Update: message}); err != nil {
		t.Error(result, err)
	}
	careful := clientOf(t, server.URL, func(o *Options) { o.Retries = -1 })
	_, err := careful.Push(context.Background(), Item{BotID: 4711, Update: message})
	if of := errorOf(t, err); of.Code != CodeConnectionFailed || of.IsOutcomeUnknown {
		t.Errorf("unexpected %+v", of)
	}
}

func TestOptionsThatCannotBeUsedAreNamed(t *testing.T) {
	for name, options := range map[string]Options{
		"Key: ":                         {},
		"Key: expected":                 {Key: "se cret"},
		"URL: ":                         {Key: "k", URL: "ftp://host"},
		"URL: expected":                 {Key: "k", URL: "http://user:password@host"},
		"SocketPath":                    {Key: "k", URL: "http://host", SocketPath: "/s"},
		"NodeURLs: ":                    {Key: "k", URL: "http://host", NodeURLs: []string{"http://node", "node"}},
		"NodeURLs: expected at most 64": {Key: "k", NodeURLs: make([]string, 65)},
		"NodeURLs: exp":                 {Key: "k", NodeURLs: []string{"http://node", "http://user:password@node"}},
		"Timeout":                       {Key: "k", Timeout: -1},
		"Connections":                   {Key: "k", Connections: -1},
		"RetryDelayMax:":                {Key: "k", RetryDelayMin: 2, RetryDelayMax: 1},
	} {
		_, err := New(options)
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "password@") ||
			strings.Contains(err.Error(), "se cret") {
			t.Errorf("%s: unexpected %v", name, err)
		}
	}
	client := clientOf(t, "", nil)
	for name, item := range map[string]Item{
		"TTL":            {Update: message, TTL: time.Millisecond},
		"OrderingKey":    {Update: message, OrderingKey: "\xff"},
		"IdempotencyKey": {Update: message, IdempotencyKey: " k"},
		"Traceparent":    {Update: message, Traceparent: "ü"},
		"bad update":     {Update: func() {}},
		"and nothing":    {Update: json.RawMessage(`{"message":`)},
	} {
		_, err := client.Push(context.Background(), item)
		if of := errorOf(t, err); of.Status != 400 || of.IsOutcomeUnknown || !strings.Contains(of.Message(), name) {
			t.Errorf("%s: unexpected %v", name, err)
		}
	}
}

func TestAPairIsTwoLines(t *testing.T) {
	item := Item{
		BotID: 4711, Update: []byte("{\n \"message\": {\"text\": \"a\\nb\"}\n}\n"), OrderingKey: "q\"\n", TTL: time.Hour,
		IsTest: true, Validate: "telegram", Traceparent: "00-1",
	}
	text, err := item.appendPair(nil, "key")
	const expected = `{"bot_id":4711,"ordering_key":"q\"\n","idempotency_key":"key","ttl":3600,"test":true,` +
		`"validate":"telegram","traceparent":"00-1"}` + "\n" + `{"message":{"text":"a\nb"}}` + "\n"
	if err != nil || string(text) != expected {
		t.Errorf("%q, %v", text, err)
	}
}

func TestTheDelayOfARetryDoublesAndHonorsRetryAfter(t *testing.T) {
	options := &Options{Retries: 10, RetryDelayMin: 100, RetryDelayMax: 350, random: func() float64 { return 0.5 }}
	unavailable := newError(CodeUnavailable, "", 0, nil)
	unknown := newError(CodeOutcomeUnknown, "", 0, nil)
	after := func(of *Error, seconds int) *Error {
		copied := *of
		copied.RetryAfter = time.Duration(seconds) * time.Second
		return &copied
	}
	for name, each := range map[string]struct {
		failed    failedAttempt
		delay     time.Duration
		isRetried bool
	}{
		"first":           {failedAttempt{unavailable, 1, true, -1}, 50, true},
		"second":          {failedAttempt{unavailable, 2, true, -1}, 100, true},
		"third, bounded":  {failedAttempt{unavailable, 3, true, -1}, 175, true},
		"last":            {failedAttempt{unavailable, 11, true, -1}, 0, false},
		"Retry-After":     {failedAttempt{after(unavailable, 60), 1, true, -1}, time.Minute + 50, true},
		"too long":        {failedAttempt{after(unavailable, 61), 1, true, -1}, 0, false},
		"not repeatable":  {failedAttempt{unknown, 1, false, -1}, 0, false},
		"repeatable":      {failedAttempt{unknown, 1, true, -1}, 50, true},
		"507":             {failedAttempt{newError(CodeQueueFull, "", 0, nil), 1, true, -1}, 0, false},
		"400":             {failedAttempt{newError(CodeBadUpdate, "", 0, nil), 1, true, -1}, 0, false},
		"keys of a day":   {failedAttempt{newError(CodeTooManyKeys, "", 0, nil), 1, true, -1}, 0, false},
		"never reached":   {failedAttempt{clientError(CodeConnectionFailed, nil), 1, true, firstContact}, 0, false},
		"not yet reached": {failedAttempt{clientError(CodeConnectionFailed, nil), 1, true, 0}, 50, true},
	} {
		delay, isRetried := each.failed.retryDelay(options)
		if delay != each.delay || isRetried != each.isRetried {
			t.Errorf("%s: got %v, %v", name, delay, isRetried)
		}
	}
}

func TestRandomKeysAreUUIDsAndDiffer(t *testing.T) {
	random := newRandomSource()
	seen := map[string]bool{}
	for range [1000]struct{}{} {
		key := random.key()
		if len(key) != 36 || key[14] != '4' || !strings.ContainsRune("89ab", rune(key[19])) || seen[key] {
			t.Fatal(key)
		}
		seen[key] = true
	}
}

func TestResultsAreReadAsEncodingJSONReadsThem(t *testing.T) {
	for text, expected := range map[string]Result{
		`{"update_id":29090073}`:                    {UpdateID: 29090073},
		`{"update_id":29090073,"duplicate":true}`:   {UpdateID: 29090073, IsDuplicate: true},
		` {"duplicate": true, "update_id": 5 } `:    {UpdateID: 5, IsDuplicate: true},
		`{"update_id":5,"duplicate":false,"a":[1]}`: {UpdateID: 5},
		`{"filtered":true}`:                         {IsFiltered: true},
	} {
		if result, err := pushOutcome([]byte(text)); err != nil || result != expected {
			t.Errorf("%s: got %v, %v", text, result, err)
		}
	}
	for text, expected := range map[string]Code{
		``: CodeUnexpectedAnswer, `[]`: CodeUnexpectedAnswer, `{"update_id":"5"}`: CodeUnexpectedAnswer,
		`{"update_id":5.5}`: CodeUnexpectedAnswer, `{"update_id":}`: CodeUnexpectedAnswer, `{"update_id":-}`: CodeUnexpectedAnswer,
		`{"error":{"code":"QUEUE_FULL"}}`: CodeQueueFull, `{"error":{"code":"NEW_CODE"}}`: CodeUnexpectedAnswer,
		`{"error":{"code":"UNAVAILABLE","message":5}}`: CodeUnavailable,
	} {
		if _, err := pushOutcome([]byte(text)); err == nil || err.Code != expected {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// pairsOf reads the pairs of a request and sends each header and update to handle until one of them is refused.
func pairsOf(body io.Reader, handle func(header map[string]any, update string) bool) {
	lines := bufio.NewScanner(body)
	for lines.Scan() {
		var header map[string]any
		if json.Unmarshal(lines.Bytes(), &header) != nil || !lines.Scan() || !handle(header, lines.Text()) {
			return
		}
	}
}
