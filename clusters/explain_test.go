package clusters_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/clusters"
)

func TestExplainQuotesNothingThatTheMemberSays(t *testing.T) {
	t.Parallel()
	const secret = "token-that-a-server-quotes"
	cases := map[string]struct {
		err  error
		want string
	}{
		"a refusal": {
			&apierrors.StatusError{ErrStatus: metav1.Status{Code: 403, Reason: "Forbidden" + secret, Message: secret}},
			"the member answers 403 Forbidden",
		},
		"a code that there is not": {
			&apierrors.StatusError{ErrStatus: metav1.Status{Code: 999, Message: secret}},
			"the member answers 999 ",
		},
		"anything else": {errors.New(secret), "the connection to the server failed"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := clusters.Explain(c.err)
			if got.Error() != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if !errors.Is(got, c.err) {
				t.Error("what kind of error it is can no longer be asked")
			}
		})
	}
	if clusters.Explain(nil) != nil {
		t.Error("no error is one")
	}
}

func TestAMemberSaysNoMoreOfItselfThanAVersionAndAnIdentity(t *testing.T) {
	cases := map[string]func(*cluster){
		"a version that quotes the token":   func(c *cluster) { c.version = "v1.37.2+" + c.token },
		"an identity that quotes the token": func(c *cluster) { c.uid = "u-" + c.token },
		"a long version":                    func(c *cluster) { c.version = "v1.37.2+" + strings.Repeat("x", 100) },
		"a version that is none":            func(c *cluster) { c.version = "latest" },
		"a version with other words":        func(c *cluster) { c.version = "v1.37.2 <b>hello</b>" },
		"an identity with other words":      func(c *cluster) { c.uid = "<b>hello</b>" },
	}
	for name, lie := range cases {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				c := w.cluster("east", "uid-1")
				c.set(lie)
				w.secret("east", config(c.kubeconfig()))
				w.serve()
				w.after(time.Minute)
				w.want("east", clusters.Never, clusters.ReasonUnknownServer, "")
				if s := w.state("east"); s.Version != "" || s.UID != "" {
					t.Errorf("it is shown as %q, %q", s.Version, s.UID)
				}
			})
		})
	}
}

func TestWhyAnEngagementFailsIsShownUntilOneWorks(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		w.fail["east"] = errEngage
		w.secret("east", config(c.kubeconfig()))
		w.serve()
		w.after(15 * time.Second)
		w.want("east", clusters.Live, clusters.ReasonEngagementFailed, "")
		if got := w.state("east").Message; got != errEngage.Error() {
			t.Errorf("message %q", got)
		}
		told := w.observed()
		w.after(30 * time.Second)
		if now := w.observed(); now != told {
			t.Errorf("%d more observations while the problem stands still", now-told)
		}
		w.mu.Lock()
		delete(w.fail, "east")
		w.mu.Unlock()
		w.after(2 * time.Minute)
		w.want("east", clusters.Live, "", "")
	})
}

func TestAnAnswerIsBoundedAndAWatchIsNot(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		clusters.SetLongest(&w.options, 10*1024)
		w.secret("east", config(c.kubeconfig()))
		w.serve()
		w.after(time.Second)
		conn := w.connection("east")
		read := func(path string) error {
			req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, conn.Config.Host+path, http.NoBody)
			if err != nil {
				return err
			}
			resp, err := conn.Client.Do(req)
			if err != nil {
				return err
			}
			defer func() { _ = resp.Body.Close() }()
			_, err = io.Copy(io.Discard, resp.Body)
			return err
		}
		var long *http.MaxBytesError
		if err := read("/endless"); !errors.As(err, &long) {
			t.Errorf("a long answer: %v", err)
		}
		if err := read("/endless?watch=true"); err != nil {
			t.Errorf("a long watch: %v", err)
		}
	})
}
