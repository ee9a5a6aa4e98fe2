package postbote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

const (
	// A look waits this long for a response: without one, streams go on as they are.
	shardsWait = 2 * time.Second
	// While pairs are sent, the map is looked at again after this time, so that streams follow a move of shards.
	mapAgeMax = 30 * time.Second
)

// shardLooks asks the server, or each node of a cluster, which shards its workers have. All streams of a client share
// it. What is found only saves the server work, because a pair may be sent anywhere: so no look fails a push.
type shardLooks struct {
	// server is that of Options.URL; nodes are those to ask.
	server *connection
	nodes  []*connection
	// none is the map of a server that says nothing.
	none *shardMap
	// wait and ageMax are shardsWait and mapAgeMax, or less in tests.
	wait, ageMax time.Duration
	onRetry      func(Retry)
	// open ends with the client.
	open context.Context
	end  context.CancelFunc

	mu      sync.Mutex
	current *shardMap
	// looked is when the last look ended.
	looked time.Time
	// isAbsent says that nobody has the call, so that only the end of a request is a reason to look again.
	isAbsent bool
	underWay *shardLook
	// isReported says that a look has failed, which is reported once.
	isReported bool
}

type shardLook struct {
	done chan struct{}
	// err is set if there is only one server, and it could not be reached.
	err *Error
}

// shardsFound is the answer of one node, or why there is none.
type shardsFound struct {
	nodeShards
	err *Error
}

// newShardLooks returns the looks at the nodes, or at the server itself if no nodes are given.
func newShardLooks(options *Options, server *connection, nodes []*connection) *shardLooks {
	if len(nodes) == 0 {
		nodes = []*connection{server}
	}
	open, end := context.WithCancel(context.Background())
	none := newShardMap(server, nil)
	return &shardLooks{
		server:  server,
		nodes:   nodes,
		wait:    min(shardsWait, options.Timeout),
		ageMax:  mapAgeMax,
		onRetry: options.OnRetry,
		open:    open,
		end:     end,
		none:    none,
		current: none,
	}
}

// look returns when the map was looked at, or the context has ended. An error says that the server cannot be reached.
func (l *shardLooks) look(ctx context.Context) *Error {
	l.mu.Lock()
	of := l.begin()
	l.mu.Unlock()
	select {
	case <-of.done:
		return of.err
	case <-ctx.Done():
		return nil
	}
}

// latest returns the map, and begins a look if the last one was long ago.
func (l *shardLooks) latest() *shardMap {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.isAbsent && time.Since(l.looked) > l.ageMax {
		l.begin()
	}
	return l.current
}

// forget has streams do without this map until the next look.
func (l *shardLooks) forget(refused *shardMap) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current == refused {
		l.current = l.none
	}
}

// begin joins the look that is under way.
func (l *shardLooks) begin() *shardLook {
	if l.underWay == nil {
		of := &shardLook{done: make(chan struct{})}
		l.underWay = of
		go l.run(of)
	}
	return l.underWay
}

func (l *shardLooks) run(of *shardLook) {
	defer close(of.done)
	found := make([]shardsFound, len(l.nodes))
	var asking sync.WaitGroup
	for at, node := range l.nodes {
		asking.Add(1)
		go func(at int, node *connection) {
			defer asking.Done()
			found[at] = l.ask(node)
		}(at, node)
	}
	asking.Wait()
	if err := l.keep(found, of); err != nil && l.onRetry != nil {
		l.onRetry(Retry{Err: err, Attempt: 1})
	}
}

// keep notes what was found, and returns an error that is to be reported.
func (l *shardLooks) keep(found []shardsFound, of *shardLook) *Error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.underWay = nil
	l.looked = time.Now()
	l.isAbsent = true
	var nodes []nodeShards
	var problem *Error
	for _, each := range found {
		switch {
		case each.err == nil:
			l.isAbsent = false
			if len(nodes) > 0 && each.shards != nodes[0].shards {
				problem = lookError(nil)
				continue
			}
			nodes = append(nodes, each.nodeShards)
		case !isAbsence(each.err):
			l.isAbsent = false
			if problem == nil || problem.Code == CodeConnectionFailed {
				problem = each.err
			}
		}
	}
	isSole := l.nodes[0] == l.server
	if isSole && problem != nil && problem.Code == CodeConnectionFailed {
		// The request that waits for the look reports it.
		of.err = problem
		return nil
	}
	if !isSole || problem == nil {
		l.replace(newShardMap(l.server, nodes))
	}
	if l.isReported || problem == nil || problem.Code == CodeConnectionFailed {
		return nil
	}
	l.isReported = true
	return problem
}

// replace changes the map only for another one, because streams compare pointers.
func (l *shardLooks) replace(latest *shardMap) {
	switch *latest {
	case *l.current:
	case *l.none:
		l.current = l.none
	default:
		l.current = latest
	}
}

// isAbsence says that the server does not have the call, or not for this key. Then the stream shows whether the key is
// good for anything.
func isAbsence(err *Error) bool {
	switch err.Status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
		return true
	}
	return false
}

// ask asks one node for its shards.
func (l *shardLooks) ask(node *connection) shardsFound {
	ctx := l.open
	if node != l.server {
		// One node of several must not keep the others waiting.
		limited, cancel := context.WithTimeout(ctx, l.wait)
		defer cancel()
		ctx = limited
	}
	text, err := node.callAlone(ctx, &call{method: http.MethodGet, path: "/v1/shards"}, l.wait)
	if err == nil {
		if shards, groups, isUsable := shardsIn(text); isUsable {
			return shardsFound{nodeShards: nodeShards{node, shards, groups}}
		}
	}
	return shardsFound{err: lookError(err)}
}

// lookError returns what is wrong with a look, which leaves no outcome unknown. It is given nil for a text that is not the
// response.
func lookError(failed *Error) *Error {
	code, status, got := CodeUnexpectedAnswer, 0, "no complete map of them"
	switch {
	case failed == nil:
	case failed.Code == CodeConnectionFailed:
		return failed
	case failed.Status != 0:
		status, got = failed.Status, fmt.Sprint("status ", failed.Status)
	case errors.Is(failed, os.ErrDeadlineExceeded):
		code, got = CodeTimeout, "nothing in time"
	}
	of := newError(code, "expected the shards of the server from GET /v1/shards, got "+got+": streams go on without", status, nil)
	of.IsOutcomeUnknown = false
	return of
}
