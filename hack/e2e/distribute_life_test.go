package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// planned wants a member's row to say what it would be granted.
func planned(member string, pairs ...string) func(*v1alpha1.FleetQuota) error {
	return func(q *v1alpha1.FleetQuota) error {
		row := rowOf(q, member)
		if row == nil {
			return fmt.Errorf("no row of %s", member)
		}
		return same(member+" is planned", row.Planned, list(pairs...))
	}
}

// lacks wants a member to have no ResourceQuota of a name.
func (x *tenant) lacks(member, name string) {
	x.t.Helper()
	x.eventually(soon, func(ctx context.Context) error {
		q, err := x.local(ctx, member, name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, fmt.Errorf("%s has ResourceQuota %s: %v", member, name, q.Spec.Hard))
	})
}

// unmarked wants a member's ResourceQuota to stay with its limit and without our marks.
func (x *tenant) unmarked(member, name string, pairs ...string) {
	x.t.Helper()
	x.eventually(soon, func(ctx context.Context) error {
		q, err := x.local(ctx, member, name)
		if err != nil {
			return err
		}
		if len(q.Annotations)+len(q.Labels) > 0 {
			return fmt.Errorf("%s is left with %v %v", member, q.Annotations, q.Labels)
		}
		return same(member+" spec.hard", q.Spec.Hard, list(pairs...))
	})
}

// forgets waits until there is no record of grants.
func (x *tenant) forgets(name string) {
	x.t.Helper()
	x.eventually(soon, func(ctx context.Context) error {
		_, err := x.Hub.Quota.Grants(x.namespace).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("the FleetGrant is still there"))
	})
}

// While a distribution is paused it is shown and not written, and what was written
// before stays.
func TestDistributePaused(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, "east", "west")
	x.quota("compute", list("pods", "4"), in("east", "west"), divided(v1alpha1.Weighted), func(s *v1alpha1.FleetQuotaSpec) { s.Distribution.Paused = true })
	x.becomes("compute", notEnforced("Paused"), planned("east", "pods", "2"), planned("west", "pods", "2"))
	x.lacks("east", "compute")
	x.change("compute", func(s *v1alpha1.FleetQuotaSpec) { s.Distribution.Paused = false })
	x.becomes("compute", enforced, planned("east"), granted("east", "pods", "2"))
	x.change("compute", func(s *v1alpha1.FleetQuotaSpec) { s.Distribution.Paused, s.Hard = true, list("pods", "8") })
	x.becomes("compute", notEnforced("Paused"), planned("east", "pods", "4"), granted("east", "pods", "2"))
	x.holds("east", "compute", "pods", "2")
}

// Static gives what is written, and nothing at all where that is more than there is.
func TestDistributeStatic(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, "east", "west")
	share := func(cluster, pods string) v1alpha1.MemberShare {
		return v1alpha1.MemberShare{Cluster: cluster, Hard: list("pods", pods)}
	}
	x.quota("compute", list("pods", "4"), in("east", "west"), divided(v1alpha1.Static, share("east", "3"), share("west", "2")))
	x.becomes("compute", notEnforced("SharesExceedHard"), condition(v1alpha1.ConditionReady, "False", "SharesExceedHard"))
	x.lacks("east", "compute")
	x.change("compute", func(s *v1alpha1.FleetQuotaSpec) { s.Distribution.Members = []v1alpha1.MemberShare{share("east", "3")} })
	x.holds("east", "compute", "pods", "3")
	x.holds("west", "compute", "pods", "0")
	x.becomes("compute", enforced, condition(v1alpha1.ConditionReady, "True", "Reported"))
}

// Shared lets each member use what nobody uses, and does not claim to hold.
func TestDistributeShared(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, "east", "west")
	x.create("east", pod("a"), pod("b"))
	x.quota("compute", list("pods", "6"), in("east", "west"), divided(v1alpha1.Shared))
	x.holds("east", "compute", "pods", "6")
	x.holds("west", "compute", "pods", "4")
	x.becomes("compute", notEnforced("Shared"))
}

// Resources come and go with the limits; those of the quota's former owner stay.
func TestDistributeFollowsItsKeys(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, "east")
	x.create("east", resourceQuota("compute", "secrets", "5"))
	x.quota("compute", list("pods", "4"), in("east"), divided(v1alpha1.Balanced), func(s *v1alpha1.FleetQuotaSpec) { s.Distribution.AdoptExisting = true })
	x.holds("east", "compute", "pods", "4", "secrets", "5")
	x.change("compute", func(s *v1alpha1.FleetQuotaSpec) { s.Hard = list("pods", "4", "configmaps", "20") })
	x.holds("east", "compute", "pods", "4", "configmaps", "20", "secrets", "5")
	x.becomes("compute", enforced)
	x.change("compute", func(s *v1alpha1.FleetQuotaSpec) { s.Hard = list("configmaps", "20") })
	x.holds("east", "compute", "configmaps", "20", "secrets", "5")
	x.becomes("compute", enforced, granted("east", "configmaps", "20"))
}

// A namespace that a member lacks is made where that is asked for.
func TestDistributeCreatesNamespaces(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, "east")
	x.quota("compute", list("pods", "4"), in("east", "west"), divided(v1alpha1.Weighted), func(s *v1alpha1.FleetQuotaSpec) { s.Distribution.CreateNamespaces = true })
	x.holds("east", "compute", "pods", "2")
	x.holds("west", "compute", "pods", "2")
	x.becomes("compute", enforced)
}

// A FleetQuota that is deleted leaves the local quotas, or takes them along. So
// does one that a member is not selected by any more.
func TestDistributeEnds(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, "east", "west")
	for _, policy := range []v1alpha1.RemovalPolicy{v1alpha1.LeaveQuotas, v1alpha1.DeleteQuotas} {
		name := strings.ToLower(string(policy))
		x.quota(name, list("pods", "4"), in("east", "west"), divided(v1alpha1.Weighted), func(s *v1alpha1.FleetQuotaSpec) { s.Distribution.WhenRemoved = policy })
		x.holds("east", name, "pods", "2")
		x.holds("west", name, "pods", "2")
		x.change(name, in("east"))
		x.holds("east", name, "pods", "4")
		x.must(x.Hub.Quota.Quotas(x.namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
		x.forgets(name)
		for member, hard := range map[string]string{"east": "4", "west": "2"} {
			if policy == v1alpha1.DeleteQuotas {
				x.lacks(member, name)
			} else {
				x.unmarked(member, name, "pods", hard)
			}
		}
	}
}

// When the record is lost, nothing is raised until every member that may hold a
// share has confirmed what it holds.
func TestFaultGrantRecordLost(t *testing.T) {
	t.Parallel()
	x := ownTenant(t, "east", "west")
	x.quota("compute", list("pods", "4"), in("east", "west"), divided(v1alpha1.Weighted))
	x.holds("east", "compute", "pods", "2")
	x.holds("west", "compute", "pods", "2")
	before := x.becomes("compute", enforced).Status.GrantUID
	api := x.Hub.Quota.Grants(x.namespace)
	_, err := api.Patch(t.Context(), "compute", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	x.must(err)
	x.must(api.Delete(t.Context(), "compute", metav1.DeleteOptions{}))
	x.eventually(soon, func(ctx context.Context) error {
		q, err := x.get(ctx, "compute")
		if err == nil && q.Status.GrantUID == before {
			err = errors.New("the record is not made anew")
		}
		return err
	})
	x.change("compute", func(s *v1alpha1.FleetQuotaSpec) { s.Hard = list("pods", "8") })
	x.holds("east", "compute", "pods", "4")
	x.holds("west", "compute", "pods", "4")
	x.becomes("compute", enforced)
}

// A release that was under way when the hub ended is finished by the next.
func TestFaultGrantReleaseAfterARestart(t *testing.T) {
	t.Parallel()
	x := ownTenant(t, "east", "west")
	x.quota("compute", list("pods", "4"), in("east", "west"), divided(v1alpha1.Weighted))
	x.becomesWithin(time.Minute, "compute", enforced)
	x.kills()
	x.must(x.Hub.Quota.Quotas(x.namespace).Delete(t.Context(), "compute", metav1.DeleteOptions{}))
	x.starts()
	x.unmarked("east", "compute", "pods", "2")
	x.unmarked("west", "compute", "pods", "2")
	x.forgets("compute")
}

// A namespace that takes long to end in one member keeps nobody else from rising.
func TestDistributeBesideANamespaceThatEnds(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, "east", "west")
	x.create("west", pod("a", finalizer))
	x.quota("compute", list("pods", "4"), in("east", "west"), divided(v1alpha1.Weighted))
	x.holds("east", "compute", "pods", "2")
	x.holds("west", "compute", "pods", "2")
	x.must(x.Member("west").Kubernetes.CoreV1().Namespaces().Delete(t.Context(), x.namespace, metav1.DeleteOptions{}))
	x.delete("west", corev1.SchemeGroupVersion.WithResource("resourcequotas"), "compute") // as the namespace controller would
	x.becomes("compute", reason("west", "NamespaceEnding"))
	x.change("compute", func(s *v1alpha1.FleetQuotaSpec) { s.Hard = list("pods", "12") })
	x.holds("east", "compute", "pods", "10") // west can use no more than it has
	time.Sleep(12 * time.Second)             // it has been looked at again
	x.holds("east", "compute", "pods", "10")
	x.becomes("compute", granted("west", "pods", "2"), enforced)
}

// reason wants a member's row to give a reason.
func reason(member, want string) func(*v1alpha1.FleetQuota) error {
	return func(q *v1alpha1.FleetQuota) error {
		if row := rowOf(q, member); row == nil || row.Reason != want {
			return fmt.Errorf("row of %s: %+v, want the reason %s", member, row, want)
		}
		return nil
	}
}

// What a member holds that does not answer stays its own, until a person says that
// nothing can be used there. Until then it cannot leave.
func TestFaultDistributeFenced(t *testing.T) {
	t.Parallel()
	lost := shared.addMember(t, "lost")
	x := shared.tenant(t, "east", "lost")
	p := x.plugin()
	x.quota("compute", list("pods", "4"), in("east", "lost"), divided(v1alpha1.Balanced))
	x.holds("lost", "compute", "pods", "2")
	x.create("east", pod("a"), pod("b"))
	x.holds("east", "compute", "pods", "3")
	x.holds("lost", "compute", "pods", "1")
	x.must(lost.Freeze(t.Context()))
	x.becomesWithin(unreachableWithin, "compute", phase("lost", v1alpha1.Unreachable), granted("lost", "pods", "1"))
	x.holds("east", "compute", "pods", "3")
	said := p.run("why", x.namespace+"/compute", "pods")
	for _, part := range []string{"lost     Unreachable", "does not answer: keeps what it holds until it does", "fleetquota.io/fenced=true"} {
		if !strings.Contains(said, part) {
			t.Errorf("why does not say %q:\n%s", part, said)
		}
	}

	x.must(x.Hub.Kubernetes.CoreV1().Secrets(scene.Namespace).Delete(t.Context(), "lost", metav1.DeleteOptions{}))
	x.eventually(unreachableWithin, func(ctx context.Context) error {
		m, err := x.Hub.Quota.Members().Get(ctx, "lost", metav1.GetOptions{})
		if err == nil && m.Status.Phase != v1alpha1.Leaving {
			err = fmt.Errorf("the FleetMember is %s", m.Status.Phase)
		}
		return err
	})
	_, err := x.Hub.Quota.Members().Patch(t.Context(), "lost", types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"fleetquota.io/fenced":"true"}}}`), metav1.PatchOptions{})
	x.must(err)
	x.holds("east", "compute", "pods", "4")
	x.becomes("compute", enforced, rows("east"))
	x.eventually(soon, func(ctx context.Context) error {
		_, err := x.Hub.Quota.Members().Get(ctx, "lost", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(err, errors.New("the FleetMember is still there"))
	})
}
