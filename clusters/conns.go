package clusters

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
)

// conns are the TCP connections of one link, those being opened included. They
// end with it: http.Transport alone would leave the ones that are in use.
type conns struct {
	open   func(ctx context.Context, network, address string) (net.Conn, error)
	opened atomic.Int64 // so far

	mu     sync.Mutex // guards the rest
	closed bool
	ends   map[int]func() // what ends each
	last   int            // key of ends
}

// dial opens a connection that ends with the link.
func (c *conns) dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	forget, err := c.keep(cancel)
	if err != nil {
		return nil, err
	}
	conn, err := c.open(ctx, network, address)
	forget()
	if err != nil {
		return nil, err
	}
	forget, err = c.keep(func() { _ = conn.Close() })
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	c.opened.Add(1)
	return &keptConn{Conn: conn, forget: forget}, nil
}

func (c *conns) keep(end func()) (forget func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, net.ErrClosed
	}
	if c.ends == nil {
		c.ends = map[int]func(){}
	}
	c.last++
	key := c.last
	c.ends[key] = end
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.ends, key)
	}, nil
}

// close ends every connection and lets none begin.
func (c *conns) close() {
	c.mu.Lock()
	ends := c.ends
	c.closed, c.ends = true, nil
	c.mu.Unlock()
	for _, end := range ends {
		end()
	}
}

type keptConn struct {
	net.Conn

	forget func()
}

// Close ends the connection before its link does.
func (k *keptConn) Close() error {
	k.forget()
	return k.Conn.Close()
}
