package clusters

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// The most that is asked of one member, by all clients of an engagement.
const (
	queriesPerSecond = 50
	queryBurst       = 100
)

// engagement is one call of Host.Engage.
type engagement struct {
	cancel context.CancelFunc
	began  time.Time
	done   chan ending // holds what Engage returned
}

type ending struct{ err error }

// engage begins an engagement.
func (s *session) engage(ctx context.Context, now time.Time) {
	ctx, cancel := context.WithCancel(ctx)
	e := &engagement{cancel: cancel, began: now, done: make(chan ending, 1)}
	s.engaged = e
	connection, err := s.connection()
	if err != nil {
		e.done <- ending{err}
		return
	}
	host := s.member.host
	go func() { e.done <- ending{host.Engage(ctx, connection)} }()
}

// disengage ends the engagement, if there is one, and returns when it has ended.
func (s *session) disengage() {
	if s.engaged == nil {
		return
	}
	s.engaged.cancel()
	<-s.engaged.done // the error of an engagement that we end says nothing
	s.engaged = nil
	s.member.claims.end(&s.member.claim)
}

// ended takes what an engagement returned that ended by itself, and says when
// the next one begins: at once where there is no error. One that lasted was a
// success.
func (s *session) ended(ctx context.Context, err error, now time.Time) {
	s.engaged.cancel()
	began := s.engaged.began
	if now.Sub(began) >= s.member.options.UnreachableAfter {
		s.engagements.reset()
	}
	s.engaged = nil
	s.member.claims.end(&s.member.claim)
	if err == nil {
		s.nextEngage = began.Add(s.member.options.BackoffMin) // has passed, unless it was very short
		return
	}
	s.failed = s.login.scrub(err).Error()
	pause := s.engagements.next()
	s.nextEngage = now.Add(pause)
	if ctx.Err() == nil {
		klog.FromContext(ctx).Error(nil, "Engagement ended by itself, will engage again", "because", s.failed, "after", pause)
	}
}

// scrub removes the token from an error, should a host have missed it.
func (l *Login) scrub(err error) error {
	if !l.reveals(err.Error()) {
		return err
	}
	return errors.New(strings.ReplaceAll(err.Error(), l.token, "(token)"))
}

// reveals says whether a text holds the token.
func (l *Login) reveals(text string) bool { return l.token != "" && strings.Contains(text, l.token) }

// connection is made for each engagement.
func (s *session) connection() (*Connection, error) {
	client := &http.Client{Transport: s.link}
	config := &rest.Config{
		Host:           s.link.server.String(),
		UserAgent:      userAgent,
		Transport:      s.link,
		QPS:            queriesPerSecond,
		Burst:          queryBurst,
		RateLimiter:    s.member.limiter,
		WarningHandler: rest.NoWarnings{}, // they are the member's words
	}
	protobuf := rest.CopyConfig(config)
	protobuf.ContentType = runtime.ContentTypeProtobuf
	protobuf.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	set, err := kubernetes.NewForConfigAndClient(protobuf, client)
	if err != nil {
		return nil, err
	}
	return &Connection{
		Member:     s.member.offer.Member,
		UID:        s.uid,
		Version:    s.version,
		Config:     config,
		Client:     client,
		Kubernetes: set,
		clock:      &s.member.contact.clock,
	}, nil
}

var minorVersion = regexp.MustCompile(`^v?\d+\.\d+`)

// minor is the part of a version that decides how a member counts.
func minor(version string) string { return strings.TrimPrefix(minorVersion.FindString(version), "v") }
