package e2e_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/deploy"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/hack/e2e/count"
	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// limit changes what a member's ResourceQuota limits.
func (x *tenant) limit(member, name string, pairs ...string) {
	x.t.Helper()
	api := x.Member(member).Kubernetes.CoreV1().ResourceQuotas(x.namespace)
	x.eventually(soon, func(ctx context.Context) error {
		q, err := api.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		q.Spec.Hard = list(pairs...)
		_, err = api.Update(ctx, q, metav1.UpdateOptions{})
		return err
	})
}

// localAgrees waits until the status of a member's ResourceQuota is what
// Kubernetes' own evaluators count.
func (x *tenant) localAgrees(member, name string) {
	x.t.Helper()
	x.localAgreesWithin(soon, member, name)
}

func (x *tenant) localAgreesWithin(patience time.Duration, member, name string) {
	x.t.Helper()
	m := x.Member(member)
	x.eventually(patience, func(ctx context.Context) error {
		q, err := m.Kubernetes.CoreV1().ResourceQuotas(x.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		counted, err := count.Cluster{Kubernetes: m.Kubernetes, Dynamic: m.Dynamic}.Used(ctx, x.namespace, q.Spec)
		if err != nil {
			return err
		}
		if err := same("hard", q.Status.Hard, q.Spec.Hard); err != nil {
			return err
		}
		return same("used", q.Status.Used, counted)
	})
}

// ourWrites are the writes of the hub in the test's namespace of a member.
func (x *tenant) ourWrites(member string, since time.Time) []scene.Write {
	x.t.Helper()
	writes, err := x.Member(member).Writes(since, func(w scene.Write) bool {
		return w.Namespace == x.namespace && strings.HasPrefix(w.User, "system:serviceaccount:"+scene.Namespace+":")
	})
	x.must(err)
	return writes
}

// Where the hub is the quota controller, admission works as with Kubernetes'
// own: limits that are changed hold, and what is given back can be used again.
func TestLocalStatusAlways(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, "west")
	west := x.Member("west")
	x.create("west", pod("old", requests("cpu", "1")), claim("c", "gold", "1Gi"), configMap("a"))
	x.create("west", resourceQuota("compute", "pods", "3", "requests.cpu", "2", "requests.storage", "10Gi", "count/widgets.example.com", "1", "configmaps", "5"))
	x.localAgrees("west", "compute")

	x.create("west", pod("fits", requests("cpu", "1")), custom(widgets, "a"))
	for what, err := range map[string]error{
		"a pod above requests.cpu": west.Create(t.Context(), x.namespace, pod("greedy", requests("cpu", "500m"))),
		"a widget too many":        west.Create(t.Context(), x.namespace, custom(widgets, "b")),
		"a claim that is too big":  west.Create(t.Context(), x.namespace, claim("big", "", "20Gi")),
	} {
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "exceeded quota: compute") {
			t.Errorf("%s is not refused: %v", what, err)
		}
	}

	x.limit("west", "compute", "pods", "3", "requests.cpu", "4", "requests.storage", "10Gi", "count/widgets.example.com", "1", "configmaps", "5")
	x.localAgrees("west", "compute")
	x.create("west", pod("greedy", requests("cpu", "2")))
	x.localUses("west", "compute", "pods", "3", "requests.cpu", "4", "requests.storage", "1Gi", "count/widgets.example.com", "1", "configmaps", "1")

	x.limit("west", "compute", "pods", "1") // below use, and other names gone
	x.localUses("west", "compute", "pods", "3")
	x.delete("west", pods, "old")
	x.delete("west", pods, "fits")
	x.localUses("west", "compute", "pods", "1")
	if err := west.Create(t.Context(), x.namespace, pod("another")); !apierrors.IsForbidden(err) {
		t.Errorf("a second pod is not refused: %v", err)
	}
	x.delete("west", pods, "greedy")
	x.localUses("west", "compute", "pods", "0")
	x.create("west", pod("another"))
	x.localUses("west", "compute", "pods", "1")

	if writes := x.ourWrites("west", time.Time{}); len(writes) == 0 {
		t.Error("the audit log has no write of ours: other tests cannot rely on it")
	}
}

// Quotas without usage come first: a new one among many is answered at once,
// since every creation waits for it.
func TestLocalStatusOfANewQuotaComesFirst(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, "west")
	const many = 40
	for i := range many {
		x.create("west", resourceQuota(fmt.Sprintf("old-%d", i), "pods", "100"))
	}
	x.localAgrees("west", fmt.Sprintf("old-%d", many-1))
	x.create("west", pod("a"))
	x.delete("west", pods, "a") // queues all of them
	x.create("west", resourceQuota("new", "pods", "5"))
	x.localAgreesWithin(5*time.Second, "west", "new")
	for i := range many {
		x.localAgrees("west", fmt.Sprintf("old-%d", i))
	}
}

// Beside a native quota controller that is alive the hub writes nothing.
func TestLocalStatusAutoBesideNative(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, "east")
	x.create("east", resourceQuota("local", "pods", "10", "requests.cpu", "10"))
	x.localAgrees("east", "local")
	time.Sleep(2 * time.Second) // admission has seen it: a pod that it lets through uncharged is missed for minutes by the native controller
	for i := range 4 {
		x.eventually(soon, func(ctx context.Context) error {
			return x.Member("east").Create(ctx, x.namespace, pod(fmt.Sprintf("p%d", i), requests("cpu", "1")))
		})
	}
	x.localAgrees("east", "local")
	x.delete("east", pods, "p0")
	x.localUses("east", "local", "pods", "3", "requests.cpu", "3")
	x.limit("east", "local", "pods", "5", "requests.cpu", "10")
	x.localAgrees("east", "local")
	x.must(finish(t.Context(), x.Member("east"), x.namespace, "p1"))
	x.localUses("east", "local", "pods", "2", "requests.cpu", "2")
	time.Sleep(11 * time.Second) // longer than the hub waits for an answer
	if writes := x.ourWrites("east", time.Time{}); len(writes) > 0 {
		t.Errorf("the hub wrote beside a live controller: %v", writes)
	}
	x.member("east", localMode(v1alpha1.LocalAuto))
}

func localMode(want v1alpha1.LocalStatusMode) func(*v1alpha1.FleetMember) error {
	return func(m *v1alpha1.FleetMember) error {
		if m.Status.LocalStatus != want {
			return fmt.Errorf("local status is %q, want %s", m.Status.LocalStatus, want)
		}
		return nil
	}
}

// In a member that nobody looks after, Auto takes over what is not answered.
func TestLocalStatusAutoTakesOver(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, "south")
	x.create("south", pod("a", requests("cpu", "1")))
	x.create("south", resourceQuota("local", "pods", "10", "requests.cpu", "2"))
	x.localAgreesWithin(15*time.Second, "south", "local")
	if writes := x.ourWrites("south", time.Time{}); len(writes) == 0 {
		t.Error("somebody else answered")
	}
	x.limit("south", "local", "pods", "1")
	x.localAgreesWithin(5*time.Second, "south", "local") // it is ours now
	if err := x.Member("south").Create(t.Context(), x.namespace, pod("b")); !apierrors.IsForbidden(err) {
		t.Errorf("a pod above the limit is not refused: %v", err)
	}
}

// What the hub may not write it does not, and says so; what it is told not to
// write neither; and what it took over it hands back.
func TestFaultLocalStatusModes(t *testing.T) {
	t.Parallel()
	const name = "modes"
	member := shared.addCluster(t, name)
	x := shared.tenant(t, name)
	x.create(name, resourceQuota("local", "pods", "10"))
	register := func(change func(*scene.Registration)) {
		t.Helper()
		r := registration(name)
		change(&r)
		x.must(x.Register(t.Context(), member, r))
	}
	untouched := func() {
		t.Helper()
		time.Sleep(2 * time.Second)
		q, err := member.Kubernetes.CoreV1().ResourceQuotas(x.namespace).Get(t.Context(), "local", metav1.GetOptions{})
		x.must(err)
		if len(q.Status.Hard)+len(q.Status.Used) > 0 {
			t.Errorf("the status was written: %+v", q.Status)
		}
		if writes := x.ourWrites(name, time.Time{}); len(writes) > 0 {
			t.Errorf("the hub tried to write: %v", writes)
		}
	}

	t.Log("Always, without the permission")
	register(func(r *scene.Registration) {
		r.LocalStatus, r.Roles = "Always", []string{deploy.RoleObserve, deploy.RoleObserveBase}
	})
	x.quota("all", list("pods", "10", "secrets", "10"), only(name))
	x.member(name, memberCondition("Ready", "True", "Live"), localMode(v1alpha1.LocalNever))
	untouched()
	x.becomes("all", unknown(name, []string{"secrets"}, "Forbidden"), uses("pods", "0"))
	synced := x.member(name, memberCondition("Synced", "False", "NotCounted"))
	for _, c := range synced.Status.Conditions {
		if c.Type == v1alpha1.ConditionSynced && !strings.Contains(c.Message, "secrets") {
			t.Errorf("Synced does not say what is not counted: %s", c.Message)
		}
	}

	t.Log("Never, with the permission")
	register(func(r *scene.Registration) { r.LocalStatus = "Never" })
	x.becomesWithin(time.Minute, "all", complete, uses("pods", "0", "secrets", "0")) // Secrets may be counted from now on
	x.member(name, localMode(v1alpha1.LocalNever))
	untouched()

	t.Log("Auto, and nobody answers")
	register(func(r *scene.Registration) { r.LocalStatus = "Auto" })
	x.member(name, localMode(v1alpha1.LocalAuto))
	x.localAgreesWithin(15*time.Second, name, "local")
	x.create(name, pod("a"), pod("b"))
	x.delete(name, pods, "a")
	x.localUses(name, "local", "pods", "1")

	t.Log("the native controller comes: the quota is handed back")
	x.must(member.StartNativeQuota(t.Context()))
	const listens = 75 * time.Second // once a minute the hub lets another controller answer first
	started := time.Now()
	for limit := 11; ; limit++ { // until the native one does
		began := time.Now()
		x.limit(name, "local", "pods", fmt.Sprint(limit))
		x.localAgrees(name, "local")
		time.Sleep(500 * time.Millisecond)
		writes := x.ourWrites(name, began)
		if len(writes) == 0 {
			break
		}
		if time.Since(started) > listens {
			t.Fatalf("the hub still writes: %v", writes)
		}
	}
	began := time.Now()
	x.limit(name, "local", "pods", "7")
	x.localAgrees(name, "local")
	x.delete(name, pods, "b")
	x.localUses(name, "local", "pods", "0")
	time.Sleep(2 * time.Second)
	if writes := x.ourWrites(name, began); len(writes) > 0 {
		t.Errorf("the hub wrote after it had handed the quota back: %v", writes)
	}

	t.Log("the native controller goes: the quota is taken over again")
	x.must(member.StopNativeQuota(t.Context()))
	x.limit(name, "local", "pods", "8")
	x.localAgreesWithin(15*time.Second, name, "local")
}
