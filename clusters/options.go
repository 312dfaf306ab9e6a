package clusters

import (
	"cmp"
	"context"
	"errors"
	"net"
	"time"
)

// Options says how members are kept in reach. The zero value works.
type Options struct {
	ProbeEvery       time.Duration // time between probes; default 10s
	ProbeTimeout     time.Duration // of one probe; default 5s
	StaleAfter       time.Duration // silence until Stale; default 20s
	UnreachableAfter time.Duration // silence until Unreachable; default 60s
	Grace            time.Duration // from the loss of a Secret to the end of its member; default 30s
	BackoffMin       time.Duration // default 1s
	BackoffMax       time.Duration // default 5m
	Recheck          time.Duration // time between checks of the identity on a connection that stays; default 5m

	// Listed is called once, when every member that the source named at the
	// start has been observed for the first time. May be nil.
	Listed func(ctx context.Context)
	// Probed is told the result of every probe of a member. It is called
	// concurrently for different members and may not block. May be nil.
	Probed func(member string, result ProbeResult, took time.Duration)

	// dial opens a TCP connection; tests put a network of their own here.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
	// longest bounds, in bytes, what one answer can make the hub hold. Lists
	// arrive as watches wherever a member can stream them, and client-go bounds
	// each event of a watch; this is for members that cannot, or mean harm.
	longest int64
}

// ProbeResult is the kind of outcome of a probe, few enough for a metric.
type ProbeResult string

// The results of probes.
const (
	ProbeSuccess      ProbeResult = "success"
	ProbeTimeout      ProbeResult = "timeout"
	ProbeUnauthorized ProbeResult = "unauthorized"
	ProbeTLS          ProbeResult = "tls"
	ProbeOther        ProbeResult = "other"
)

func (o Options) complete() (Options, error) {
	o.ProbeEvery = orDefault(o.ProbeEvery, 10*time.Second)
	o.ProbeTimeout = orDefault(o.ProbeTimeout, 5*time.Second)
	o.StaleAfter = orDefault(o.StaleAfter, 20*time.Second)
	o.UnreachableAfter = orDefault(o.UnreachableAfter, 60*time.Second)
	o.Grace = orDefault(o.Grace, 30*time.Second)
	o.BackoffMin = orDefault(o.BackoffMin, time.Second)
	o.BackoffMax = orDefault(o.BackoffMax, 5*time.Minute)
	o.Recheck = orDefault(o.Recheck, 5*time.Minute)
	if o.Listed == nil {
		o.Listed = func(context.Context) {}
	}
	if o.Probed == nil {
		o.Probed = func(string, ProbeResult, time.Duration) {}
	}
	if o.dial == nil {
		o.dial = (&net.Dialer{Timeout: o.ProbeTimeout, KeepAlive: 15 * time.Second}).DialContext
	}
	const mebi = 1 << 20
	o.longest = cmp.Or(o.longest, 256*mebi)
	switch {
	case o.StaleAfter >= o.UnreachableAfter:
		return o, errors.New("StaleAfter is not below UnreachableAfter")
	case o.StaleAfter <= o.ProbeEvery:
		return o, errors.New("StaleAfter is not above ProbeEvery: every member would be stale between probes")
	case o.BackoffMin > o.BackoffMax:
		return o, errors.New("BackoffMin is above BackoffMax")
	}
	return o, nil
}

func orDefault(d, def time.Duration) time.Duration {
	if d <= 0 {
		return def
	}
	return d
}
