package postbote

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeStream is a server for streams, because net/http does not write a response while it reads the request.
type fakeStream struct {
	url string

	mu sync.Mutex
	// ids are by bot and key, order the keys as they were stored.
	ids      map[string]int
	order    []string
	pairs    int
	requests int
	twice    int
	// byBot has the ordering keys as they were stored for each bot, hints how many pairs came with each query and bot.
	byBot map[string][]string
	hints map[string]int
	// queries are those of the requests; looks is how often the shards were asked for.
	queries []string
	looks   int
	// shards returns the response to GET /v1/shards, counted from 1; "" is that of a server without the call.
	shards func(look int) string
	// refusal, if not empty, is the response to a request with a hint.
	refusal string
	// decide returns the line for the nth pair from 1; "" stores it, "cut" breaks the connection after it was stored,
	// "end" ends the response in place of it, "hang" sends nothing more.
	decide decision
}

type decision func(nth int, header map[string]any) string

func storeAll(int, map[string]any) string { return "" }

// storeAfter stores all pairs once the channel is closed.
func storeAfter(release <-chan struct{}) decision {
	return func(int, map[string]any) string {
		<-release
		return ""
	}
}

// refuseOnce refuses the first attempt of the pair with this ordering key for a moment.
func refuseOnce(orderingKey string) decision {
	isRefused := false
	return func(_ int, header map[string]any) string {
		if header["ordering_key"] == orderingKey && !isRefused {
			isRefused = true
			return `{"error":{"code":"STORE_UNAVAILABLE","message":"again"}}`
		}
		return ""
	}
}

func newFakeStream(t *testing.T, decide decision) *fakeStream {
	t.Helper()
	listener := listenerOf(t)
	fake := &fakeStream{url: "http://" + listener.Addr().String(), ids: map[string]int{}, decide: decide}
	fake.byBot, fake.hints, fake.shards = map[string][]string{}, map[string]int{}, func(int) string { return "" }
	var serving sync.WaitGroup
	var conns sync.Map
	serving.Add(1)
	go func() {
		defer serving.Done()
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conns.Store(conn, true)
			serving.Add(1)
			go func() {
				defer serving.Done()
				defer conn.Close()
				fake.serve(conn)
			}()
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		conns.Range(func(conn, _ any) bool {
			_ = conn.(net.Conn).Close()
			return true
		})
		serving.Wait()
	})
	return fake
}

func (f *fakeStream) serve(conn net.Conn) {
	request, err := http.ReadRequest(bufio.NewReader(conn))
	if err == nil && request.Method == "GET" && request.RequestURI == "/v1/shards" {
		f.tellShards(conn)
		return
	}
	if err != nil || request.Method != "POST" || request.URL.Path != "/v1/updates" ||
		request.Header.Get("Content-Type") != "application/x-ndjson" {
		return
	}
	f.mu.Lock()
	f.requests++
	f.queries = append(f.queries, request.URL.RawQuery)
	refusal := f.refusal
	f.mu.Unlock()
	if refusal != "" && request.URL.RawQuery != "" {
		fmt.Fprint(conn, refusal)
		// Closing with something unread would take the response back.
		_, _ = io.Copy(io.Discard, conn)
		return
	}
	fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n")
	out := httputil.NewChunkedWriter(conn)
	verdict := ""
	pairsOf(request.Body, func(header map[string]any, _ string) bool {
		verdict = f.answer(header, request.URL.RawQuery, out)
		return verdict == ""
	})
	switch verdict {
	case "cut":
		return
	case "hang":
		_, _ = io.Copy(io.Discard, request.Body)
		return
	}
	_ = out.Close()
	fmt.Fprint(conn, "\r\n")
}

func (f *fakeStream) tellShards(conn net.Conn) {
	f.mu.Lock()
	f.looks++
	response := f.shards(f.looks)
	f.mu.Unlock()
	if response == "hang" {
		_, _ = io.Copy(io.Discard, conn)
	} else if response == "" {
		response = httpResponse("404 Not Found", `{"error":{"code":"NOT_FOUND","message":"none"}}`)
	}
	_, _ = io.WriteString(conn, response)
}

func httpResponse(status, body string) string {
	return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s", status, len(body), body)
}

func (f *fakeStream) answer(header map[string]any, query string, out io.Writer) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.pairs++
	bot := fmt.Sprint(header["bot_id"])
	f.hints[query+" "+bot]++
	verdict := f.decide(f.pairs, header)
	switch verdict {
	case "end", "hang":
		return verdict
	case "", "cut":
		name := fmt.Sprint(header["bot_id"], " ", header["idempotency_key"])
		id, isKnown := f.ids[name]
		if !isKnown {
			id = len(f.order) + 1
			f.ids[name] = id
			f.order = append(f.order, fmt.Sprint(header["ordering_key"]))
			f.byBot[bot] = append(f.byBot[bot], fmt.Sprint(header["ordering_key"]))
		}
		if verdict == "cut" {
			return verdict
		}
		if isKnown {
			f.twice++
			_, _ = fmt.Fprintf(out, `{"update_id":%d,"duplicate":true}`+"\n", id)
		} else {
			_, _ = fmt.Fprintf(out, `{"update_id":%d}`+"\n", id)
		}
	default:
		_, _ = fmt.Fprintln(out, verdict)
	}
	return ""
}

func streamOf(t *testing.T, client *Client, options StreamOptions) *Stream {
	t.Helper()
	stream, err := client.OpenStream(options)
	if err != nil {
		t.Fatal(err)
	}
	return stream
}

// pushed pushes count items with their number as the ordering key.
func pushed(t *testing.T, stream *Stream, count int) []*Pending {
	t.Helper()
	var all []*Pending
	for nth := 1; nth <= count; nth++ {
		pending, err := stream.Push(context.Background(), Item{BotID: 4711, Update: message, OrderingKey: fmt.Sprint(nth)})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, pending)
	}
	return all
}

func TestAStreamThatIsCutLosesNothingStoresNothingTwiceAndKeepsTheOrder(t *testing.T) {
	fake := newFakeStream(t, func(nth int, _ map[string]any) string {
		switch {
		case nth%997 == 0:
			return "cut"
		case nth%1499 == 0:
			return "end"
		}
		return ""
	})
	stream := streamOf(t, clientOf(t, fake.url, nil), StreamOptions{PairsMax: 500})
	for nth, pending := range pushed(t, stream, 10_000) {
		result, err := pending.Wait(context.Background())
		if err != nil || result.UpdateID != int64(nth+1) {
			t.Fatal(nth, result, err)
		}
	}
	stream.Close(context.Background())
	for at, key := range fake.order {
		if key != fmt.Sprint(at+1) {
			t.Fatalf("expected %d at its place, got %s", at+1, key)
		}
	}
	if len(fake.order) != 10_000 || fake.requests < 10 || fake.twice == 0 {
		t.Errorf("%d stored in %d requests, %d repeated", len(fake.order), fake.requests, fake.twice)
	}
}

func TestAPairThatIsRefusedForAMomentIsHeldBackWithThoseOfItsQueue(t *testing.T) {
	fake := newFakeStream(t, refuseOnce("5"))
	var retries []Retry
	client := clientOf(t, fake.url, func(o *Options) { o.OnRetry = func(r Retry) { retries = append(retries, r) } })
	stream := streamOf(t, client, StreamOptions{})
	for _, pending := range pushed(t, stream, 100) {
		if result, err := pending.Wait(context.Background()); err != nil || result.UpdateID == 0 {
			t.Fatal(err)
		}
	}
	if len(fake.order) != 100 || fake.twice != 0 || len(retries) != 1 || retries[0].BotID != 4711 {
		t.Errorf("%d stored, %d repeated, %v", len(fake.order), fake.twice, retries)
	}
}

// namedPushes returns a client whose refused pairs are due after 50 ms, what pushes over a stream of it, and its retries.
func namedPushes(t *testing.T, fake *fakeStream) (*Client, func(int64, string) *Pending, chan Retry) {
	retries := make(chan Retry, 1)
	client := clientOf(t, fake.url, func(o *Options) {
		o.OnRetry = func(r Retry) { retries <- r }
		o.RetryDelayMin, o.RetryDelayMax = 50*time.Millisecond, 50*time.Millisecond
		o.random = func() float64 { return 1 }
	})
	stream := streamOf(t, client, StreamOptions{})
	push := func(botID int64, name string) *Pending {
		pending, err := stream.Push(context.Background(), Item{BotID: botID, Update: message, OrderingKey: name})
		if err != nil {
			t.Fatal(err)
		}
		return pending
	}
	return client, push, retries
}

func TestLaterPairsOfTheQueueOfARefusedPairWaitAndOthersGoOn(t *testing.T) {
	fake := newFakeStream(t, refuseOnce("refused"))
	_, push, retries := namedPushes(t, fake)
	all := []*Pending{push(4711, "refused")}
	if retry := <-retries; retry.Delay != 50*time.Millisecond || retry.Attempt != 1 {
		t.Errorf("unexpected %+v", retry)
	}
	all = append(all, push(4711, "later"), push(4712, "other"))
	for _, pending := range all {
		if _, err := pending.Wait(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if order := strings.Join(fake.order, " "); order != "other refused later" {
		t.Error(order)
	}
}

func TestHeldPairsAreInTheOrderOfTheirPushes(t *testing.T) {
	held := heldPairs{}
	due := make(chan *heldQueue, 1)
	onDue := func(_ queue, of *heldQueue) { due <- of }
	of := queue{botID: 4711}
	if held.holdIfQueueWaits(&Pending{queue: of, nth: 9}) {
		t.Error("no pair of the queue waits")
	}
	held.hold(&Pending{queue: of, nth: 5}, time.Millisecond, onDue)
	if !held.holdIfQueueWaits(&Pending{queue: of, nth: 8}) || held.holdIfQueueWaits(&Pending{queue: queue{4711, true}}) {
		t.Error("expected the pairs of the queue alone to wait")
	}
	held.hold(&Pending{queue: of, nth: 6}, time.Hour, onDue)
	first := <-due
	if rest := time.Until(first.due); rest < time.Minute {
		t.Errorf("expected the longest delay, got %v", rest)
	}
	var order []uint64
	for _, pair := range first.pairs {
		order = append(order, pair.nth)
	}
	if fmt.Sprint(order) != "[5 6 8]" {
		t.Error(order)
	}
	if all := held.clear(func(*Pending) bool { return true }); len(all) != 3 || len(held) != 0 {
		t.Error(all)
	}
}

func TestAStreamWithoutFaultsIsOneRequest(t *testing.T) {
	fake := newFakeStream(t, storeAll)
	stream := streamOf(t, clientOf(t, fake.url, nil), StreamOptions{})
	for _, pending := range pushed(t, stream, 10_000) {
		if _, err := pending.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	stream.Close(context.Background())
	if fake.requests != 1 || fake.pairs != 10_000 {
		t.Errorf("%d requests with %d pairs", fake.requests, fake.pairs)
	}
}

func TestARefusedPairFailsAlone(t *testing.T) {
	fake := newFakeStream(t, func(nth int, _ map[string]any) string {
		if nth == 2 {
			return `{"error":{"code":"QUEUE_FULL","message":"full"}}`
		}
		return ""
	})
	stream := streamOf(t, clientOf(t, fake.url, nil), StreamOptions{})
	for nth, pending := range pushed(t, stream, 3) {
		_, err := pending.Wait(context.Background())
		if nth == 1 {
			if of := errorOf(t, err); of.Code != CodeQueueFull || of.Status != 507 || of.Message() != "full" || of.IsRetryable() {
				t.Errorf("unexpected %+v", of)
			}
		} else if err != nil {
			t.Error(err)
		}
	}
}

func TestAStreamWithoutResultsTimesOutAndIsOpenedAgain(t *testing.T) {
	fake := newFakeStream(t, func(nth int, _ map[string]any) string {
		if nth == 2 {
			return "hang"
		}
		return ""
	})
	client := clientOf(t, fake.url, func(o *Options) { o.Timeout = 30 * time.Millisecond })
	for _, pending := range pushed(t, streamOf(t, client, StreamOptions{}), 3) {
		if _, err := pending.Wait(context.Background()); err != nil {
			t.Error(err)
		}
	}
	if fake.requests != 2 {
		t.Errorf("%d requests", fake.requests)
	}
}

func TestPushWaitsForRoomAndItsContextEndsTheWait(t *testing.T) {
	release := make(chan struct{})
	fake := newFakeStream(t, storeAfter(release))
	stream := streamOf(t, clientOf(t, fake.url, nil), StreamOptions{PairsMax: 2})
	pending := pushed(t, stream, 2)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := stream.Push(ctx, Item{BotID: 4711, Update: message})
	if of := errorOf(t, err); of.Code != CodeAborted || of.IsOutcomeUnknown || stream.PairsInFlight() != 2 {
		t.Errorf("unexpected %+v", of)
	}
	if _, err := pending[0].Wait(ctx); CodeOf(err) != CodeAborted || !errorOf(t, err).IsOutcomeUnknown {
		t.Error(err)
	}
	waiting := make(chan error)
	go func() {
		_, err := stream.Push(context.Background(), Item{BotID: 4711, Update: message})
		waiting <- err
	}()
	close(release)
	if err := <-waiting; err != nil {
		t.Error(err)
	}
	stream.Close(context.Background())
	if stream.PairsInFlight() != 0 || stream.BytesInFlight() != 0 || len(fake.order) != 3 {
		t.Errorf("%d stored", len(fake.order))
	}
	if _, err := stream.Push(context.Background(), Item{BotID: 4711, Update: message}); CodeOf(err) != CodeClosed {
		t.Error(err)
	}
}

func TestAStreamIsBoundedInBytes(t *testing.T) {
	release := make(chan struct{})
	fake := newFakeStream(t, storeAfter(release))
	stream := streamOf(t, clientOf(t, fake.url, nil), StreamOptions{BytesMax: 1})
	pushed(t, stream, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	if _, err := stream.Push(ctx, Item{BotID: 4711, Update: message}); CodeOf(err) != CodeAborted {
		t.Error(err)
	}
	close(release)
}

func TestCloseOfAStreamGivesUpAtItsDeadline(t *testing.T) {
	fake := newFakeStream(t, func(nth int, _ map[string]any) string { return "hang" })
	stream := streamOf(t, clientOf(t, fake.url, nil), StreamOptions{PairsMax: 1})
	sent := pushed(t, stream, 1)[0]
	refused := make(chan error)
	go func() {
		_, err := stream.Push(context.Background(), Item{BotID: 4711, Update: message})
		refused <- err
	}()
	for deadline := time.Now().Add(5 * time.Second); ; time.Sleep(time.Millisecond) {
		fake.mu.Lock()
		isThere := fake.pairs > 0
		fake.mu.Unlock()
		if isThere || time.Now().After(deadline) {
			break
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	stream.Close(ctx)
	if _, err := sent.Wait(context.Background()); CodeOf(err) != CodeClosed || !errorOf(t, err).IsOutcomeUnknown {
		t.Error(err)
	}
	if err := <-refused; CodeOf(err) != CodeClosed || errorOf(t, err).IsOutcomeUnknown {
		t.Error(err)
	}
}

func TestAStreamThatIsRefusedFailsItsPushesWithTheReason(t *testing.T) {
	url := serverOf(t, func(w http.ResponseWriter, r *http.Request) {
		// Otherwise net/http waits for the end of the request first.
		w.Header().Set("Connection", "close")
		refuse(w, 401, CodeUnauthorized)
	})
	stream := streamOf(t, clientOf(t, url, nil), StreamOptions{})
	for _, pending := range pushed(t, stream, 3) {
		_, err := pending.Wait(context.Background())
		if of := errorOf(t, err); of.Code != CodeUnauthorized || of.IsOutcomeUnknown {
			t.Errorf("unexpected %+v", of)
		}
	}
}

func TestPairsWithoutAKeyAreNotSentAgainIfTheyMayBeStored(t *testing.T) {
	fake := newFakeStream(t, func(nth int, _ map[string]any) string {
		if nth == 2 {
			return "cut"
		}
		return ""
	})
	client := clientOf(t, fake.url, func(o *Options) { o.WithoutIdempotencyKeys = true })
	stream := streamOf(t, client, StreamOptions{})
	var failed int
	for _, pending := range pushed(t, stream, 3) {
		if _, err := pending.Wait(context.Background()); err != nil {
			failed++
			if of := errorOf(t, err); of.Code != CodeConnectionLost || !of.IsOutcomeUnknown {
				t.Errorf("unexpected %+v", of)
			}
		}
	}
	if failed == 0 {
		t.Error("expected a failure")
	}
}

func TestAnAnswerThatIsNoStreamOfPostboteFailsThePushes(t *testing.T) {
	for name, response := range map[string]string{
		"an endless line":      "HTTP/1.1 200 OK\r\n\r\n" + strings.Repeat("a", 2*lineBytesMax),
		"a page":               "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n<html>\n",
		"an endless head":      "HTTP/1.1 200 OK\r\na: " + strings.Repeat("a", 2*headBytesMax),
		"another protocol":     "SSH-2.0-OpenSSH\r\n",
		"a page of an error":   "HTTP/1.1 404 Not Found\r\nContent-Length: 7\r\n\r\n<html>\n",
		"more lines than sent": "HTTP/1.1 200 OK\r\nContent-Length: 32\r\n\r\n{\"update_id\":1}\n{\"update_id\":1}\n",
	} {
		listener := listenerOf(t)
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				head := make([]byte, 4096)
				if count, _ := conn.Read(head); bytes.HasPrefix(head[:count], []byte("GET ")) {
					_, _ = io.WriteString(conn, httpResponse("404 Not Found", ""))
				} else {
					_, _ = io.ReadAtLeast(conn, head, 200-count)
					_, _ = io.WriteString(conn, response)
				}
				_ = conn.Close()
			}
		}()
		client := clientOf(t, "http://"+listener.Addr().String(), func(o *Options) { o.Retries = 1 })
		pending := pushed(t, streamOf(t, client, StreamOptions{}), 1)[0]
		_, err := pending.Wait(context.Background())
		if name == "more lines than sent" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		} else if code := CodeOf(err); code != CodeUnexpectedAnswer && code != CodeConnectionLost {
			t.Errorf("%s: %v", name, err)
		}
		client.Close(context.Background())
		_ = listener.Close()
	}
}

func TestManyGoroutinesShareAStream(t *testing.T) {
	fake := newFakeStream(t, storeAll)
	stream := streamOf(t, clientOf(t, fake.url, nil), StreamOptions{PairsMax: 10})
	var pushing sync.WaitGroup
	for range [50]struct{}{} {
		pushing.Add(1)
		go func() {
			defer pushing.Done()
			for range [20]struct{}{} {
				pending, err := stream.Push(context.Background(), Item{BotID: 4711, Update: message})
				if err == nil {
					_, err = pending.Wait(context.Background())
				}
				if err != nil {
					t.Error(err)
				}
			}
		}()
	}
	pushing.Wait()
	if len(fake.order) != 1000 {
		t.Errorf("%d stored", len(fake.order))
	}
}

func TestPushAllReturnsTheResultsInOrder(t *testing.T) {
	fake := newFakeStream(t, func(nth int, header map[string]any) string {
		if header["ordering_key"] == "7" {
			return `{"error":{"code":"UNKNOWN_BOT","message":"none"}}`
		}
		return ""
	})
	client := clientOf(t, fake.url, nil)
	items := make(chan Item)
	go func() {
		defer close(items)
		for nth := 1; nth <= 1000; nth++ {
			items <- Item{BotID: 4711, Update: message, OrderingKey: fmt.Sprint(nth), Tag: nth}
		}
	}()
	results, err := client.PushAll(context.Background(), items, StreamOptions{PairsMax: 16})
	if err != nil {
		t.Fatal(err)
	}
	nth := 0
	for each := range results {
		nth++
		if each.Item.Tag != nth || (each.Err != nil) != (nth == 7) {
			t.Fatal(nth, each)
		}
	}
	if nth != 1000 {
		t.Errorf("%d results", nth)
	}
}

func TestACallerThatLeavesPushAllEarlyEndsItByItsContext(t *testing.T) {
	fake := newFakeStream(t, storeAll)
	client := clientOf(t, fake.url, nil)
	items := make(chan Item, 1)
	items <- Item{BotID: 4711, Update: message}
	ctx, cancel := context.WithCancel(context.Background())
	results, err := client.PushAll(ctx, items, StreamOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if first := <-results; first.Err != nil {
		t.Error(first.Err)
	}
	cancel()
	if more, isOpen := <-results; isOpen {
		t.Error(more)
	}
}

func TestPushAllReceivesItemsOnlyAsFarAsResultsAreTaken(t *testing.T) {
	fake := newFakeStream(t, storeAll)
	client := clientOf(t, fake.url, nil)
	ctx, cancel := context.WithCancel(context.Background())
	items := make(chan Item)
	var received int
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			// A busy machine may take long for the items that there is room for.
			silence := 5 * time.Second
			if received >= 100 {
				silence = 50 * time.Millisecond
			}
			select {
			case items <- Item{BotID: 4711, Update: message}:
				received++
			case <-time.After(silence):
				return
			}
		}
	}()
	if _, err := client.PushAll(ctx, items, StreamOptions{PairsMax: 100}); err != nil {
		t.Fatal(err)
	}
	<-ended
	cancel()
	// One result is offered, and one waits for its place.
	if received < 100 || received > 103 {
		t.Errorf("%d items were received", received)
	}
}

func TestCloseWhileGoroutinesPushAndGiveUpLeavesNoPushWithoutAResult(t *testing.T) {
	fake := newFakeStream(t, storeAll)
	stream := streamOf(t, clientOf(t, fake.url, nil), StreamOptions{PairsMax: 10})
	var pushing sync.WaitGroup
	var mu sync.Mutex
	codes := map[Code]int{}
	for range [20]struct{}{} {
		pushing.Add(1)
		go func() {
			defer pushing.Done()
			for nth := 0; ; nth++ {
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(nth%3)*100*time.Microsecond)
				pending, err := stream.Push(ctx, Item{BotID: 4711, Update: message})
				cancel()
				if err == nil {
					_, err = pending.Wait(context.Background())
				}
				mu.Lock()
				codes[CodeOf(err)]++
				mu.Unlock()
				if CodeOf(err) == CodeClosed {
					return
				}
			}
		}()
	}
	time.Sleep(50 * time.Millisecond)
	stream.Close(context.Background())
	pushing.Wait()
	// ABORTED and CLOSED say that nothing was sent.
	if stored := len(fake.order); codes[""] != stored || codes[CodeClosed] != 20 || stream.PairsInFlight() != 0 {
		t.Errorf("%d stored, %v", stored, codes)
	}
}

func TestNoFormatOfAClientShowsTheKey(t *testing.T) {
	client := clientOf(t, "", nil)
	stream := streamOf(t, client, StreamOptions{})
	for _, format := range []string{"%v", "%+v", "%#v"} {
		if text := fmt.Sprintf(format+format, client, stream); strings.Contains(text, testKey) {
			t.Errorf("%s: %s", format, text)
		}
	}
}
