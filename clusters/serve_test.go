package clusters_test

import (
	"testing"
	"time"

	"github.com/fleetquota/fleetquota/clusters"
)

func TestAMemberThatAnswersIsEngaged(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		c.skew = -5 * time.Second
		w.secret("east", config(c.kubeconfig()), labelled("tier", "prod"), labelled("app.kubernetes.io/name", "x"),
			labelled("helm.sh/chart", "x"), labelled("argocd.argoproj.io/instance", "x"),
			labelled("kustomize.toolkit.fluxcd.io/name", "x"), annotated(clusters.AnnotationLocalStatus, "Always"))
		w.serve()
		w.wantEngaged("east", 1)
		w.want("east", clusters.Live, "", "")
		s := w.state("east")
		if s.UID != "uid-1" || s.Version != "v1.37.2" || s.ClockOffset != -5*time.Second || s.LastContact.IsZero() {
			t.Errorf("state %+v", s)
		}
		if m := s.Member; len(m.Labels) != 1 || m.Labels["tier"] != "prod" || m.LocalStatus != "Always" {
			t.Errorf("member %+v", m)
		}
		conn := w.connection("east")
		if conn.UID != "uid-1" || conn.Version != "v1.37.2" || conn.Config.BearerToken != "" {
			t.Errorf("connection %+v", conn)
		}
		if now := time.Now(); conn.Now(now) != now.Add(-5*time.Second) {
			t.Errorf("the member's clock is %v", conn.Now(now).Sub(now))
		}
		before := w.observed()
		w.after(10 * time.Minute)
		if w.observed() != before {
			t.Error("something was observed though nothing changed")
		}
		if n := c.requests(c.token); n < 120 || n > 130 {
			t.Errorf("%d requests in 10 minutes, want two per 10 s and a few for the identity", n)
		}
	})
}

func TestATokenIsSwappedInPlace(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		w.secret("east", config(c.kubeconfig()))
		w.serve()
		c.set(func(c *cluster) { c.token = "the-new-token" })
		w.edit("east", config(c.kubeconfig()))
		w.wantEngaged("east", 1)
		w.want("east", clusters.Live, "", "")
		if c.requests("the-new-token") == 0 {
			t.Error("the new token was not tried at once")
		}
		if _, err := w.connection("east").Kubernetes.Discovery().ServerVersion(); err != nil {
			t.Errorf("a client made before the swap: %v", err)
		}
	})
}

func TestANewAuthorityBeginsAnEngagementAnew(t *testing.T) {
	inWorld(t, func(w *world) {
		c, other := w.cluster("east", "uid-1"), w.cluster("west", "uid-2")
		w.secret("east", config(c.kubeconfig()))
		w.secret("west", config(other.kubeconfig()))
		w.serve()
		w.edit("east", config(kubeconfig("https://east:6443", c.token, append(c.ca.pem, other.ca.pem...))))
		w.wantEngaged("east", 2)
		w.wantEngaged("west", 1)
		w.want("east", clusters.Live, "", "")
	})
}

func TestANewLabelIsOnlyObserved(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		w.secret("east", config(c.kubeconfig()))
		w.serve()
		w.edit("east", labelled("tier", "prod"))
		w.wantEngaged("east", 1)
		if w.state("east").Member.Labels["tier"] != "prod" {
			t.Error("the label was not observed")
		}
	})
}

func TestAPausedMemberIsLeftAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		w.secret("east", config(c.kubeconfig()))
		w.serve()
		w.edit("east", annotated(clusters.AnnotationPause, "true"))
		w.wantIdle("east")
		w.want("east", clusters.Live, clusters.ReasonPaused, "")
		asked := c.requests(c.token)
		w.after(2 * time.Minute)
		w.want("east", clusters.Unreachable, clusters.ReasonPaused, "")
		if c.requests(c.token) != asked {
			t.Error("it was asked while paused")
		}
		w.edit("east", annotated(clusters.AnnotationPause, "false"))
		w.wantEngaged("east", 2)
		w.want("east", clusters.Live, "", "")
	})
}

func TestADeletedMemberIsGoneAfterItsGrace(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		w.secret("east", config(c.kubeconfig()))
		w.serve()
		w.delete("east")
		w.after(29 * time.Second)
		w.wantEngaged("east", 1)
		w.want("east", clusters.Live, "", "")
		client := w.connection("east").Kubernetes
		w.after(2 * time.Second)
		w.wantIdle("east")
		if !w.did("gone east") {
			t.Error("the host was not told")
		}
		if _, err := client.Discovery().ServerVersion(); err == nil {
			t.Error("its clients still work")
		}
		w.secret("east", config(c.kubeconfig()))
		w.wantEngaged("east", 2)
	})
}

func TestAMemberThatComesBackInItsGraceNeverLeft(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		w.secret("east", config(c.kubeconfig()))
		w.serve()
		before := w.observed()
		w.delete("east")
		w.after(20 * time.Second)
		w.secret("east", config(c.kubeconfig()))
		w.after(time.Minute)
		w.wantEngaged("east", 1)
		if w.did("gone east") || w.observed() != before {
			t.Error("the host was told of it")
		}
	})
}

func TestARefusedKubeconfigLeavesTheLastOneInUse(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		w.secret("east", config("{}"))
		w.serve()
		w.want("east", clusters.Never, clusters.ReasonAmbiguous, clusters.ReasonAmbiguous)
		w.edit("east", config(c.kubeconfig()))
		w.want("east", clusters.Live, "", "")
		w.edit("east", config(kubeconfig("http://east", c.token, nil)))
		w.after(time.Minute)
		w.want("east", clusters.Live, "", clusters.ReasonServerNotAllowed)
		w.wantEngaged("east", 1)
	})
}

func TestAnEngagementThatFailsIsTriedAgainMoreAndMoreRarely(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		w.fail["east"] = errEngage
		w.secret("east", config(c.kubeconfig()))
		w.serve()
		w.after(time.Minute)
		if n := w.engaged["east"]; n < 5 || n > 9 {
			t.Errorf("%d engagements in a minute", n)
		}
		w.mu.Lock()
		delete(w.fail, "east")
		w.mu.Unlock()
		w.after(5 * time.Minute)
		if w.connection("east") == nil {
			t.Error("it is not engaged again")
		}
	})
}

func TestAnEngagementThatWantsToBeginAnewDoesSoAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		w.anew["east"] = true
		w.secret("east", config(c.kubeconfig()))
		w.serve()
		w.after(61 * time.Second)
		w.wantEngaged("east", 2)
		w.mu.Lock()
		delete(w.anew, "east")
		w.mu.Unlock()
		w.after(time.Minute)
	})
}

func TestEachMemberThatExistedIsObservedBeforeListed(t *testing.T) {
	inWorld(t, func(w *world) {
		for _, name := range []string{"a", "b", "c"} {
			w.secret(name, config("{}"))
		}
		w.serve()
		for i, line := range w.log {
			if line == "listed " && i < 3 {
				t.Errorf("listed too early: %v", w.log)
			}
		}
		if !w.did("listed ") {
			t.Error("never listed")
		}
	})
}

func TestASecretWithoutAKubeconfigSaysSo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.secret("east")
		w.serve()
		w.want("east", clusters.Never, clusters.ReasonMissingKey, clusters.ReasonMissingKey)
	})
}

func TestAMemberOfASlowHostDelaysNoOther(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.cluster("a", "uid-1"), w.cluster("b", "uid-2")
		w.secret("a", config(a.kubeconfig()))
		w.secret("b", config(b.kubeconfig()))
		w.slow = "a"
		w.serve()
		w.delete("a")
		w.after(35 * time.Second) // the host is still in Engage of a
		if w.did("gone a") {
			t.Error("a is gone before its engagement has ended")
		}
		w.secret("a", config(a.kubeconfig()))
		w.edit("b", labelled("tier", "prod"))
		if w.state("b").Member.Labels["tier"] != "prod" {
			t.Error("b waits for a")
		}
		w.after(time.Minute)
		if !w.did("gone a") {
			t.Error("a did not end")
		}
		w.wantEngaged("a", 2)
		w.slow = ""
	})
}
