package clusters_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// cluster is a member's API server behind a pipe. It knows what a probe asks.
type cluster struct {
	host   string
	ca     *authority
	server *http.Server

	mu      sync.Mutex // guards the rest
	queue   chan net.Conn
	uid     string
	version string
	store   int // its resourceVersion
	token   string
	status  int            // in place of 200; 0: none
	skew    time.Duration  // of its clock
	frozen  chan struct{}  // closed by thaw; nil: not frozen
	tokens  map[string]int // requests by token
	open    []net.Conn
}

func newCluster(t *testing.T, host, uid string) *cluster {
	t.Helper()
	c := &cluster{
		host: host, ca: newAuthority(t), queue: make(chan net.Conn),
		uid: uid, version: "v1.37.2", token: "token-of-" + host, tokens: map[string]int{},
	}
	c.server = &http.Server{
		Handler: c, TLSConfig: c.ca.server(t, host),
		ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Hour,
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = c.server.ServeTLS(pipes{c.queue, make(chan struct{}), &sync.Once{}}, "", "")
	}()
	t.Cleanup(func() {
		c.thaw()
		_ = c.server.Close()
		<-done
	})
	return c
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	token := r.Header.Get("Authorization")
	c.tokens[token]++
	w.Header().Set("Date", time.Now().Add(c.skew).UTC().Format(http.TimeFormat))
	switch {
	case token != "Bearer "+c.token:
		w.WriteHeader(http.StatusUnauthorized)
	case c.status != 0:
		w.Header().Set("Location", "https://elsewhere/version")
		w.WriteHeader(c.status)
	case r.URL.Path == "/version":
		fmt.Fprintf(w, `{"gitVersion": %q}`, c.version)
	case r.URL.Path == "/api/v1/namespaces/kube-system":
		fmt.Fprintf(w, `{"metadata": {"uid": %q}}`, c.uid)
	case r.URL.Path == "/api/v1/namespaces" && c.store > 0:
		fmt.Fprintf(w, `{"metadata": {"resourceVersion": "%d"}}`, c.store)
	case r.URL.Path == "/endless":
		for range 100 {
			_, _ = w.Write(make([]byte, 1024))
		}
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// set changes the cluster under its lock.
func (c *cluster) set(change func(*cluster)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

func (c *cluster) requests(token string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tokens["Bearer "+token]
}

func (c *cluster) freeze() { c.set(func(c *cluster) { c.frozen = make(chan struct{}) }) }

func (c *cluster) thaw() {
	c.set(func(c *cluster) {
		if c.frozen != nil {
			close(c.frozen)
			c.frozen = nil
		}
	})
}

// cut ends all its connections.
func (c *cluster) cut() {
	c.set(func(c *cluster) {
		for _, conn := range c.open {
			_ = conn.Close()
		}
		c.open = nil
	})
}

func (c *cluster) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	c.set(func(c *cluster) { c.open = append(c.open, far) })
	select {
	case c.queue <- newFrozenConn(far, c):
		return near, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// frozenConn reads nothing while its cluster is frozen. As with TCP, what is
// sent to it meanwhile waits in a buffer.
type frozenConn struct {
	net.Conn

	c        *cluster
	received chan []byte // closed at the end
	rest     *[]byte
}

func newFrozenConn(far net.Conn, c *cluster) frozenConn {
	const enough = 10000 // so that the buffer is never full
	f := frozenConn{Conn: far, c: c, received: make(chan []byte, enough), rest: new([]byte)}
	go func() {
		defer close(f.received)
		for {
			p := make([]byte, 1<<14)
			n, err := far.Read(p)
			if err != nil {
				return
			}
			f.received <- p[:n]
		}
	}()
	return f
}

func (f frozenConn) Read(p []byte) (int, error) {
	if len(*f.rest) == 0 {
		*f.rest = <-f.received
	}
	f.c.mu.Lock()
	frozen := f.c.frozen
	f.c.mu.Unlock()
	if frozen != nil {
		<-frozen
	}
	if len(*f.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, *f.rest)
	*f.rest = (*f.rest)[n:]
	return n, nil
}

// SetDeadline is of no use to a server of HTTP/2.
func (frozenConn) SetDeadline(time.Time) error { return nil }

// SetReadDeadline is of no use to a server of HTTP/2.
func (frozenConn) SetReadDeadline(time.Time) error { return nil }

// pipes is a listener for what dial puts in the queue.
type pipes struct {
	queue  chan net.Conn
	closed chan struct{}
	once   *sync.Once
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.queue:
		return conn, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

// network is what reaches the clusters by name. Nothing listens elsewhere.
type network map[string]*cluster

func (n network) dial(ctx context.Context, _, address string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	switch c, found := n[host]; {
	case found:
		return c.dial(ctx)
	case host == "blackhole":
		<-ctx.Done()
		return nil, ctx.Err()
	case host == "nowhere":
		return nil, &net.DNSError{Name: host, IsNotFound: true}
	default:
		return nil, &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	}
}

// kubeconfig is one as join writes it.
func (c *cluster) kubeconfig() string {
	return kubeconfig("https://"+c.host+":6443", c.token, c.ca.pem)
}

func kubeconfig(server, token string, ca []byte) string {
	encoded := base64.StdEncoding.EncodeToString(ca)
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: k, user: u}}]
clusters: [{name: k, cluster: {server: %q, certificate-authority-data: %q}}]
users: [{name: u, user: {token: %q}}]
`, server, encoded, token)
}
