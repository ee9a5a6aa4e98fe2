package postbote

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// The response to a single call may have this many bytes, far more than a result or an error takes.
	responseBytesMax = 1 << 20
	// The head of a response may have this many bytes, far more than the server sends.
	headBytesMax = 64 << 10
	// An idle connection is closed before the server, or a proxy in front of it, closes it under a call that was just
	// sent.
	idleTimeout = 4 * time.Second
)

// call is a single call of the private API.
type call struct {
	method, path string
	body         []byte
	// headers has names in lower case: see connection.call.
	headers map[string]string
}

// connection connects the client to the private API of one server: a pool of connections for single calls, and one for
// each lane of a stream.
type connection struct {
	place         place
	key           string
	authorization string
	tlsConfig     *tls.Config
	timeout       time.Duration
	transport     *http.Transport

	mu sync.Mutex
	// tried is when the first connection was tried.
	tried     time.Time
	isReached bool
}

func newConnection(options *Options, at place) *connection {
	c := &connection{place: at, key: options.Key, authorization: "Bearer " + options.Key, timeout: options.Timeout}
	if at.isTLS {
		c.tlsConfig = options.TLSConfig.Clone()
		if c.tlsConfig == nil {
			c.tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		if c.tlsConfig.ServerName == "" {
			c.tlsConfig.ServerName = at.serverName
		}
		// The server speaks HTTP/1.1 only.
		c.tlsConfig.NextProtos = nil
	}
	c.transport = &http.Transport{
		// It dials for single calls and streams alike, so the transport need not know of TLS and of sockets.
		DialContext:            func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) },
		MaxConnsPerHost:        options.Connections,
		MaxIdleConnsPerHost:    options.Connections,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: headBytesMax,
		DisableCompression:     true,
	}
	return c
}

// dial opens a connection. Every failure before it is established, including the TLS handshake, is CONNECTION_FAILED:
// nothing was sent.
func (c *connection) dial(ctx context.Context) (net.Conn, error) {
	c.mu.Lock()
	if c.tried.IsZero() {
		c.tried = time.Now()
	}
	limit := c.timeout
	if !c.isReached {
		limit = min(limit, firstConnect)
		// A later call has one attempt.
		if tried := time.Since(c.tried); tried <= firstContact {
			limit = min(limit, firstReport-tried)
		}
	}
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, c.place.network, c.place.address)
	if err == nil && c.place.isTLS {
		secured := tls.Client(conn, c.tlsConfig)
		if err = secured.HandshakeContext(ctx); err != nil {
			_ = conn.Close()
		}
		conn = secured
	}
	if err != nil {
		message := fmt.Sprintf("the client could not connect to %s (%v), and nothing was sent", c.place.shown, err)
		return nil, newError(CodeConnectionFailed, message, 0, err)
	}
	c.mu.Lock()
	c.isReached = true
	c.mu.Unlock()
	return conn, nil
}

func min(a, b time.Duration) time.Duration {
	if a < b {
		return a
	}
	return b
}

// unreached returns for how long the client has tried to reach the server. It is negative before that, and once it has
// reached it.
func (c *connection) unreached() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isReached || c.tried.IsZero() {
		return -1
	}
	return time.Since(c.tried)
}

// call makes one attempt of a call and returns the body of a response with status 200. The second result says whether
// the call has got a connection: if not, nothing was sent.
func (c *connection) call(ctx context.Context, of *call) ([]byte, bool, *Error) {
	var isSent atomic.Bool
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { isSent.Store(true) }}
	response, err := c.transport.RoundTrip(c.request(httptrace.WithClientTrace(ctx, trace), of))
	if err != nil {
		return nil, isSent.Load(), toError(err)
	}
	text, failed := c.text(response)
	return text, true, failed
}

// callAlone makes a call over a connection of its own, which does not wait for those of other calls, and closes it. The
// response may take the given time.
func (c *connection) callAlone(ctx context.Context, of *call, wait time.Duration) ([]byte, *Error) {
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, toError(err)
	}
	defer bare(conn).Close()
	_ = conn.SetDeadline(time.Now().Add(wait))
	request := c.request(ctx, of)
	request.Close = true
	if err := request.Write(conn); err != nil {
		return nil, toError(err)
	}
	response, err := readHead(conn)
	if err != nil {
		return nil, toError(err)
	}
	return c.text(response)
}

// text returns the body of a response with status 200.
func (c *connection) text(response *http.Response) ([]byte, *Error) {
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, responseBytesMax+1))
	if err == nil && len(text) > responseBytesMax {
		err = fmt.Errorf("a response of more than %d bytes", responseBytesMax)
	}
	if err != nil {
		return nil, toError(err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, c.withoutKey(responseError(response.StatusCode, response.Header, text))
	}
	return text, nil
}

// request returns the request of a call. The transport repeats a call of its own accord if nothing of it was written to
// a connection that the server had closed. If something was written, it would repeat those with a header
// Idempotency-Key, whose name it looks up as it is written here. In lower case it does not find it, so that every
// repetition is counted, delayed and reported by this client alone.
func (c *connection) request(ctx context.Context, of *call) *http.Request {
	var body io.Reader
	if of.body != nil {
		body = bytes.NewReader(of.body)
	}
	// The method and the context are valid, and the URL is replaced.
	request, _ := http.NewRequestWithContext(ctx, of.method, "http://server/", body)
	request.Host = c.place.host
	// Opaque goes into the request line as it is, so that the path keeps its escapes.
	request.URL.Opaque = c.place.pathPrefix + of.path
	request.Header["authorization"] = []string{c.authorization}
	request.Header["User-Agent"] = nil
	for name, value := range of.headers {
		request.Header[name] = []string{value}
	}
	return request
}

// close closes the idle connections. Those in use are closed after their calls.
func (c *connection) close() {
	c.transport.CloseIdleConnections()
}

// withoutKey returns an error without the key, which the text of a faulty server may repeat. It changes an error that is
// new.
func (c *connection) withoutKey(of *Error) *Error {
	if of != nil {
		of.message = strings.ReplaceAll(of.message, c.key, "(the key)")
	}
	return of
}

// toError converts an error of the network: an Error stays, anything else is CONNECTION_LOST.
func toError(err error) *Error {
	var of *Error
	if errors.As(err, &of) {
		return of
	}
	return clientError(CodeConnectionLost, err)
}
