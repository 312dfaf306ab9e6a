package clusters

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
)

// member is the life of one name. Others leave messages; one goroutine reads
// them and does everything else.
type member struct {
	name    string
	host    Host
	options *Options
	claims  *claims
	reread  func(ctx context.Context, secret types.NamespacedName)
	limiter flowcontrol.RateLimiter
	wake    chan struct{} // holds one element when there is something to look at
	shown   chan struct{} // closed after the first Observe

	mu        sync.Mutex // guards the messages
	inbox     *Offer     // nil: nothing new
	withdrawn bool

	// The rest belongs to the goroutine of run.
	offer   Offer     // the latest
	login   *Login    // the latest that was valid; nil: none
	refusal *Refusal  // of the latest kubeconfig
	leaveAt time.Time // end of the grace; zero: the member exists
	claim   claim
	contact *contact
	session *session // nil: not connected
	sent    *State   // nil: none yet
}

func (m *member) offered(o Offer) {
	m.mu.Lock()
	m.inbox, m.withdrawn = &o, false
	m.mu.Unlock()
	m.nudge()
}

func (m *member) withdraw() {
	m.mu.Lock()
	m.withdrawn = true
	m.mu.Unlock()
	m.nudge()
}

func (m *member) nudge() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// run keeps the member until ctx ends, or it is gone and stays so.
func (m *member) run(ctx context.Context, retired func(*member) bool) {
	ctx = klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), "member", m.name))
	for {
		m.contact = &contact{}
		m.live(ctx)
		if ctx.Err() != nil {
			return
		}
		m.host.Gone(ctx, m.name)
		m.claims.leave(&m.claim)
		if retired(m) {
			return
		}
		m.offer, m.login, m.refusal, m.leaveAt, m.sent = Offer{}, nil, nil, time.Time{}, nil
	}
}

// live is one life of the member, until ctx ends or its grace is over. Nothing
// of it is left then.
func (m *member) live(ctx context.Context) {
	defer m.disconnect()
	for ctx.Err() == nil {
		now := time.Now()
		m.receive(now)
		if !m.leaveAt.IsZero() && !now.Before(m.leaveAt) {
			return
		}
		m.connect()
		if m.session != nil {
			m.session.settle(ctx, now)
		}
		m.observe(ctx)
		m.wait(ctx)
	}
}

// receive reads the messages.
func (m *member) receive(now time.Time) {
	m.mu.Lock()
	offer, withdrawn := m.inbox, m.withdrawn
	m.inbox = nil
	m.mu.Unlock()
	if offer != nil {
		m.accept(*offer)
	}
	switch {
	case !withdrawn:
		m.leaveAt = time.Time{}
	case m.leaveAt.IsZero():
		m.leaveAt = now.Add(m.options.Grace)
	}
}

// accept keeps the last login that was valid, of the same Secret.
func (m *member) accept(o Offer) {
	moved := m.offer.Member.Secret != o.Member.Secret
	m.offer, m.refusal = o, o.Refusal
	switch {
	case o.Login == nil && moved:
		m.login = nil
	case o.Login == nil, m.login != nil && m.login.sameLink(o.Login) && m.login.token == o.Login.token:
	default:
		m.login = o.Login
		m.contact.unauthorized = false
	}
}

// connect brings the session in line with the login: the same, with another
// token, anew, or none.
func (m *member) connect() {
	wanted := m.login != nil && !m.offer.Member.Paused
	if s := m.session; s != nil && (!wanted || s.other || !s.login.sameLink(m.login)) {
		m.disconnect()
	}
	if !wanted {
		return
	}
	if m.session == nil {
		m.session = newSession(m)
		return
	}
	if m.session.login != m.login {
		m.session.renew(m.login)
	}
}

func (m *member) disconnect() {
	if m.session != nil {
		m.session.close()
		m.session = nil
	}
}

// observe tells the host what changed.
func (m *member) observe(ctx context.Context) {
	s := m.state(time.Now())
	if m.sent != nil && m.sent.Equal(s) {
		return
	}
	if m.sent != nil && m.sent.Reach != s.Reach {
		klog.FromContext(ctx).V(2).Info("Reach changed", "reach", s.Reach, "reason", s.Reason)
	}
	first := m.sent == nil
	m.sent = &s
	m.host.Observe(ctx, s)
	if first {
		m.show()
	}
}

func (m *member) show() {
	select {
	case <-m.shown:
	default:
		close(m.shown)
	}
}

func (m *member) state(now time.Time) State {
	s := State{
		Member:      m.offer.Member,
		Reach:       m.contact.reach(now, m.options),
		LastContact: m.contact.last,
		UID:         m.contact.uid,
		Version:     m.contact.version,
		ClockOffset: m.contact.clock.load(),
	}
	s.Reason, s.Message = m.reason(s.Reach)
	s.CredentialsReason, s.CredentialsMessage = m.credentials(now)
	if m.login != nil {
		s.CredentialsExpire = m.login.expires
	}
	return s
}

// reason says why the member is not live or not engaged. A single probe that
// failed is no reason while the member is live.
func (m *member) reason(reach Reach) (reason, message string) {
	switch {
	case m.offer.Member.Paused:
		return ReasonPaused, "paused by the annotation " + AnnotationPause
	case m.login == nil && m.refusal != nil:
		return m.refusal.Reason, m.refusal.Message
	}
	if first := m.claims.first(&m.claim); first != m.name {
		return ReasonDuplicateCluster, fmt.Sprintf("this is the same cluster as member %q, which is older", first)
	}
	if reach == Live && m.session != nil && m.session.failed != "" {
		return ReasonEngagementFailed, m.session.failed
	}
	if reach == Live {
		return "", ""
	}
	if m.contact.failed.reason == "" {
		return ReasonConnecting, "no answer yet"
	}
	return m.contact.failed.reason, m.contact.failed.message
}

// credentials says what is wrong with the kubeconfig.
func (m *member) credentials(now time.Time) (reason, message string) {
	switch {
	case m.refusal != nil:
		return m.refusal.Reason, m.refusal.Message
	case m.login == nil:
		return "", ""
	case !m.login.expires.IsZero() && !now.Before(m.login.expires):
		return ReasonExpired, "the credentials have expired"
	case m.contact.unauthorized:
		return ReasonUnauthorized, "the member does not accept the credentials"
	default:
		return "", ""
	}
}
