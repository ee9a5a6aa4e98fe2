package postbote

import "context"

// ItemResult is an item with its result or its error.
type ItemResult struct {
	Item   Item
	Result Result
	// Err is nil or an *Error. A refused update has one, and the other items go on.
	Err error
}

// PushAll pushes all items over one stream and sends the results in the order of the items. It closes the channel of
// results after the last one, when items is closed.
//
// Items are received only as far as the server keeps up and results are taken, so their source may be endless. At the end
// of the context no further item is received, what was pushed is finished, the results that were not taken are dropped,
// and the channel is closed: a caller that leaves early cancels the context.
//
// Code: CLOSED if the client is closed. Another error names an option that cannot be used.
func (c *Client) PushAll(ctx context.Context, items <-chan Item, options StreamOptions) (<-chan ItemResult, error) {
	stream, err := c.OpenStream(options)
	if err != nil {
		return nil, err
	}
	// Its capacity bounds the results that wait to be taken.
	pushed := make(chan pushedItem, stream.bounds.PairsMax)
	results := make(chan ItemResult)
	go func() {
		defer close(pushed)
		pushItems(ctx, stream, items, pushed)
	}()
	go func() {
		defer close(results)
		takeResults(ctx, pushed, results)
		stream.Close(context.Background())
	}()
	return results, nil
}

// pushedItem is an item that was pushed, or refused with err.
type pushedItem struct {
	item    Item
	pending *Pending
	err     error
}

func pushItems(ctx context.Context, stream *Stream, items <-chan Item, to chan<- pushedItem) {
	for {
		select {
		case <-ctx.Done():
			return
		case item, isOpen := <-items:
			if !isOpen {
				return
			}
			pending, err := stream.Push(ctx, item)
			select {
			case to <- pushedItem{item, pending, err}:
			case <-ctx.Done():
				return
			}
		}
	}
}

// takeResults returns after the last result, or when the context ends.
func takeResults(ctx context.Context, from <-chan pushedItem, to chan<- ItemResult) {
	for each := range from {
		result, err := Result{}, each.err
		if each.pending != nil {
			result, err = each.pending.Wait(ctx)
		}
		select {
		case to <- ItemResult{each.item, result, err}:
		case <-ctx.Done():
			return
		}
	}
}
