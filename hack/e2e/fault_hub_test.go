package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// ownWorld is a scene of a test's own, with the same program.
func ownWorld(t *testing.T, members ...string) *world {
	t.Helper()
	s, err := scene.Start(t.Context(), scene.Options{
		Dir: t.TempDir(), Bin: shared.Bin, Built: true, Members: members, Owned: true, Out: t.Output(),
	})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Scene: s}
	t.Cleanup(func() {
		if w.hub != nil {
			_ = w.hub.Kill()
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, name := range members {
		if err := errors.Join(prepare(t.Context(), s.Member(name)), s.Register(t.Context(), s.Member(name), registration(name))); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// ownTenant is a tenant of a world of its own, with a hub.
func ownTenant(t *testing.T, members ...string) *tenant {
	t.Helper()
	w := ownWorld(t, members...)
	var err error
	if w.hub, err = w.StartHub(t.Context()); err != nil {
		t.Fatal(err)
	}
	return w.tenant(t, members...)
}

// starts runs the hub and waits until it leads: at most as long as the lease
// of one that was killed lasts.
func (x *tenant) starts() {
	x.t.Helper()
	hub, err := x.StartHub(x.t.Context())
	x.must(err)
	x.hub = hub
	x.eventually(soon, leading(hub))
}

func leading(hub *scene.Process) func(context.Context) error { return ready(hub, "leading") }

func ready(hub *scene.Process, want string) func(context.Context) error {
	return func(ctx context.Context) error {
		state, err := hub.Ready(ctx)
		if err == nil && state != want {
			err = fmt.Errorf("it is %q, want %q", state, want)
		}
		return err
	}
}

// stops asks the hub to end, which it does in good order and in time.
func (x *tenant) stops() {
	x.t.Helper()
	took, err := x.hub.Stop()
	x.must(err)
	x.t.Logf("the hub ended after %.2f s", took.Seconds())
	if took >= 5*time.Second {
		x.t.Errorf("the hub took %s to end", took)
	}
	x.hub = nil
}

// kills ends the hub as a loss of power would.
func (x *tenant) kills() {
	x.t.Helper()
	x.must(x.hub.Kill())
	x.hub = nil
}

// hubWrites are the hub's writes to its own API since a time, other than to the
// lease.
func (x *tenant) hubWrites(since time.Time, resources ...string) []scene.Write {
	x.t.Helper()
	writes, err := x.Hub.Writes(since, func(w scene.Write) bool {
		return w.User == scene.HubUser && slices.Contains(resources, w.Resource)
	})
	x.must(err)
	return writes
}

// Whatever ends the hub, the numbers on record stay until there are better
// ones: those of members that cannot be read are kept, marked, and never
// dropped, and what has not changed is not written again.
func TestFaultHub(t *testing.T) {
	t.Parallel()
	x := ownTenant(t, "one", "two")
	x.create("one", pod("a", requests("cpu", "1")), pod("b"))
	x.create("two", pod("a", requests("cpu", "2")), pod("b"), pod("c"))
	x.quota("all", list("pods", "10", "requests.cpu", "10"))
	x.quota("unserved", list("pods", "10", "count/unicorns.example.com", "1"))
	x.quota("scoped", list("pods", "10"), func(s *v1alpha1.FleetQuotaSpec) {
		s.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}
	})
	x.becomes("all", complete, uses("pods", "5", "requests.cpu", "3"))
	x.becomes("unserved", condition("UsageComplete", "False", "ResourcesUnknown"), uses("pods", "5"))
	x.becomes("scoped", complete, uses("pods", "3"))
	seen := x.watch("all")
	step := func(name string, does func(x *tenant)) {
		t.Run(name, func(t *testing.T) { does(&tenant{world: x.world, t: t, namespace: x.namespace}) })
	}

	step("a restart writes nothing that has not changed", func(x *tenant) {
		time.Sleep(3 * time.Second)
		began, before := time.Now(), x.members()
		x.stops()
		x.starts()
		time.Sleep(13 * time.Second) // longer than the hub waits for members to answer
		if writes := x.hubWrites(began, "fleetquotas/status", "fleetmembers", "fleetmembers/status", "events"); len(writes) > 0 {
			x.t.Errorf("%d writes: %v\nbefore %+v\nafter  %+v", len(writes), writes, before, x.members())
		}
		x.create("one", pod("c"))
		x.becomes("all", complete, uses("pods", "6"))
		x.delete("one", pods, "c")
		x.becomes("all", complete, uses("pods", "5"))
	})

	step("a restart while a member is slow for a moment marks nothing", func(x *tenant) {
		began := time.Now()
		x.stops()
		x.must(x.Member("two").Freeze(x.t.Context()))
		x.starts()
		x.create("one", pod("c"))
		time.Sleep(3 * time.Second)
		x.must(x.Member("two").Thaw(x.t.Context()))
		x.becomes("all", complete, uses("pods", "6"))
		x.delete("one", pods, "c")
		x.becomes("all", complete, uses("pods", "5"))
		if writes := x.hubWrites(began, "fleetquotas/status"); len(writes) > 3*2 { // each of three quotas for each pod
			x.t.Errorf("%d writes: %v", len(writes), writes)
		}
		if writes := x.hubWrites(began, "fleetmembers", "fleetmembers/status", "events"); len(writes) > 0 {
			x.t.Errorf("%d writes about members that nothing happened to: %v", len(writes), writes)
		}
	})
	seen.stop()
	seen.always(t, complete)
	seen = x.watch("all")

	step("a second process stands by and takes over", func(x *tenant) {
		first := x.hub
		second, err := x.StartHub(x.t.Context(), "--logging-format=json")
		x.must(err)
		x.must(ready(second, "standby")(x.t.Context()))
		x.must(leading(first)(x.t.Context()))
		if exports(x, second, "fleetquota_quota") || !exports(x, first, "fleetquota_quota") {
			x.t.Error("only the one that leads exports what is used")
		}
		x.create("one", pod("d"))
		x.becomes("all", complete, uses("pods", "6"))
		began := time.Now()
		x.stops()
		x.hub = second
		x.eventually(20*time.Second, leading(second))
		isJSON(x.t, second.Log)
		x.t.Logf("the second leads after %.1f s", time.Since(began).Seconds())
		x.delete("one", pods, "d")
		x.becomes("all", complete, uses("pods", "5"))
	})

	step("killed while all members are live", func(x *tenant) {
		x.kills()
		x.create("one", pod("e")) // while nobody looks
		x.starts()
		x.becomes("all", complete, uses("pods", "6"))
		x.delete("one", pods, "e")
		x.becomes("all", complete, uses("pods", "5"))
	})

	var frozen time.Time
	step("a shutdown does not wait for a member that is frozen", func(x *tenant) {
		x.must(x.Member("two").Freeze(x.t.Context()))
		frozen = time.Now()
		time.Sleep(time.Second)
		x.stops()
		x.starts()
		q := x.becomesWithin(45*time.Second, "all", notLive("two"), memberUses("two", "pods", "3", "requests.cpu", "2"), uses("pods", "5"))
		if at := rowOf(q, "two").LastObservedTime.Time; at.After(frozen.Add(3 * time.Second)) {
			x.t.Errorf("last observed at %s, long after it froze", at.Sub(frozen))
		}
	})

	step("killed and restarted while a member is unreachable", func(x *tenant) {
		before, err := x.get(x.t.Context(), "all")
		x.must(err)
		if !testing.Short() {
			before = x.becomesWithin(unreachableWithin, "all", phase("two", v1alpha1.Unreachable))
		}
		x.kills()
		x.create("one", pod("f"))
		x.starts()
		q := x.becomesWithin(soon, "all", notLive("two"), memberUses("two", "pods", "3", "requests.cpu", "2"), uses("pods", "6", "requests.cpu", "3"),
			phase("one", v1alpha1.Live), condition("UsageComplete", "False", "MembersNotLive"))
		was, is := rowOf(before, "two").LastObservedTime, rowOf(q, "two").LastObservedTime
		if !was.Equal(is) {
			x.t.Errorf("the time of the last observation moved from %s to %s", was, is)
		}
		time.Sleep(12 * time.Second) // past the time that the hub waits for members
		x.becomes("all", notLive("two"), uses("pods", "6", "requests.cpu", "3"))
		x.becomes("scoped", notLive("two"), uses("pods", "4"))
		x.delete("one", pods, "f")
		x.becomesWithin(5*time.Second, "all", uses("pods", "5"))
	})

	step("the member answers again", func(x *tenant) {
		x.must(x.Member("two").Thaw(x.t.Context()))
		x.becomesWithin(time.Minute, "all", complete, uses("pods", "5", "requests.cpu", "3"))
		x.agrees("all", "one", "two")
		x.agrees("scoped", "one", "two")
	})

	step("the hub's own API server is away for a moment", func(x *tenant) {
		x.must(x.Hub.Freeze(x.t.Context()))
		x.create("two", pod("g"))
		time.Sleep(5 * time.Second)
		x.must(x.Hub.Thaw(x.t.Context()))
		x.becomes("all", complete, uses("pods", "6"))
		x.delete("two", pods, "g")
		x.becomes("all", complete, uses("pods", "5"))
	})

	seen.stop()
	t.Logf("%d statuses were seen", seen.len())
	seen.always(t, rows("one", "two"), usesAtLeast("pods", "5", "requests.cpu", "3"))

	step("a Secret that went while no hub ran, and the hub as a member of itself", func(x *tenant) {
		x.stops()
		x.must(x.DeleteSecret(x.t.Context(), "two"))
		x.must(x.Hub.Allow(x.t.Context(), pods.GroupResource(), "fleetquota-controller"))
		x.must(x.Hub.Allow(x.t.Context(), corev1.Resource("namespaces"), "fleetquota-controller"))
		x.must(x.Hub.Create(x.t.Context(), x.namespace, pod("a", requests("cpu", "1"))))
		hub, err := x.StartHub(x.t.Context(), "--include-hub=home")
		x.must(err)
		x.hub = hub
		x.becomes("all", complete, rows("home", "one"), memberUses("home", "pods", "1"), uses("pods", "3", "requests.cpu", "2"))
		x.eventually(soon, func(ctx context.Context) error {
			_, err := x.Hub.Quota.Members().Get(ctx, "two", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return errors.Join(errors.New("the FleetMember of the lost Secret is still there"), err)
		})
		x.stops()
	})
}

// members are the statuses of all members.
func (x *tenant) members() []v1alpha1.FleetMemberStatus {
	x.t.Helper()
	list, err := x.Hub.Quota.Members().List(x.t.Context(), metav1.ListOptions{})
	x.must(err)
	var statuses []v1alpha1.FleetMemberStatus
	for i := range list.Items {
		statuses = append(statuses, list.Items[i].Status)
	}
	return statuses
}

// exports says whether a hub's metrics have a name.
func exports(x *tenant, hub *scene.Process, name string) bool {
	x.t.Helper()
	text, err := hub.Scrape(x.t.Context())
	x.must(err)
	return strings.Contains(text, "\n"+name+"{")
}

// isJSON wants every line of a log to be an object with a message.
func isJSON(t *testing.T, path string) {
	t.Helper()
	log, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(log) {
		var entry struct {
			Message string `json:"msg"`
		}
		if err := json.Unmarshal(line, &entry); err != nil || entry.Message == "" {
			t.Errorf("not a structured line: %s", line)
		}
	}
}
