package clusters

import (
	"context"
	"time"
)

// wait returns when there is something to do.
func (m *member) wait(ctx context.Context) {
	timer := time.NewTimer(m.due(time.Now()))
	defer timer.Stop()
	var landed chan answer
	var ended chan ending
	var unauthorized chan struct{}
	if s := m.session; s != nil {
		unauthorized = s.link.unauthorized
		if s.probing != nil {
			landed = s.probing.landed
		}
		if s.engaged != nil {
			ended = s.engaged.done
		}
	}
	select {
	case <-ctx.Done():
	case <-m.wake:
	case <-timer.C:
	case a := <-landed:
		m.receive(time.Now()) // a new token may have come of the Secret read again
		m.session.judge(a)
	case e := <-ended:
		m.session.ended(ctx, e.err, time.Now())
	case <-unauthorized:
		m.session.doubt()
	}
}

// due is the time until something happens by itself.
func (m *member) due(now time.Time) time.Duration {
	const idle = time.Hour
	due := earlier(m.leaveAt, m.contact.turns(now, m.options))
	if m.login != nil && now.Before(m.login.expires) {
		due = earlier(due, m.login.expires)
	}
	if s := m.session; s != nil {
		if s.probing == nil {
			due = earlier(due, s.nextProbe)
		}
		if s.engaged == nil && now.Before(s.nextEngage) {
			due = earlier(due, s.nextEngage)
		}
	}
	if due.IsZero() {
		return idle
	}
	return min(idle, max(0, due.Sub(now)))
}
