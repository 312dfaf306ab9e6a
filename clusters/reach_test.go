package clusters_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/fleetquota/fleetquota/clusters"
)

var errEngage = errors.New("engage")

func TestAFrozenMemberBecomesStaleThenUnreachableThenLive(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		w.secret("east", config(c.kubeconfig()))
		w.serve()
		w.after(45 * time.Second)
		c.freeze()
		w.after(9 * time.Second)
		w.want("east", clusters.Live, "", "")
		w.after(16 * time.Second) // 25 s
		w.want("east", clusters.Stale, clusters.ReasonTimeout, "")
		w.after(34 * time.Second) // 59 s: the last success may be as late as the freeze
		stale := w.state("east").LastContact
		w.after(16 * time.Second) // 75 s
		w.want("east", clusters.Unreachable, clusters.ReasonTimeout, "")
		if got := w.state("east").LastContact; !got.Equal(stale) {
			t.Errorf("the last contact moved to %v", got)
		}
		w.wantEngaged("east", 1)
		w.after(time.Hour)
		c.thaw()
		w.after(15 * time.Second)
		w.want("east", clusters.Live, "", "")
		w.wantEngaged("east", 1)
	})
}

func TestABlipOfOneProbeIsNotReported(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		w.secret("east", config(c.kubeconfig()))
		w.serve()
		before := w.observed()
		c.set(func(c *cluster) { c.status = http.StatusServiceUnavailable })
		w.after(12 * time.Second)
		c.set(func(c *cluster) { c.status = 0 })
		w.after(time.Minute)
		if w.observed() != before {
			t.Error("it was reported")
		}
	})
}

func TestAMemberThatNeverAnsweredSaysWhy(t *testing.T) {
	wrong := newAuthority(t)
	for name, tc := range map[string]struct {
		server string
		change func(c *cluster)
		reason string
	}{
		"nothing listens":        {"https://dead", nil, clusters.ReasonConnectionRefused},
		"no such name":           {"https://nowhere", nil, clusters.ReasonHostNotFound},
		"no answer":              {"https://blackhole", nil, clusters.ReasonTimeout},
		"frozen":                 {"https://east", func(c *cluster) { c.frozen = make(chan struct{}) }, clusters.ReasonTimeout},
		"another authority":      {"https://east", func(c *cluster) { c.ca = wrong }, clusters.ReasonTLSError},
		"not authorized":         {"https://east", func(c *cluster) { c.token = "other" }, clusters.ReasonUnauthorized},
		"forbidden":              {"https://east", func(c *cluster) { c.status = http.StatusForbidden }, clusters.ReasonForbidden},
		"not ready":              {"https://east", func(c *cluster) { c.status = http.StatusServiceUnavailable }, clusters.ReasonServerError},
		"not Kubernetes":         {"https://east", func(c *cluster) { c.version = "" }, clusters.ReasonUnknownServer},
		"a redirect":             {"https://east", func(c *cluster) { c.status = http.StatusFound }, clusters.ReasonUnknownServer},
		"no identity":            {"https://east", func(c *cluster) { c.uid = "" }, clusters.ReasonUnknownServer},
		"a server without a UID": {"https://east", func(c *cluster) { c.uid = "" }, clusters.ReasonUnknownServer},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				c := w.cluster("east", "uid-1")
				token := c.token
				if tc.change != nil {
					tc.change(c)
				}
				w.secret("east", config(kubeconfig(tc.server, token, c.ca.pem)))
				w.serve()
				w.after(6 * time.Second)
				credentials := ""
				if tc.reason == clusters.ReasonUnauthorized {
					credentials = tc.reason
				}
				w.want("east", clusters.Never, tc.reason, credentials)
				w.wantIdle("east")
			})
		})
	}
}

func TestADeadMemberDelaysNoOther(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, dead := range []string{"blackhole", "dead", "nowhere"} {
			w.secret(dead, config(kubeconfig("https://"+dead, "t0ken", nil)))
		}
		frozen := w.cluster("frozen", "uid-0")
		frozen.freeze()
		w.secret("frozen", config(frozen.kubeconfig()))
		c := w.cluster("west", "uid-1")
		w.secret("west", config(c.kubeconfig()))
		w.serve()
		w.wantEngaged("west", 1)
		late := w.cluster("east", "uid-2")
		w.secret("east", config(late.kubeconfig()))
		w.wantEngaged("east", 1)
	})
}

func TestA401ReadsTheSecretAgainAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.hub.PrependWatchReactor("secrets", func(clienttesting.Action) (bool, watch.Interface, error) {
			return true, watch.NewFake(), nil // a watch that says nothing
		})
		c := w.cluster("east", "uid-1")
		w.secret("east", config(c.kubeconfig()))
		w.serve()
		c.set(func(c *cluster) { c.token = "the-new-token" })
		w.edit("east", config(c.kubeconfig()))
		before := w.observed()
		w.after(10 * time.Second)
		w.wantEngaged("east", 1)
		if c.requests("the-new-token") == 0 || w.observed() != before {
			t.Error("the new token is not in use, or its predecessor was reported")
		}
	})
}

func TestA401ThatStaysIsReported(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		w.secret("east", config(c.kubeconfig()))
		w.serve()
		contact := w.state("east").LastContact
		c.set(func(c *cluster) { c.token = "unknown to the hub" })
		w.after(11 * time.Second)
		w.want("east", clusters.Live, "", clusters.ReasonUnauthorized)
		w.after(15 * time.Second)
		w.want("east", clusters.Stale, clusters.ReasonUnauthorized, clusters.ReasonUnauthorized)
		if got := w.state("east").LastContact; got.Sub(contact) > 10*time.Second {
			t.Errorf("the last contact moved to %v", got)
		}
		c.set(func(c *cluster) { c.token = "token-of-east" })
		w.after(15 * time.Second)
		w.want("east", clusters.Live, "", "")
		w.wantEngaged("east", 1)
	})
}

func TestA401OfTheEngagementBringsTheProbeForward(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		w.secret("east", config(c.kubeconfig()))
		w.serve()
		c.set(func(c *cluster) { c.token = "unknown to the hub" })
		_, _ = w.connection("east").Kubernetes.Discovery().ServerVersion()
		w.after(time.Second)
		w.want("east", clusters.Live, "", clusters.ReasonUnauthorized)
	})
}

func TestAnotherClusterBehindTheNameBeginsAnEngagementAnew(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		w.secret("east", config(c.kubeconfig()))
		w.serve()
		c.set(func(c *cluster) { c.uid = "uid-2" })
		c.cut()
		w.after(11 * time.Second)
		w.wantEngaged("east", 2)
		if got := w.connection("east").UID; got != "uid-2" {
			t.Errorf("engaged with %q", got)
		}
	})
}

func TestAnotherMinorVersionBeginsAnEngagementAnew(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		w.secret("east", config(c.kubeconfig()))
		w.serve()
		c.set(func(c *cluster) { c.version = "v1.37.3" })
		w.after(11 * time.Second)
		w.wantEngaged("east", 1)
		c.set(func(c *cluster) { c.version = "v1.38.0" })
		w.after(11 * time.Second)
		w.wantEngaged("east", 2)
		if got := w.connection("east").Version; got != "v1.38.0" {
			t.Errorf("engaged with %q", got)
		}
	})
}

func TestATokenStaysWithItsServer(t *testing.T) {
	inWorld(t, func(w *world) {
		c, elsewhere := w.cluster("east", "uid-1"), w.cluster("elsewhere", "uid-2")
		w.secret("east", config(c.kubeconfig()))
		w.serve()
		c.set(func(c *cluster) { c.status = http.StatusFound })
		req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "https://east:6443/version", http.NoBody)
		must(t, err)
		resp, err := w.connection("east").Client.Do(req)
		if err == nil {
			_ = resp.Body.Close()
			t.Error("a redirect was followed")
		}
		if elsewhere.requests(c.token) > 0 {
			t.Error("the token was sent elsewhere")
		}
	})
}
