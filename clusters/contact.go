package clusters

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// contact is what the probes of one member have shown so far. It outlives the
// connections that they were made on.
type contact struct {
	last         time.Time // of the last success; zero: never
	uid          types.UID
	version      string
	failed       failure // of the latest probe; zero: it succeeded, or none was made
	unauthorized bool    // the login in use was not accepted, and nothing since
	clock        clockOffset
}

// reach is what the silence since the last success amounts to.
func (c *contact) reach(now time.Time, o *Options) Reach {
	silence := now.Sub(c.last)
	switch {
	case c.last.IsZero():
		return Never
	case silence >= o.UnreachableAfter:
		return Unreachable
	case silence >= o.StaleAfter:
		return Stale
	default:
		return Live
	}
}

// turns is when the reach changes by itself. Zero: it does not.
func (c *contact) turns(now time.Time, o *Options) time.Time {
	switch c.reach(now, o) {
	case Live:
		return c.last.Add(o.StaleAfter)
	case Stale:
		return c.last.Add(o.UnreachableAfter)
	case Never, Unreachable:
	}
	return time.Time{}
}

func (c *contact) succeed(a answer) {
	if c.last.IsZero() || (a.offset-c.clock.load()).Abs() >= clockNoise {
		c.clock.store(a.offset)
	}
	c.last, c.version = a.ended, a.version
	c.failed, c.unauthorized = failure{}, false
}

func (c *contact) fail(f failure) {
	c.failed = f
	if f.reason == ReasonUnauthorized {
		c.unauthorized = true
	}
}
