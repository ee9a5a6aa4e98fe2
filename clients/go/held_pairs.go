package postbote

import (
	"sort"
	"time"
)

// heldPairs holds back pairs that the server refused temporarily (503 for the shard of one bot, a lost worker) until
// they are due again, by queue. Later pairs for the same queue wait here, too, which keeps the order of that queue as far
// as it is still possible. Pairs for other queues go on.
type heldPairs map[queue]*heldQueue

type heldQueue struct {
	// pairs are in the order in which they were pushed.
	pairs []*Pending
	// due is when all of them come due, after the longest of their delays.
	due   time.Time
	timer *time.Timer
}

// hold holds a pair that was refused. onDue is called when the timer has run; the queue may be due later by then.
func (h heldPairs) hold(pair *Pending, delay time.Duration, onDue func(queue, *heldQueue)) {
	due := time.Now().Add(delay)
	of := h[pair.queue]
	if of == nil {
		of = &heldQueue{due: due}
		h[pair.queue] = of
		of.timer = time.AfterFunc(delay, func() { onDue(pair.queue, of) })
	}
	of.insert(pair)
	if due.After(of.due) {
		of.due = due
	}
}

// holdIfQueueWaits holds a pair that is about to be sent if pairs of its queue wait here.
func (h heldPairs) holdIfQueueWaits(pair *Pending) bool {
	if len(h) == 0 {
		return false
	}
	of := h[pair.queue]
	if of == nil {
		return false
	}
	of.insert(pair)
	return true
}

// clear removes the queues whose pairs are chosen, and returns these in the order in which they were pushed.
func (h heldPairs) clear(isChosen func(*Pending) bool) []*Pending {
	var pairs []*Pending
	for queue, of := range h {
		if !isChosen(of.pairs[0]) {
			continue
		}
		of.timer.Stop()
		pairs = append(pairs, of.pairs...)
		delete(h, queue)
	}
	sort.Slice(pairs, func(a, b int) bool { return pairs[a].nth < pairs[b].nth })
	return pairs
}

// insert searches from the end, where nearly all pairs belong.
func (q *heldQueue) insert(pair *Pending) {
	at := len(q.pairs)
	for at > 0 && q.pairs[at-1].nth > pair.nth {
		at--
	}
	q.pairs = append(q.pairs, nil)
	copy(q.pairs[at+1:], q.pairs[at:])
	q.pairs[at] = pair
}
