package clusters

import (
	"context"
	"net"
)

// WithDial puts another network in place of TCP.
func (o Options) WithDial(dial func(ctx context.Context, network, address string) (net.Conn, error)) Options {
	o.dial = dial
	return o
}

// SetLongest bounds answers.
func SetLongest(o *Options, bytes int64) { o.longest = bytes }
