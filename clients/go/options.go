package postbote

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"strings"
	"time"
)

// Options are the options of New. A field with its zero value has the default.
type Options struct {
	// URL is the address of the private listener; a path is kept as a prefix. Default: http://127.0.0.1:8082.
	URL string
	// SocketPath is the Unix socket of the private listener, instead of URL.
	SocketPath string
	// NodeURLs are the addresses of the private listeners of a cluster's nodes, at most 64, each written as URL is. A
	// stream sends each update to the node that has its bot. Default: URL alone, which also has the single calls;
	// without it, these go to the first node. The client never takes an address from a server.
	NodeURLs []string
	// Key is a key of the private API: the admin key, or one with the scopes of the calls. White space around it, such
	// as the line break at the end of a file, is ignored.
	Key string
	// TLSConfig is for an https URL, for example with the certificate authority of a private network. Default: that of
	// the system.
	TLSConfig *tls.Config
	// Timeout is the limit of one attempt, from its start to its response; in a stream, the limit without any result.
	// Default: 30 s.
	Timeout time.Duration
	// Retries is how often one call is retried; in a stream, how often in a row without a result. Default: 10. A
	// negative number: not at all.
	Retries int
	// RetryDelayMin bounds the random time before the first retry. The bound doubles with each further retry.
	// Default: 100 ms.
	RetryDelayMin time.Duration
	// RetryDelayMax is the limit for the doubled bound. A longer Retry-After of the server is honored, too, up to a
	// minute. Default: 10 s, or RetryDelayMin if that is longer.
	RetryDelayMax time.Duration
	// Connections is how many connections single calls use at a time. Each stream has its own, one for each worker of
	// the server. Default: 16.
	Connections int
	// WithoutIdempotencyKeys leaves pushes without an idempotency key as they are. Otherwise each gets a random one.
	// Without one, a push whose outcome is unknown is not repeated.
	WithoutIdempotencyKeys bool
	// OnRetry is called before each retry with the attempt that failed, for a log. It must not block,
	// nor wait for Close.
	OnRetry func(Retry)

	// random returns a number from 0 up to, but not including, 1. Tests replace it.
	random func() float64
}

// Retry is a failed attempt that the client repeats. The first time that a server does not properly say which shards its
// workers have, this is reported, too: the stream goes on, at a higher cost for the server.
type Retry struct {
	Err *Error
	// Attempt is the number of failed attempts so far, from 1.
	Attempt int
	// Delay is the time until the next attempt.
	Delay time.Duration
	// BotID is the bot of a pair that the server refused within a stream; the other pairs of the stream go on.
	// Otherwise 0.
	BotID int64
}

// StreamOptions are the options of OpenStream and PushAll. A field with its zero value has the default.
type StreamOptions struct {
	// PairsMax is how many pushes without a result a stream has before Push waits. Default: 16,384.
	PairsMax int
	// BytesMax is how many bytes pushes without a result have before Push waits. Default: 16 MiB.
	BytesMax int
}

const (
	// The other defaults are in tables.go.
	defaultURL = "http://127.0.0.1:8082"
	// A cluster with more nodes is not known.
	nodesMax = 64
)

// withDefaults returns the options with all defaults, or an error that names a field which cannot be used.
func (o Options) withDefaults() (*Options, error) {
	if o.Timeout < 0 || o.RetryDelayMin < 0 || o.RetryDelayMax < 0 {
		return nil, fmt.Errorf("postbote: Timeout, RetryDelayMin, RetryDelayMax: expected no negative time")
	}
	if o.Connections < 0 {
		return nil, fmt.Errorf("postbote: Connections: expected a number from 1, got %d", o.Connections)
	}
	o.Key = strings.TrimSpace(o.Key)
	// The error does not show the text, because it may be most of a key.
	if o.Key == "" || !isPrintable(o.Key) || strings.Contains(o.Key, " ") {
		return nil, fmt.Errorf("postbote: Key: expected a key, printable ASCII characters without spaces")
	}
	o.Timeout = orDefault(o.Timeout, defaultTimeout)
	o.Retries = orDefault(o.Retries, defaultRetries)
	o.RetryDelayMin = orDefault(o.RetryDelayMin, defaultRetryDelayMin)
	if o.RetryDelayMax == 0 {
		o.RetryDelayMax = defaultRetryDelayMax
		if o.RetryDelayMin > o.RetryDelayMax {
			o.RetryDelayMax = o.RetryDelayMin
		}
	}
	if o.RetryDelayMax < o.RetryDelayMin {
		return nil, fmt.Errorf("postbote: RetryDelayMax: expected at least RetryDelayMin")
	}
	o.Connections = orDefault(o.Connections, defaultConnections)
	if o.random == nil {
		source := newRandomSource()
		o.random = source.float64
	}
	return &o, nil
}

func (o StreamOptions) withDefaults() (StreamOptions, error) {
	if o.PairsMax < 0 || o.BytesMax < 0 {
		return o, fmt.Errorf("postbote: PairsMax, BytesMax: expected a number from 1")
	}
	o.PairsMax = orDefault(o.PairsMax, defaultPairsMax)
	o.BytesMax = orDefault(o.BytesMax, defaultBytesMax)
	return o, nil
}

func orDefault[Value comparable](given, otherwise Value) Value {
	var none Value
	if given == none {
		return otherwise
	}
	return given
}

// place is where the server is.
type place struct {
	network, address string
	// host is the Host header, pathPrefix what comes before the path of each call.
	host, pathPrefix string
	isTLS            bool
	// serverName is the name that a certificate must have.
	serverName string
	// shown is for errors.
	shown string
}

func (o *Options) place() (place, error) {
	if o.SocketPath != "" {
		if o.URL != "" {
			return place{}, fmt.Errorf("postbote: URL and SocketPath: expected one of them")
		}
		return place{network: "unix", address: o.SocketPath, host: "localhost", shown: o.SocketPath}, nil
	}
	given := o.URL
	if given == "" && len(o.NodeURLs) > 0 {
		// The key goes only where the user said.
		given = o.NodeURLs[0]
	}
	return placeOf("URL", orDefault(given, defaultURL))
}

// nodePlaces returns where the nodes of NodeURLs are.
func (o *Options) nodePlaces() ([]place, error) {
	if len(o.NodeURLs) > nodesMax {
		return nil, fmt.Errorf("postbote: NodeURLs: expected at most %d URLs", nodesMax)
	}
	var places []place
	for _, text := range o.NodeURLs {
		at, err := placeOf("NodeURLs", text)
		if err != nil {
			return nil, err
		}
		places = append(places, at)
	}
	return places, nil
}

func placeOf(option, text string) (place, error) {
	// The error does not show the text, which may have a password.
	at, err := url.Parse(text)
	if err != nil || (at.Scheme != "http" && at.Scheme != "https") || at.Hostname() == "" || at.User != nil ||
		at.RawQuery != "" || at.ForceQuery || at.Fragment != "" {
		return place{}, fmt.Errorf("postbote: %s: expected http or https, a host, and optionally a port and a path", option)
	}
	port := at.Port()
	isTLS := at.Scheme == "https"
	if port == "" {
		port = map[bool]string{false: "80", true: "443"}[isTLS]
	}
	return place{
		network:    "tcp",
		address:    net.JoinHostPort(at.Hostname(), port),
		host:       at.Host,
		pathPrefix: strings.TrimRight(at.EscapedPath(), "/"),
		isTLS:      isTLS,
		serverName: at.Hostname(),
		shown:      at.Scheme + "://" + at.Host,
	}, nil
}
