package clusters

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilversion "k8s.io/apimachinery/pkg/util/version"
	"k8s.io/apimachinery/pkg/version"
)

// answer is what came of one probe.
type answer struct {
	login   *Login // that was tried
	err     error
	version string
	uid     types.UID // empty: not asked for
	// revision is the newest resourceVersion of the member's store; empty: it
	// does not say.
	revision string
	dials    int64 // connections opened up to the identification
	offset   time.Duration
	began    time.Time
	ended    time.Time
}

// question is what one probe asks.
type question struct {
	login    *Login
	identify bool  // ask who the member is
	dials    int64 // ask that too when more connections than these were opened
}

// ask probes the member once: its version, and its identity when asked for or
// when a new connection may lead to another cluster.
func (l *link) ask(ctx context.Context, q question) answer {
	a := answer{login: q.login, began: time.Now()}
	a.err = l.fill(ctx, q, &a)
	a.ended = time.Now()
	return a
}

func (l *link) fill(ctx context.Context, q question, a *answer) error {
	var v version.Info
	header, err := l.read(ctx, "version", &v)
	if err != nil {
		return err
	}
	if !isVersion(v.GitVersion) || q.login.reveals(v.GitVersion) {
		return errNotKubernetes
	}
	a.version = v.GitVersion
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		// The header is cut to the second: half of one later is the best guess.
		a.offset = time.Until(date.Add(time.Second / 2)).Round(time.Second)
	}
	a.revision = l.revision(ctx)
	a.dials = l.conns.opened.Load()
	if !q.identify && a.dials == q.dials {
		return nil
	}
	var system metav1.PartialObjectMetadata
	if _, err := l.read(ctx, "api/v1/namespaces/"+metav1.NamespaceSystem, &system); err != nil {
		return err
	}
	if !isUID(string(system.UID)) || q.login.reveals(string(system.UID)) {
		return errNotKubernetes
	}
	a.uid = system.UID
	return nil
}

// revision asks how far the member's store has come. A list without a version
// is consistent: its own version is that of the store.
func (l *link) revision(ctx context.Context) string {
	var list metav1.PartialObjectMetadataList
	only := url.Values{"fieldSelector": {"metadata.name=" + metav1.NamespaceSystem}}
	if _, err := l.read(ctx, "api/v1/namespaces?"+only.Encode(), &list); err != nil {
		return "" // the hub may not list namespaces
	}
	return list.ResourceVersion
}

// read fetches one small object.
func (l *link) read(ctx context.Context, path string, into any) (http.Header, error) {
	path, query, _ := strings.Cut(path, "?")
	address := l.server.JoinPath(path)
	address.RawQuery = query
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := l.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	const most = 1 << 20 // far more than a namespace holds
	body, err := io.ReadAll(io.LimitReader(resp.Body, most))
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, statusError(resp.StatusCode)
	}
	if json.Unmarshal(body, into) != nil {
		return nil, errNotKubernetes
	}
	return resp.Header, nil
}

type statusError int

func (e statusError) Error() string { return fmt.Sprintf("status %d", int(e)) }

// What a member says of itself is shown to everybody, so it must be no more
// than a version and an identity.
const longestVersion, longestUID = 64, 64

func isVersion(text string) bool {
	_, err := utilversion.ParseGeneric(text)
	return err == nil && len(text) <= longestVersion && plain(text, ".+-_")
}

func isUID(text string) bool { return text != "" && len(text) <= longestUID && plain(text, "-") }

// plain says whether a text has no other characters than letters, digits and
// these.
func plain(text, others string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool {
		letter := 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z'
		return !letter && (r < '0' || '9' < r) && !strings.ContainsRune(others, r)
	})
}
