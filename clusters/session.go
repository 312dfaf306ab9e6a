package clusters

import (
	"cmp"
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// session is one connection to a member, for as long as its server and
// certificates stay the same: it is probed, and engaged when it is known who
// answers. Its member's goroutine alone uses it.
type session struct {
	member *member
	link   *link
	login  *Login // the latest; only the token may differ from the link's first
	other  bool   // another cluster answers now, another minor version, or an older state: begin anew

	uid        types.UID // of the cluster that answers; empty: not known yet
	revision   string    // the newest of its store that was seen; empty: none
	version    string    // at the start of the session
	dials      int64     // connections opened when it was identified
	identified time.Time

	probing   *flight // nil: none
	nextProbe time.Time
	lastProbe time.Time
	probes    backoff

	engaged     *engagement // nil: none
	nextEngage  time.Time
	engagements backoff
	failed      string // why the last engagement ended by itself; empty: the present one works
}

// flight is a probe under way.
type flight struct {
	cancel context.CancelFunc
	landed chan answer // holds its answer
}

func newSession(m *member) *session {
	return &session{
		member:      m,
		link:        newLink(m.login, m.options),
		login:       m.login,
		probes:      backoff{least: m.options.BackoffMin, most: m.options.BackoffMax},
		engagements: backoff{least: m.options.BackoffMin, most: m.options.BackoffMax},
	}
}

// settle does what is due: a probe, the begin of an engagement, or its end for
// an older name of the same cluster.
func (s *session) settle(ctx context.Context, now time.Time) {
	if s.probing == nil && !now.Before(s.nextProbe) {
		s.probe(ctx, now)
	}
	if s.uid == "" {
		return
	}
	m := s.member
	if s.engaged != nil && now.Sub(s.engaged.began) >= m.options.ProbeEvery {
		s.failed = ""
	}
	switch {
	case s.engaged != nil && m.claims.first(&m.claim) != m.name:
		s.disengage()
	case s.engaged == nil && !now.Before(s.nextEngage) && m.claims.begin(&m.claim):
		s.engage(ctx, now)
	}
}

// renew puts a new token in place of the one in use, and tries it at once.
func (s *session) renew(login *Login) {
	s.login = login
	s.link.token.Store(&login.token)
	s.probes.reset()
	s.nextProbe = time.Time{}
}

func (s *session) probe(ctx context.Context, now time.Time) {
	m := s.member
	q := question{
		login:    s.login,
		dials:    s.dials,
		identify: s.uid == "" || s.probes.failures > 0 || now.Sub(s.identified) >= m.options.Recheck,
	}
	ctx, cancel := context.WithTimeout(ctx, m.options.ProbeTimeout)
	f := &flight{cancel: cancel, landed: make(chan answer, 1)}
	s.probing, s.lastProbe = f, now
	link, secret := s.link, m.offer.Member.Secret
	go func() {
		a := link.ask(ctx, q)
		if a.err != nil && diagnose(a.err).reason == ReasonUnauthorized {
			m.reread(ctx, secret)
		}
		f.landed <- a
	}()
}

// judge takes the answer of a probe and says when the next one is.
func (s *session) judge(a answer) {
	s.probing.cancel()
	s.probing = nil
	m := s.member
	if a.login != m.login {
		return // it tried a login that has been replaced meanwhile
	}
	if a.err != nil {
		f := diagnose(a.err)
		m.options.Probed(m.name, f.result, a.ended.Sub(a.began))
		m.contact.fail(f)
		s.nextProbe = a.ended.Add(s.pause())
		return
	}
	m.options.Probed(m.name, ProbeSuccess, a.ended.Sub(a.began))
	m.contact.succeed(a)
	s.probes.reset()
	s.nextProbe = a.began.Add(m.options.ProbeEvery)
	s.identify(a)
}

// pause is the time until the next probe after one that failed. A member that
// has answered before is looked for at least as often as a live one is.
func (s *session) pause() time.Duration {
	pause := s.probes.next()
	if s.member.contact.last.IsZero() {
		return pause
	}
	return min(pause, s.member.options.ProbeEvery)
}

// identify compares who answers with who answered before.
func (s *session) identify(a answer) {
	if s.uid == "" {
		s.version = a.version
	}
	if minor(a.version) != minor(s.version) || isOlder(a.revision, s.revision) {
		s.other = true
	}
	s.revision = cmp.Or(a.revision, s.revision)
	if a.uid == "" {
		return
	}
	if s.uid != "" && s.uid != a.uid {
		s.other = true
		return
	}
	s.uid, s.dials, s.identified = a.uid, a.dials, a.ended
	s.member.contact.uid = a.uid
	s.member.claims.stake(&s.member.claim, a.uid, s.member.offer.Since)
}

// isOlder says whether a store is not as far as it once was: it was restored
// from a backup, and a watch that goes on from a version of before would miss
// all that happens until that version comes again.
func isOlder(now, before string) bool {
	order, err := resourceversion.CompareResourceVersion(now, before)
	return err == nil && order < 0
}

// doubt brings the next probe forward, since a request was not authorized.
func (s *session) doubt() {
	if s.member.contact.failed.reason == "" {
		s.nextProbe = s.lastProbe.Add(s.member.options.BackoffMin)
	}
}

// close ends the engagement, the probe and every connection, and returns when
// they have ended.
func (s *session) close() {
	s.disengage()
	if s.probing != nil {
		s.probing.cancel()
	}
	s.link.close()
	if s.probing != nil {
		<-s.probing.landed
	}
}
