package postbote

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	// A line of the response to a stream may have this many bytes: a result has 50, an error a few hundred.
	lineBytesMax = 64 << 10
	// Results are settled in batches of at most this many, which is as many as 64 KiB have.
	batchMax = 2048
	// A chunk begins with its size in hexadecimal digits and a line end.
	chunkHeadMax = 16
	// After a failed write, the results that the server had sent are read for this time.
	restTime = time.Second
)

// streamRequest is one NDJSON request: it sends pieces of pairs as fast as the connection accepts them and receives lines
// of results. It has a connection of its own, because net/http does not promise that a request is written while its
// response is read.
//
//	lane.take --write--> server --read, lines--> lane.settle
type streamRequest struct {
	lane *lane
	// dialing ends with the request.
	dialing context.Context
	cancel  context.CancelFunc
	// more says that there may be something to take, ending that nothing will come.
	more, ending chan struct{}
	endOnce      sync.Once
	// stopped is closed when the response has ended.
	stopped chan struct{}

	mu     sync.Mutex
	conn   net.Conn
	reason *Error
}

func newStreamRequest(of *lane) *streamRequest {
	dialing, cancel := context.WithCancel(context.Background())
	return &streamRequest{
		lane:    of,
		dialing: dialing,
		cancel:  cancel,
		more:    make(chan struct{}, 1),
		ending:  make(chan struct{}),
		stopped: make(chan struct{}),
	}
}

// wake says that there is something to take.
func (r *streamRequest) wake() {
	select {
	case r.more <- struct{}{}:
	default:
	}
}

// end ends the body of the request. The server then sends the results of the pairs it has received and ends its response.
func (r *streamRequest) end() {
	r.endOnce.Do(func() { close(r.ending) })
}

// destroy breaks the request off; run returns the reason.
func (r *streamRequest) destroy(reason *Error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reason == nil {
		r.reason = reason
	}
	r.cancel()
	if r.conn != nil {
		_ = bare(r.conn).Close()
	}
}

// bare returns the connection under TLS, whose Close does not wait for a server that reads nothing more.
func bare(conn net.Conn) net.Conn {
	if secured, isTLS := conn.(*tls.Conn); isTLS {
		return secured.NetConn()
	}
	return conn
}

// run returns when the request is over: nil if the server ended its response normally, otherwise the reason.
func (r *streamRequest) run() *Error {
	err := r.exchange()
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reason != nil {
		return r.reason
	}
	return err
}

func (r *streamRequest) exchange() *Error {
	conn, err := r.lane.place.node.dial(r.dialing)
	if err != nil {
		return toError(err)
	}
	defer conn.Close()
	r.mu.Lock()
	r.conn = conn
	reason := r.reason
	r.mu.Unlock()
	if reason != nil {
		return reason
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		r.write(conn)
	}()
	failed := r.read(conn)
	close(r.stopped)
	_ = conn.Close()
	// No pair is taken after this, so the stream knows which were sent.
	<-written
	return failed
}

// write sends the head and then pieces, each as one chunk.
func (r *streamRequest) write(conn net.Conn) {
	_, err := conn.Write(r.head())
	buffer := make([]byte, chunkHeadMax, chunkHeadMax+2*pieceBytes)
	for err == nil {
		buffer = r.lane.take(buffer[:chunkHeadMax])
		if len(buffer) > chunkHeadMax {
			_, err = conn.Write(chunk(buffer))
			continue
		}
		select {
		case <-r.more:
		case <-r.ending:
			_, _ = io.WriteString(conn, "0\r\n\r\n")
			return
		case <-r.stopped:
			return
		}
	}
	// A server that refuses the request sends its reason and closes.
	_ = conn.SetReadDeadline(time.Now().Add(restTime))
}

// chunk puts the size of a piece in front of it, into the place that was kept for it.
func chunk(buffer []byte) []byte {
	var digits [chunkHeadMax]byte
	head := append(strconv.AppendInt(digits[:0], int64(len(buffer)-chunkHeadMax), 16), "\r\n"...)
	at := chunkHeadMax - len(head)
	copy(buffer[at:], head)
	return append(buffer, "\r\n"...)[at:]
}

func (r *streamRequest) head() []byte {
	c, query := r.lane.place.node, ""
	if hint := r.lane.place.hint; hint != noHint {
		query = fmt.Sprint("?shard=", hint)
	}
	return []byte(fmt.Sprintf(
		"POST %s/v1/updates%s HTTP/1.1\r\nhost: %s\r\nauthorization: %s\r\ncontent-type: application/x-ndjson\r\n"+
			"transfer-encoding: chunked\r\n\r\n",
		c.place.pathPrefix, query, c.place.host, c.authorization,
	))
}

// read settles the results until the response ends.
func (r *streamRequest) read(conn net.Conn) *Error {
	response, err := readHead(conn)
	if err != nil {
		return toError(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		// What was read of the text says enough if the rest is lost.
		text, _ := io.ReadAll(io.LimitReader(response.Body, responseBytesMax))
		return r.lane.place.node.withoutKey(responseError(response.StatusCode, response.Header, text))
	}
	if err := r.readLines(response.Body); err != io.EOF {
		return toError(err)
	}
	if response.ContentLength < 0 && len(response.TransferEncoding) == 0 {
		// Only the end of the connection ended it, which does not tell whether it was complete.
		return clientError(CodeConnectionLost, nil)
	}
	return nil
}

// readHead returns the response on a connection as soon as its head has come.
func readHead(conn net.Conn) (*http.Response, error) {
	limited := &io.LimitedReader{R: conn, N: headBytesMax}
	from := bufio.NewReaderSize(limited, lineBytesMax)
	for {
		response, err := http.ReadResponse(from, &http.Request{Method: http.MethodPost})
		if err != nil {
			return nil, err
		}
		if response.StatusCode >= 200 {
			limited.N = math.MaxInt64
			return response, nil
		}
	}
}

// readLines hands on the lines that arrived together, and returns when no more come.
func (r *streamRequest) readLines(body io.Reader) error {
	lines := bufio.NewReaderSize(body, lineBytesMax)
	batch := make([]lineOutcome, 0, batchMax)
	for {
		line, err := lines.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			return clientError(CodeUnexpectedAnswer, nil)
		}
		if err == io.EOF && len(line) > 0 {
			// Half a result: the response was not complete.
			return io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		result, failed := pushOutcome(line[:len(line)-1])
		batch = append(batch, lineOutcome{result, r.lane.place.node.withoutKey(failed)})
		next, _ := lines.Peek(lines.Buffered())
		if len(batch) < batchMax && bytes.IndexByte(next, '\n') >= 0 {
			continue
		}
		r.lane.settle(batch)
		batch = batch[:0]
	}
}
