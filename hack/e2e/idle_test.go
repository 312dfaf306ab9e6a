package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// A hub with nothing to do writes nothing, not at the hub and not in members,
// its own lease aside: also when a kind is not served, a Secret is malformed, a
// member does not answer, and a local quota is kept by us.
//
// It runs before the tests that run at once.
func TestIdleHubWritesNothing(t *testing.T) {
	x := shared.tenant(t)
	for i, member := range []string{"east", "west", "south"} {
		x.create(member, zoo(i)...)
		x.create(member, resourceQuota("local", "pods", "100", "requests.cpu", "100"))
	}
	for _, member := range []string{"east", "west", "south"} {
		x.localAgrees(member, "local")
	}
	x.quota("all", everything(), sharedMembers)
	x.quota("unserved", list("pods", "1", "count/unicorns.example.com", "1"))
	x.quota("none", list("pods", "1"), selecting("region", "nowhere"))
	dead := deadKubeconfig()
	x.must(x.WriteSecret(t.Context(), scene.Registration{Name: "idle-dead"}, dead))
	x.must(x.WriteSecret(t.Context(), scene.Registration{Name: "idle-garbage"}, []byte("garbage: [")))
	t.Cleanup(func() { x.forget("idle-dead", "idle-garbage") })
	x.agrees("all", "east", "west", "south")
	x.becomes("unserved", condition("UsageComplete", "False", "MembersNotLive"), phase("idle-dead", "NeverSynced"))
	x.becomes("none", condition("UsageComplete", "False", "NoMembers"))
	x.member("idle-dead", memberCondition("Ready", "False", "ConnectionRefused"))
	x.member("idle-garbage", memberCondition("CredentialsValid", "False", "ParseError"))

	window := time.Minute
	if testing.Short() {
		window = 20 * time.Second
	}
	time.Sleep(5 * time.Second) // events are sent behind
	began := time.Now()
	time.Sleep(window)
	for _, cluster := range []*scene.Cluster{x.Hub, x.Member("east"), x.Member("west"), x.Member("south")} {
		writes, err := cluster.Writes(began, func(w scene.Write) bool {
			return slices.Contains([]string{scene.HubUser, scene.MemberUser}, w.User) && w.Resource != "leases"
		})
		x.must(err)
		if len(writes) > 0 {
			t.Errorf("%d writes at %s in %s: %v", len(writes), cluster.Name(), window, writes[:min(5, len(writes))])
		}
		leases, err := cluster.Writes(began, func(w scene.Write) bool { return w.User == scene.HubUser && w.Resource == "leases" })
		x.must(err)
		if cluster == x.Hub && len(leases) == 0 {
			t.Error(fmt.Errorf("not even the lease was renewed: is the audit log read?"))
		}
	}
}
