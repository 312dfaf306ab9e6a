package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// divided divides the limit by a mode, with what else is said of members.
func divided(mode v1alpha1.DistributionMode, members ...v1alpha1.MemberShare) func(*v1alpha1.FleetQuotaSpec) {
	return func(s *v1alpha1.FleetQuotaSpec) {
		s.Distribution = &v1alpha1.Distribution{Mode: mode, Members: members}
	}
}

func weighing(cluster string, weight int32) v1alpha1.MemberShare {
	return v1alpha1.MemberShare{Cluster: cluster, Weight: &weight}
}

// enforced wants the limits to hold.
var enforced = condition(v1alpha1.ConditionEnforced, metav1.ConditionTrue, "Enforced")

// notEnforced wants the limits not to hold, for this reason.
func notEnforced(reason string) func(*v1alpha1.FleetQuota) error {
	return condition(v1alpha1.ConditionEnforced, metav1.ConditionFalse, reason)
}

// granted wants a member's row to say what it is granted.
func granted(member string, pairs ...string) func(*v1alpha1.FleetQuota) error {
	return func(q *v1alpha1.FleetQuota) error {
		row := rowOf(q, member)
		if row == nil {
			return fmt.Errorf("no row of %s", member)
		}
		return same(member+" is granted", row.Granted, list(pairs...))
	}
}

// local is a member's ResourceQuota.
func (x *tenant) local(ctx context.Context, member, name string) (*corev1.ResourceQuota, error) {
	return x.Member(member).Kubernetes.CoreV1().ResourceQuotas(x.namespace).Get(ctx, name, metav1.GetOptions{})
}

// holds waits until a member's ResourceQuota has this limit in force.
func (x *tenant) holds(member, name string, pairs ...string) {
	x.t.Helper()
	x.eventually(soon, func(ctx context.Context) error {
		q, err := x.local(ctx, member, name)
		if err != nil {
			return err
		}
		return errors.Join(same(member+" spec.hard", q.Spec.Hard, list(pairs...)), same(member+" status.hard", q.Status.Hard, list(pairs...)))
	})
}

// refused wants a pod to be refused because of a quota.
func (x *tenant) refused(member, name string) {
	x.t.Helper()
	if err := x.Member(member).Create(x.t.Context(), x.namespace, pod(name)); !apierrors.IsForbidden(err) {
		x.t.Errorf("%s: pod %s is not refused: %v", member, name, err)
	}
}

// A limit is divided by weight, holds in every member, follows the user's up and
// down, and leaves what was there before when it is divided no more.
func TestDistributeByWeight(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, "east", "west")
	x.quota("compute", list("pods", "3", "requests.cpu", "900m"), in("east", "west"), divided(v1alpha1.Weighted, weighing("east", 2)))
	x.holds("east", "compute", "pods", "2", "requests.cpu", "600m")
	x.holds("west", "compute", "pods", "1", "requests.cpu", "300m")
	x.becomes("compute", enforced, granted("east", "pods", "2", "requests.cpu", "600m"), granted("west", "pods", "1", "requests.cpu", "300m"))

	x.create("west", pod("a", requests("cpu", "1m")))
	x.eventually(soon, func(ctx context.Context) error {
		err := x.Member("west").Create(ctx, x.namespace, pod("b", requests("cpu", "1m")))
		if !apierrors.IsForbidden(err) {
			return errors.Join(errors.New("a second pod in west is not refused"), err)
		}
		return nil
	})

	x.change("compute", func(s *v1alpha1.FleetQuotaSpec) { s.Hard = list("pods", "6") })
	x.holds("east", "compute", "pods", "4")
	x.holds("west", "compute", "pods", "2")
	x.create("west", pod("b"))
	x.change("compute", func(s *v1alpha1.FleetQuotaSpec) { s.Hard = list("pods", "2") })
	x.holds("east", "compute", "pods", "0")
	x.holds("west", "compute", "pods", "1")
	x.refused("east", "c")
	x.refused("west", "c")
	x.becomes("compute", enforced, granted("west", "pods", "2"))

	x.change("compute", func(s *v1alpha1.FleetQuotaSpec) { s.Distribution = nil })
	x.becomes("compute", notEnforced("ObserveOnly"))
	for _, member := range []string{"east", "west"} {
		q, err := x.local(t.Context(), member, "compute")
		x.must(err)
		if len(q.Annotations)+len(q.Labels) > 0 {
			t.Errorf("%s is left with %v %v", member, q.Annotations, q.Labels)
		}
	}
	if _, err := x.Hub.Quota.Grants(x.namespace).Get(t.Context(), "compute", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the FleetGrant is still there: %v", err)
	}
}

// Headroom follows demand from one member to another.
func TestDistributeByDemand(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, "east", "west")
	x.quota("compute", list("pods", "20"), in("east", "west"), divided(v1alpha1.Balanced))
	x.holds("east", "compute", "pods", "10")
	x.holds("west", "compute", "pods", "10")
	for _, member := range []string{"east", "west"} {
		for i := range 18 {
			x.eventually(soon, func(ctx context.Context) error {
				return x.Member(member).Create(ctx, x.namespace, pod(fmt.Sprintf("p%d", i)))
			})
		}
		x.becomes("compute", enforced, memberUses(member, "pods", "18"))
		for i := range 18 {
			x.delete(member, pods, fmt.Sprintf("p%d", i))
		}
	}
}

// A quota that others made is left alone, or taken over where that is asked for.
func TestDistributeAdopts(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, "east", "west")
	x.create("east", resourceQuota("compute", "pods", "7", "secrets", "5"))
	x.quota("compute", list("pods", "4"), in("east", "west"), divided(v1alpha1.Weighted))
	x.holds("west", "compute", "pods", "4")
	x.becomes("compute", notEnforced("MemberUnbounded"))
	x.holds("east", "compute", "pods", "7", "secrets", "5")
	x.change("compute", func(s *v1alpha1.FleetQuotaSpec) { s.Distribution.AdoptExisting = true })
	x.holds("east", "compute", "pods", "2", "secrets", "5")
	x.holds("west", "compute", "pods", "2")
	x.becomes("compute", enforced)
}

// Where the namespace does not exist nothing is reserved, until it does.
func TestDistributeWithoutANamespace(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, "east")
	x.quota("compute", list("pods", "4"), in("east", "west"), divided(v1alpha1.Weighted))
	x.holds("east", "compute", "pods", "4")
	x.becomes("compute", enforced)
	x.must(x.Member("west").CreateNamespace(t.Context(), x.namespace))
	x.holds("east", "compute", "pods", "2")
	x.holds("west", "compute", "pods", "2")
}

// What others do to a share is put right.
func TestDistributePutsRight(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, "east", "west")
	x.quota("compute", list("pods", "4"), in("east", "west"), divided(v1alpha1.Weighted))
	x.holds("east", "compute", "pods", "2")
	x.limit("east", "compute", "pods", "100")
	x.holds("east", "compute", "pods", "2")
	x.delete("west", corev1.SchemeGroupVersion.WithResource("resourcequotas"), "compute")
	x.holds("west", "compute", "pods", "2")
	x.must(x.Hub.Quota.Grants(x.namespace).Delete(t.Context(), "compute", metav1.DeleteOptions{}))
	x.change("compute", func(s *v1alpha1.FleetQuotaSpec) { s.Hard = list("pods", "8") })
	x.holds("east", "compute", "pods", "4")
	x.holds("west", "compute", "pods", "4")
	x.becomes("compute", enforced)
}
