package clusters_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/fleetquota/fleetquota/clusters"
)

func TestOfTwoSecretsWithOneNameTheOlderWins(t *testing.T) {
	inWorld(t, func(w *world) {
		a, b := w.cluster("a", "uid-1"), w.cluster("b", "uid-2")
		w.secret("one", config(a.kubeconfig()), annotated(clusters.AnnotationName, "east"))
		w.secret("two", config(b.kubeconfig()), annotated(clusters.AnnotationName, "east"))
		w.serve()
		if !w.did("refuse NameTaken two") || w.did("refuse NameTaken one") {
			t.Errorf("log %v", w.log)
		}
		if got := w.connection("east").UID; got != "uid-1" {
			t.Errorf("engaged with %q", got)
		}
		w.delete("one")
		w.wantEngaged("east", 2)
		if got := w.connection("east").UID; got != "uid-2" {
			t.Errorf("engaged with %q after the older is gone", got)
		}
		if w.did("gone east") {
			t.Error("the name went although another Secret has it")
		}
	})
}

func TestABadNameIsRefused(t *testing.T) {
	inWorld(t, func(w *world) {
		w.secret("one", config("{}"), annotated(clusters.AnnotationName, "No Name"))
		w.serve()
		w.edit("one", labelled("x", "y"))
		refusals := 0
		for _, line := range w.log {
			if line == "refuse InvalidName one" {
				refusals++
			}
		}
		if refusals != 1 || len(w.states) != 0 {
			t.Errorf("log %v", w.log)
		}
	})
}

func TestOneClusterIsEngagedUnderOneName(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		w.secret("older", config(c.kubeconfig()))
		w.secret("younger", config(c.kubeconfig()))
		w.serve()
		w.wantEngaged("older", 1)
		w.wantIdle("younger")
		w.want("younger", clusters.Live, clusters.ReasonDuplicateCluster, "")
		w.edit("older", annotated(clusters.AnnotationPause, "true"))
		w.wantIdle("younger") // the numbers of a paused member stay
		w.delete("older")
		w.after(31 * time.Second)
		if w.connection("younger") == nil {
			t.Error("the younger is not engaged although the older is gone")
		}
		w.want("younger", clusters.Live, "", "")
	})
}

func TestTheOlderNameTakesItsClusterBack(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		w.secret("older", config(kubeconfig("https://dead", c.token, c.ca.pem)))
		w.secret("younger", config(c.kubeconfig()))
		w.serve()
		w.wantEngaged("younger", 1)
		w.edit("older", config(c.kubeconfig()))
		w.wantEngaged("older", 1)
		w.wantIdle("younger")
		w.want("younger", clusters.Live, clusters.ReasonDuplicateCluster, "")
	})
}

func TestTheHubMayBeAMemberOfItself(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("hub", "uid-1")
		w.secrets.HubName = "home"
		w.secrets.HubConfig = &rest.Config{
			Host: "hub:6443", BearerToken: c.token, TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.pem},
		}
		w.secret("home", config("{}"))
		w.serve()
		w.wantEngaged("home", 1)
		w.want("home", clusters.Live, "", "")
		if !w.did("refuse NameTaken home") {
			t.Errorf("log %v", w.log)
		}
	})
}

func ofClusterAPI(s *corev1.Secret) {
	s.Labels = map[string]string{clusters.LabelClusterAPI: "east"}
	s.Type = clusters.TypeClusterAPI
	s.Data = map[string][]byte{"value": s.Data["kubeconfig"]}
}

func TestSecretsOfOthersAreMembersToo(t *testing.T) {
	for name, tc := range map[string]struct {
		edit    edit
		options clusters.SecretOptions
		member  string
	}{
		"multicluster-runtime": {func(s *corev1.Secret) {
			s.Labels = map[string]string{clusters.LabelMulticluster: "true"}
		}, clusters.SecretOptions{}, "east-kubeconfig"},
		"Cluster API":                    {ofClusterAPI, clusters.SecretOptions{ClusterAPI: true}, "east"},
		"Cluster API, but not asked for": {ofClusterAPI, clusters.SecretOptions{}, ""},
		"both labels":                    {labelled(clusters.LabelMulticluster, "true"), clusters.SecretOptions{}, "east-kubeconfig"},
		"neither":                        {func(s *corev1.Secret) { s.Labels = nil }, clusters.SecretOptions{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				c := w.cluster("east", "uid-1")
				w.secrets = tc.options
				w.secret("east-kubeconfig", config(c.kubeconfig()), tc.edit)
				w.serve()
				if tc.member == "" {
					if len(w.states) > 0 {
						t.Errorf("it is a member: %v", w.log)
					}
					return
				}
				w.wantEngaged(tc.member, 1)
			})
		})
	}
}

func TestCredentialsThatExpireAreReportedThen(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		expires := w.begin.Add(time.Hour)
		c.token = jwt(expires)
		w.secret("east", config(c.kubeconfig()))
		w.serve()
		w.want("east", clusters.Live, "", "")
		if got := w.state("east").CredentialsExpire; !got.Equal(expires) {
			t.Errorf("they expire at %v, want %v", got, expires)
		}
		w.after(time.Hour)
		w.want("east", clusters.Live, "", clusters.ReasonExpired)
	})
}

func TestAMemberThatWasRestoredFromABackupIsEngagedAnew(t *testing.T) {
	inWorld(t, func(w *world) {
		c := w.cluster("east", "uid-1")
		c.set(func(c *cluster) { c.store = 700 })
		w.secret("east", config(c.kubeconfig()))
		w.serve()
		w.after(time.Second)
		c.set(func(c *cluster) { c.store = 900 })
		w.after(30 * time.Second)
		w.wantEngaged("east", 1)
		c.set(func(c *cluster) { c.store = 800 })
		w.after(30 * time.Second)
		w.wantEngaged("east", 2)
	})
}
