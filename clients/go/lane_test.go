package postbote

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// threeGroups is a map without the shards 2 and 3.
var threeGroups = [][]int{{0, 1}, {4, 5}, {6, 7}}

func told(shards int, groups [][]int) string {
	text, _ := json.Marshal(map[string]any{"shards": shards, "groups": groups, "version": 2834718})
	return httpResponse("200 OK", string(text))
}

func always(response string) func(int) string {
	return func(int) string { return response }
}

// queryOf returns the query with which the pairs of a bot come.
func queryOf(botID int64, shards int, groups [][]int) string {
	for _, group := range groups {
		for _, shard := range group {
			if shard == slotOf(botID)%shards {
				return fmt.Sprint("shard=", group[0])
			}
		}
	}
	return ""
}

// pushEach pushes count items for each bot in turn, with their number as the ordering key.
func pushEach(t *testing.T, stream *Stream, bots, count int) []*Pending {
	t.Helper()
	var all []*Pending
	for nth := 1; nth <= count; nth++ {
		for bot := 0; bot < bots; bot++ {
			item := Item{BotID: int64(1000 + bot), Update: message, OrderingKey: fmt.Sprint(nth)}
			pending, err := stream.Push(context.Background(), item)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, pending)
		}
	}
	return all
}

func waitFor(t *testing.T, all []*Pending) {
	t.Helper()
	for nth, pending := range all {
		if result, err := pending.Wait(context.Background()); err != nil || result.UpdateID == 0 {
			t.Fatal(nth, result, err)
		}
	}
}

// checkStored checks that each bot has each update once and in the order of the pushes.
func (f *fakeStream) checkStored(t *testing.T, bots, count int) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for bot := 0; bot < bots; bot++ {
		keys := f.byBot[fmt.Sprint(1000+bot)]
		if len(keys) != count {
			t.Fatalf("bot %d has %d updates, expected %d", bot, len(keys), count)
		}
		for at, key := range keys {
			if key != fmt.Sprint(at+1) {
				t.Fatalf("bot %d has update %s in place of %d", bot, key, at+1)
			}
		}
	}
}

func (f *fakeStream) tell(shards func(look int) string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shards = shards
}

// reported collects the retries that a client reports.
type reported struct {
	mu    sync.Mutex
	codes []Code
}

func (r *reported) onRetry(retry Retry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.codes = append(r.codes, retry.Err.Code)
}

func (r *reported) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return fmt.Sprint(r.codes)
}

func TestSlotsAreThoseOfTheServer(t *testing.T) {
	// docs/inside/storage.md
	for botID, expected := range map[int64]int{
		100: 2773, 101: 365, 42424242: 2075, 123456789: 350, 2147483648: 927, 9594860579: 2203, 4503599627370495: 1075,
	} {
		if slot := slotOf(botID); slot != expected {
			t.Errorf("bot %d has slot %d, expected %d", botID, slot, expected)
		}
	}
}

func TestTheMemoryOfSlotsIsBounded(t *testing.T) {
	slots := slotMemory{}
	for botID := int64(100); botID < 2*slotsMax; botID++ {
		if slots.slotOf(botID); len(slots) > slotsMax {
			t.Fatalf("%d slots", len(slots))
		}
	}
	if slots.slotOf(100) != 2773 || slots.slotOf(100) != 2773 {
		t.Error("expected the same slot again")
	}
}

func TestEachPairComesOnTheStreamOfItsShard(t *testing.T) {
	fake := newFakeStream(t, storeAll)
	fake.shards = always(told(8, threeGroups))
	retries := &reported{}
	client := clientOf(t, fake.url, func(o *Options) { o.OnRetry = retries.onRetry })
	stream := streamOf(t, client, StreamOptions{})
	waitFor(t, pushEach(t, stream, 20, 100))
	stream.Close(context.Background())
	fake.checkStored(t, 20, 100)
	for bot := int64(1000); bot < 1020; bot++ {
		if count := fake.hints[fmt.Sprint(queryOf(bot, 8, threeGroups), " ", bot)]; count != 100 {
			t.Errorf("%d pairs of bot %d came on its stream: %v", count, bot, fake.hints)
		}
	}
	if fake.requests != 4 || fake.looks != 1 || retries.String() != "[]" {
		t.Errorf("%d requests, %d looks, retries %s", fake.requests, fake.looks, retries)
	}
}

func TestLanesOpenWithTheirFirstPair(t *testing.T) {
	fake := newFakeStream(t, storeAll)
	fake.shards = always(told(8, threeGroups))
	waitFor(t, pushEach(t, streamOf(t, clientOf(t, fake.url, nil), StreamOptions{}), 1, 10))
	if expected := queryOf(1000, 8, threeGroups); len(fake.queries) != 1 || fake.queries[0] != expected {
		t.Errorf("got %q, expected %q", fake.queries, expected)
	}
}

func TestAServerThatTellsNoShardsHasOneStreamAndNobodyIsTold(t *testing.T) {
	for name, response := range map[string]string{
		"without the call":    "",
		"without the scope":   httpResponse("403 Forbidden", ""),
		"of another kind":     httpResponse("405 Method Not Allowed", "<html>"),
		"with one group":      told(8, [][]int{{0, 1, 2, 3, 4, 5, 6, 7}}),
		"with part of them":   told(8, [][]int{{0, 1, 2}}),
		"without shards":      told(8, [][]int{}),
		"with an empty group": told(8, [][]int{{}, {0, 1}}),
	} {
		fake := newFakeStream(t, storeAll)
		fake.shards = always(response)
		retries := &reported{}
		client := clientOf(t, fake.url, func(o *Options) { o.OnRetry = retries.onRetry })
		waitFor(t, pushEach(t, streamOf(t, client, StreamOptions{}), 20, 10))
		if len(fake.queries) != 1 || fake.queries[0] != "" || retries.String() != "[]" {
			t.Errorf("%s: %q, retries %s", name, fake.queries, retries)
		}
		client.Close(context.Background())
	}
}

func TestAMapThatCannotBeUsedIsReportedOnceAndFailsNothing(t *testing.T) {
	ok := func(body string) string { return httpResponse("200 OK", body) }
	many := strings.Repeat("[],", shardsMax)
	for name, response := range map[string]string{
		"nothing":              ok(""),
		"null":                 ok("null"),
		"a page":               ok("<html>"),
		"a list":               ok(`[8]`),
		"more than JSON":       ok(`{"shards":8,"groups":[[0],[1]],"version":1} x`),
		"no number of shards":  ok(`{"groups":[[0],[1]],"version":1}`),
		"no power of two":      ok(`{"shards":12,"groups":[[0],[1]],"version":1}`),
		"no shard at all":      ok(`{"shards":0,"groups":[],"version":1}`),
		"fewer than none":      ok(`{"shards":-8,"groups":[],"version":1}`),
		"too many shards":      ok(`{"shards":512,"groups":[[0],[1]],"version":1}`),
		"too many groups":      ok(`{"shards":8,"groups":[` + many + `[0]],"version":1}`),
		"no version":           ok(`{"shards":8,"groups":[[0],[1]]}`),
		"half a version":       ok(`{"shards":8,"groups":[[0],[1]],"version":1.5}`),
		"no groups":            ok(`{"shards":8,"version":1}`),
		"groups of null":       ok(`{"shards":8,"groups":null,"version":1}`),
		"a group of null":      ok(`{"shards":8,"groups":[null,[1]],"version":1}`),
		"a shard of null":      ok(`{"shards":8,"groups":[[null],[1]],"version":1}`),
		"half a shard":         ok(`{"shards":8,"groups":[[0.5],[1]],"version":1}`),
		"a text for a shard":   ok(`{"shards":8,"groups":[["0"],[1]],"version":1}`),
		"an unknown shard":     ok(`{"shards":8,"groups":[[0],[8]],"version":1}`),
		"a shard below 0":      ok(`{"shards":8,"groups":[[0],[-1]],"version":1}`),
		"a shard in two":       ok(`{"shards":8,"groups":[[0,1],[1]],"version":1}`),
		"a shard twice":        ok(`{"shards":8,"groups":[[0,0],[1]],"version":1}`),
		"huge":                 ok(`{"shards":8,"groups":[[0],[1]],"version":1` + strings.Repeat(" ", responseBytesMax) + `}`),
		"an endless head":      "HTTP/1.1 200 OK\r\na: " + strings.Repeat("a", 2*headBytesMax),
		"half of it":           strings.Replace(ok(`{"shards":8,"groups":[[0],[1]],"version":1}`), "Length: ", "Length: 1", 1),
		"another protocol":     "SSH-2.0-OpenSSH\r\n",
		"an error":             httpResponse("500 Internal Server Error", `{"error":{"code":"INTERNAL","message":"`+testKey+`"}}`),
		"an address elsewhere": "HTTP/1.1 307 Elsewhere\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
	} {
		fake := newFakeStream(t, storeAll)
		fake.shards = always(response)
		var errs []*Error
		client := clientOf(t, fake.url, func(o *Options) { o.OnRetry = func(r Retry) { errs = append(errs, r.Err) } })
		for range [2]struct{}{} {
			stream := streamOf(t, client, StreamOptions{})
			waitFor(t, pushEach(t, stream, 5, 1))
			stream.Close(context.Background())
		}
		if len(fake.queries) != 2 || fake.queries[0] != "" || fake.looks != 2 || len(errs) != 1 {
			t.Errorf("%s: %q, %d looks, %v", name, fake.queries, fake.looks, errs)
		} else if of := errorOf(t, errs[0]); of.Code != CodeUnexpectedAnswer || of.IsOutcomeUnknown {
			t.Errorf("%s: unexpected %v", name, of)
		}
		client.Close(context.Background())
	}
}

func TestAStreamDoesWithoutAMapThatNeverComes(t *testing.T) {
	fake := newFakeStream(t, storeAll)
	fake.shards = always("hang")
	retries := &reported{}
	client := clientOf(t, fake.url, func(o *Options) { o.OnRetry = retries.onRetry })
	client.shards.wait = 20 * time.Millisecond
	waitFor(t, pushEach(t, streamOf(t, client, StreamOptions{}), 5, 10))
	waitFor(t, pushEach(t, streamOf(t, client, StreamOptions{}), 5, 10))
	if retries.String() != "[TIMEOUT]" || len(fake.queries) != 2 || fake.queries[0] != "" {
		t.Errorf("%q, retries %s", fake.queries, retries)
	}
}

func TestOneLookIsForAllThatWaitForIt(t *testing.T) {
	fake := newFakeStream(t, storeAll)
	client := clientOf(t, fake.url, nil)
	client.shards.mu.Lock()
	first, second := client.shards.begin(), client.shards.begin()
	client.shards.mu.Unlock()
	<-first.done
	if first != second || fake.looks != 1 {
		t.Errorf("%d looks", fake.looks)
	}
}

func TestTheMapIsLookedAtAgainWhenItIsOldUnlessThereIsNone(t *testing.T) {
	for name, each := range map[string]struct {
		response string
		looks    int
	}{"a map": {told(8, threeGroups), 2}, "no call": {"", 1}} {
		fake := newFakeStream(t, storeAll)
		fake.shards = always(each.response)
		client := clientOf(t, fake.url, nil)
		stream := streamOf(t, client, StreamOptions{})
		waitFor(t, pushEach(t, stream, 1, 1))
		waitFor(t, pushEach(t, stream, 1, 1))
		if fake.looks != 1 {
			t.Errorf("%s: %d looks at once", name, fake.looks)
		}
		client.shards.mu.Lock()
		client.shards.looked = time.Now().Add(-mapAgeMax - time.Second)
		client.shards.mu.Unlock()
		waitFor(t, pushEach(t, stream, 1, 1))
		client.shards.mu.Lock()
		of := client.shards.underWay
		client.shards.mu.Unlock()
		if of != nil {
			<-of.done
		}
		fake.mu.Lock()
		if fake.looks != each.looks {
			t.Errorf("%s: %d looks", name, fake.looks)
		}
		fake.mu.Unlock()
		client.Close(context.Background())
	}
}

func TestAMapThatChangesUnderWayKeepsTheOrderAndLosesNothing(t *testing.T) {
	maps := []string{
		told(8, threeGroups),
		told(8, [][]int{{4}, {7, 0, 1}, {5, 6, 2, 3}}),
		told(8, [][]int{{0, 1, 2, 3, 4, 5, 6, 7}}),
		"",
		told(16, [][]int{{0, 1, 2, 3, 4, 5, 6, 7}, {8, 9, 10, 11, 12, 13, 14, 15}}),
		httpResponse("200 OK", "{"),
	}
	fake := newFakeStream(t, func(nth int, _ map[string]any) string {
		switch {
		case nth%1997 == 0:
			return "cut"
		case nth%997 == 0:
			return "end"
		}
		return ""
	})
	fake.shards = func(look int) string { return maps[look%len(maps)] }
	client := clientOf(t, fake.url, nil)
	// Each piece looks again.
	client.shards.ageMax = 0
	stream := streamOf(t, client, StreamOptions{PairsMax: 300})
	waitFor(t, pushEach(t, stream, 50, 200))
	stream.Close(context.Background())
	fake.checkStored(t, 50, 200)
	if fake.looks < 10 || fake.requests < 20 {
		t.Errorf("%d looks, %d requests", fake.looks, fake.requests)
	}
}

func TestPairsWaitForTheResultsOfTheOldMapAndGoWhereTheNewOneSays(t *testing.T) {
	release := make(chan struct{})
	fake := newFakeStream(t, storeAfter(release))
	fake.shards = always(told(2, [][]int{{0}, {1}}))
	client := clientOf(t, fake.url, nil)
	stream := streamOf(t, client, StreamOptions{})
	sent := pushEach(t, stream, 2, 3)
	untilSent(t, stream, 6)
	moved := newShardMap(client.connection, []nodeShards{{client.connection, 2, [][]int{{1}, {0}}}})
	if *moved != *client.shards.latest() {
		t.Fatal("expected the order of groups not to matter")
	}
	moved = newShardMap(client.connection, []nodeShards{{client.connection, 4, [][]int{{0, 1}, {2, 3}}}})
	client.shards.mu.Lock()
	client.shards.current = moved
	client.shards.mu.Unlock()
	late := pushEach(t, stream, 2, 3)
	time.Sleep(20 * time.Millisecond)
	if stream.sentPairs() != 6 {
		t.Errorf("%d pairs are sent, expected those of the old map", stream.sentPairs())
	}
	close(release)
	waitFor(t, append(sent, late...))
	stream.Close(context.Background())
	for bot, expected := range map[int64][]string{1000: {"1", "2", "3", "1", "2", "3"}} {
		if keys := fake.byBot[fmt.Sprint(bot)]; fmt.Sprint(keys) != fmt.Sprint(expected) {
			t.Errorf("bot %d has %v", bot, keys)
		}
		if query := queryOf(bot, 4, [][]int{{0, 1}, {2, 3}}); fake.hints[fmt.Sprint(query, " ", bot)] < 3 {
			t.Errorf("bot %d: %v", bot, fake.hints)
		}
	}
}

// sentPairs returns how many pairs wait for their results.
func (s *Stream) sentPairs() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := 0
	for _, each := range s.lanes {
		count += len(each.sent)
	}
	return count
}

func untilSent(t *testing.T, stream *Stream, count int) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); stream.sentPairs() != count; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d pairs are sent, expected %d", stream.sentPairs(), count)
		}
	}
}

func TestAHeldPairGoesToTheLaneThatItsBotHasThen(t *testing.T) {
	fake := newFakeStream(t, refuseOnce("refused"))
	fake.shards = always(told(2, [][]int{{0}, {1}}))
	client, push, retries := namedPushes(t, fake)
	all := []*Pending{push(1000, "refused")}
	<-retries
	client.shards.forget(client.shards.latest())
	all = append(all, push(1000, "later"), push(1001, "other"))
	waitFor(t, all)
	if order := strings.Join(fake.order, " "); order != "other refused later" {
		t.Error(order)
	}
	if fake.hints[" 1000"] != 2 || fake.hints[" 1001"] != 1 {
		t.Errorf("unexpected %v", fake.hints)
	}
}

func TestTheBoundsAreForAllLanesTogether(t *testing.T) {
	release := make(chan struct{})
	fake := newFakeStream(t, storeAfter(release))
	fake.shards = always(told(8, threeGroups))
	stream := streamOf(t, clientOf(t, fake.url, nil), StreamOptions{PairsMax: 20})
	all := pushEach(t, stream, 20, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := stream.Push(ctx, Item{BotID: 2000, Update: message}); CodeOf(err) != CodeAborted {
		t.Errorf("expected no room, got %v", err)
	}
	if stream.PairsInFlight() != 20 || stream.BytesInFlight() < 20*len("{}\n{}\n") {
		t.Errorf("%d pairs, %d bytes", stream.PairsInFlight(), stream.BytesInFlight())
	}
	close(release)
	waitFor(t, all)
	if stream.PairsInFlight() != 0 || stream.BytesInFlight() != 0 {
		t.Errorf("%d pairs, %d bytes", stream.PairsInFlight(), stream.BytesInFlight())
	}
}

func TestCloseWaitsForTheResultsOfAllLanes(t *testing.T) {
	fake := newFakeStream(t, storeAll)
	fake.shards = func(look int) string { return []string{told(8, threeGroups), told(2, [][]int{{0}, {1}})}[look%2] }
	client := clientOf(t, fake.url, nil)
	client.shards.ageMax = 0
	stream := streamOf(t, client, StreamOptions{})
	all := pushEach(t, stream, 20, 100)
	stream.Close(context.Background())
	for _, pending := range all {
		select {
		case <-pending.Done():
		default:
			t.Fatal("a push has no result after Close")
		}
	}
	waitFor(t, all)
	fake.checkStored(t, 20, 100)
}

func TestCloseGivesUpTheLanesOfAllMapsAtItsDeadline(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	fake := newFakeStream(t, storeAfter(release))
	fake.shards = always(told(8, threeGroups))
	client := clientOf(t, fake.url, nil)
	stream := streamOf(t, client, StreamOptions{})
	all := pushEach(t, stream, 20, 1)
	untilSent(t, stream, 20)
	client.shards.forget(client.shards.latest())
	late := pushEach(t, stream, 20, 1)
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	stream.Close(ctx)
	for at, pending := range append(all, late...) {
		_, err := pending.Wait(context.Background())
		if of := errorOf(t, err); of.Code != CodeClosed || of.IsOutcomeUnknown != (at < 20) {
			t.Errorf("%d: unexpected %v", at, of)
		}
	}
}

func TestARetiredRequestThatTheServerDoesNotEndTimesOut(t *testing.T) {
	fake := newFakeStream(t, storeAll)
	// It answers the pairs of the first map, and then nothing more.
	fake.shards = always(told(2, [][]int{{0}, {1}}))
	client := clientOf(t, fake.url, func(o *Options) { o.Timeout = 100 * time.Millisecond })
	stream := streamOf(t, client, StreamOptions{})
	waitFor(t, pushEach(t, stream, 1, 1))
	stream.mu.Lock()
	request := stream.lane(stream.placeOf(1000)).request
	// The server never learns that the body has ended.
	request.endOnce.Do(func() {})
	stream.mu.Unlock()
	client.shards.forget(client.shards.latest())
	waitFor(t, pushEach(t, stream, 1, 1))
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	stream.Close(ctx)
	request.mu.Lock()
	defer request.mu.Unlock()
	if request.reason == nil || request.reason.Code != CodeTimeout {
		t.Errorf("unexpected %v", request.reason)
	}
}

func TestAHintThatIsRefusedIsLeftOut(t *testing.T) {
	for name, status := range map[string]string{"an older server": "400 Bad Request", "a proxy": "403 Forbidden"} {
		fake := newFakeStream(t, storeAll)
		fake.shards = always(told(8, threeGroups))
		fake.refusal = httpResponse(status, `{"error":{"code":"BAD_REQUEST","message":"expected no shard"}}`)
		retries := &reported{}
		client := clientOf(t, fake.url, func(o *Options) { o.OnRetry = retries.onRetry })
		stream := streamOf(t, client, StreamOptions{})
		waitFor(t, pushEach(t, stream, 20, 10))
		stream.Close(context.Background())
		fake.checkStored(t, 20, 10)
		if fake.looks != 1 || retries.String() != "[]" || fake.pairs != 200 {
			t.Errorf("%s: %d looks, %d pairs, retries %s", name, fake.looks, fake.pairs, retries)
		}
		client.Close(context.Background())
	}
}

func TestAServerThatChangesItsMapAndStoresNothingUsesUpTheRetries(t *testing.T) {
	fake := newFakeStream(t, func(int, map[string]any) string { return "end" })
	fake.shards = func(look int) string { return []string{told(8, threeGroups), told(2, [][]int{{0}, {1}})}[look%2] }
	client := clientOf(t, fake.url, func(o *Options) { o.Retries = 5 })
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, pending := range pushEach(t, streamOf(t, client, StreamOptions{}), 1, 3) {
		if _, err := pending.Wait(ctx); CodeOf(err) != CodeConnectionLost {
			t.Error(err)
		}
	}
	if fake.requests != 6 {
		t.Errorf("%d requests, expected one and five repetitions", fake.requests)
	}
}

func TestAServerThatCannotBeReachedFailsAStreamAsItFailsACall(t *testing.T) {
	listener := listenerOf(t)
	url := "http://" + listener.Addr().String()
	_ = listener.Close()
	retries := &reported{}
	client := clientOf(t, url, func(o *Options) {
		o.Retries, o.OnRetry = 3, retries.onRetry
	})
	for _, pending := range pushEach(t, streamOf(t, client, StreamOptions{}), 3, 1) {
		_, err := pending.Wait(context.Background())
		of := errorOf(t, err)
		if of.Code != CodeConnectionFailed || of.IsOutcomeUnknown || !strings.Contains(of.Message(), url) {
			t.Errorf("unexpected %v", of)
		}
	}
	if retries.String() != "[CONNECTION_FAILED CONNECTION_FAILED CONNECTION_FAILED]" {
		t.Error(retries)
	}
}

func TestMoreWorkersThanLanesShareThem(t *testing.T) {
	fake := newFakeStream(t, storeAll)
	var groups [][]int
	for shard := 0; shard < 250; shard++ {
		groups = append(groups, []int{shard})
	}
	fake.shards = always(told(256, groups))
	stream := streamOf(t, clientOf(t, fake.url, nil), StreamOptions{})
	waitFor(t, pushEach(t, stream, 1000, 2))
	stream.Close(context.Background())
	fake.checkStored(t, 1000, 2)
	if fake.requests != lanesMax {
		t.Errorf("%d requests", fake.requests)
	}
}

func TestEachNodeGetsThePairsOfItsShards(t *testing.T) {
	groups := [][][]int{{{0, 1}, {2}}, {{3, 4}}, {{4, 5}}}
	var fakes []*fakeStream
	var urls []string
	for _, each := range groups {
		fake := newFakeStream(t, storeAll)
		fake.shards = always(told(8, each))
		fakes, urls = append(fakes, fake), append(urls, fake.url+"/")
	}
	balancer := newFakeStream(t, storeAll)
	client := clientOf(t, balancer.url, func(o *Options) { o.NodeURLs = urls })
	stream := streamOf(t, client, StreamOptions{})
	waitFor(t, pushEach(t, stream, 50, 10))
	stream.Close(context.Background())
	// Two nodes claim shard 4: the first one has it.
	queries := [][]string{
		{"shard=0", "shard=0", "shard=2", "", "", "", "", ""}, {"", "", "", "shard=3", "shard=3", "", "", ""},
		{"", "", "", "", "", "shard=5", "", ""},
	}
	for bot := int64(1000); bot < 1050; bot++ {
		shard, isFound := slotOf(bot)%8, false
		for at, fake := range fakes {
			if query := queries[at][shard]; query != "" {
				isFound = true
				if fake.hints[fmt.Sprint(query, " ", bot)] != 10 {
					t.Errorf("bot %d with shard %d: node %d got %v", bot, shard, at, fake.hints)
				}
			}
		}
		if !isFound && balancer.hints[fmt.Sprint(" ", bot)] != 10 {
			t.Errorf("bot %d with shard %d: the balancer got %v", bot, shard, balancer.hints)
		}
	}
	if balancer.looks != 0 {
		t.Error("expected only the nodes to be asked")
	}
}

func TestANodeThatDoesNotAnswerIsLeftOutUntilTheNextLook(t *testing.T) {
	there, mute, gone := newFakeStream(t, storeAll), newFakeStream(t, storeAll), listenerOf(t)
	_ = gone.Close()
	there.shards = always(told(2, [][]int{{0}}))
	mute.shards = always("hang")
	retries := &reported{}
	client := clientOf(t, there.url, func(o *Options) {
		o.NodeURLs = []string{mute.url, "http://" + gone.Addr().String(), there.url}
		o.OnRetry = retries.onRetry
	})
	client.shards.wait = 50 * time.Millisecond
	stream := streamOf(t, client, StreamOptions{})
	waitFor(t, pushEach(t, stream, 20, 5))
	if mute.requests != 0 || there.pairs != 100 {
		t.Errorf("%d requests at the mute node, %d pairs at the other", mute.requests, there.pairs)
	}
	mute.tell(always(told(2, [][]int{{1}})))
	client.shards.look(context.Background())
	waitFor(t, pushEach(t, stream, 20, 5))
	stream.Close(context.Background())
	if mute.pairs == 0 || there.pairs+mute.pairs != 200 {
		t.Errorf("%d pairs at the node that is back, %d at the other", mute.pairs, there.pairs)
	}
	if retries.String() != "[TIMEOUT]" {
		t.Errorf("retries %s", retries)
	}
}

func TestANodeOfAnotherClusterIsLeftOut(t *testing.T) {
	first, other := newFakeStream(t, storeAll), newFakeStream(t, storeAll)
	first.shards = always(told(2, [][]int{{0}}))
	other.shards = always(told(8, [][]int{{1, 3, 5, 7}}))
	retries := &reported{}
	client := clientOf(t, first.url, func(o *Options) {
		o.NodeURLs, o.OnRetry = []string{first.url, other.url}, retries.onRetry
	})
	waitFor(t, pushEach(t, streamOf(t, client, StreamOptions{}), 20, 5))
	if other.requests != 0 || first.pairs != 100 || retries.String() != "[UNEXPECTED_ANSWER]" {
		t.Errorf("%d requests, %d pairs, retries %s", other.requests, first.pairs, retries)
	}
}

func TestWithoutAURLTheFirstNodeHasTheSingleCalls(t *testing.T) {
	client := clientOf(t, "", func(o *Options) { o.NodeURLs = []string{"http://127.0.0.2:9", "http://127.0.0.3:9"} })
	if shown := client.connection.place.shown; shown != "http://127.0.0.2:9" {
		t.Error(shown)
	}
}

func TestAnotherMapDoesNotShortenATimeThatTheServerAskedFor(t *testing.T) {
	fake := newFakeStream(t, storeAll)
	fake.shards = always(told(2, [][]int{{0}, {1}}))
	fake.refusal = "HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nContent-Length: 0\r\n\r\n"
	refused := make(chan time.Time, 1)
	client := clientOf(t, fake.url, func(o *Options) { o.OnRetry = func(Retry) { refused <- time.Now() } })
	stream := streamOf(t, client, StreamOptions{})
	all := pushEach(t, stream, 1, 1)
	since := <-refused
	client.shards.forget(client.shards.latest())
	all = append(all, pushEach(t, stream, 1, 1)...)
	// Its lane has no delay, and sees that there is another map.
	other := int64(1000)
	for slotOf(other)%2 == slotOf(1000)%2 {
		other++
	}
	pending, err := stream.Push(context.Background(), Item{BotID: other, Update: message})
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, append(all, pending))
	if passed := time.Since(since); passed < time.Second {
		t.Errorf("the pairs were sent after %v", passed)
	}
}
