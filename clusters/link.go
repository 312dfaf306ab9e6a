package clusters

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"
)

// userAgent is what members see of the hub in their audit logs.
const userAgent = "fleetquota-hub"

var errForeignHost = errors.New("the request leaves the member's server")

// link is the transport of one session, shared by its probes and all clients of
// its engagement. It is never shared with another member.
type link struct {
	server *url.URL
	conns  *conns
	base   *http.Transport
	inner  http.RoundTripper      // base, with the user agent
	token  atomic.Pointer[string] // what is sent from now on; empty: nothing
	// unauthorized holds one element when a request was answered by 401.
	unauthorized chan struct{}
	longest      int64 // bytes of an answer
}

// newLink makes a link that opens no connection yet. One that cannot be made
// fails at each request, and so is reported and tried again as a dead member is.
func newLink(login *Login, o *Options) *link {
	l := &link{
		server:       &url.URL{},
		conns:        &conns{open: o.dial},
		unauthorized: make(chan struct{}, 1),
		longest:      o.longest,
	}
	l.token.Store(&login.token)
	if err := l.build(login.config); err != nil {
		l.inner = failing{err}
	}
	return l
}

func (l *link) build(config *rest.Config) error {
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return err
	}
	l.server = server
	secure, err := rest.TLSConfigFor(config)
	if err != nil {
		return err
	}
	if secure == nil {
		secure = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if config.Dial != nil {
		l.conns.open = config.Dial
	}
	l.base = newTransport(config, secure, l.conns)
	named := rest.CopyConfig(config)
	named.UserAgent = userAgent
	if config.Transport != nil {
		l.inner, err = rest.HTTPWrappersForConfig(named, config.Transport)
		return err
	}
	l.inner, err = rest.HTTPWrappersForConfig(named, l.base)
	return err
}

func newTransport(config *rest.Config, secure *tls.Config, c *conns) *http.Transport {
	proxy := config.Proxy
	if proxy == nil {
		proxy = http.ProxyFromEnvironment // of the hub's operator
	}
	return &http.Transport{
		Proxy:               proxy,
		DialContext:         c.dial,
		TLSClientConfig:     secure,
		TLSHandshakeTimeout: 10 * time.Second,
		DisableCompression:  config.DisableCompression,
		MaxIdleConnsPerHost: 25,
		IdleConnTimeout:     90 * time.Second,
		ForceAttemptHTTP2:   true,
		// A peer that vanished without a word ends its watches within these.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
	}
}

// RoundTrip sends a request with the token of the moment, to the member's server
// and nowhere else: a redirect would carry the token away.
func (l *link) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != l.server.Scheme || req.URL.Host != l.server.Host {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, errForeignHost
	}
	authorized := req
	if token := *l.token.Load(); token != "" {
		authorized = req.Clone(req.Context())
		authorized.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := l.inner.RoundTrip(authorized)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusUnauthorized {
		select {
		case l.unauthorized <- struct{}{}:
		default:
		}
	}
	if req.URL.Query().Get("watch") != "true" {
		resp.Body = http.MaxBytesReader(nil, resp.Body, l.longest)
	}
	return resp, nil
}

// close ends what is in flight and every connection.
func (l *link) close() {
	l.conns.close()
	if l.base != nil {
		l.base.CloseIdleConnections()
	}
}

type failing struct{ err error }

// RoundTrip fails.
func (f failing) RoundTrip(*http.Request) (*http.Response, error) { return nil, f.err }
