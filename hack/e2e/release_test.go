package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// finish makes a pod succeed, as its kubelet would.
func finish(ctx context.Context, member *scene.Cluster, namespace, name string) error {
	_, err := member.Kubernetes.CoreV1().Pods(namespace).Patch(ctx, name, types.MergePatchType,
		[]byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
	return err
}

// localUses waits until the status of a member's ResourceQuota has these
// amounts, in names and quantities in turn.
func (x *tenant) localUses(member, name string, pairs ...string) {
	x.t.Helper()
	x.localUsesWithin(soon, member, name, pairs...)
}

func (x *tenant) localUsesWithin(patience time.Duration, member, name string, pairs ...string) {
	x.t.Helper()
	want := list(pairs...)
	x.localBecomes(patience, member, name, func(used corev1.ResourceList) error { return same("local used", used, want) })
}

// localUsesAmong is localUses for some of the resources of a quota.
func (x *tenant) localUsesAmong(member, name string, pairs ...string) {
	x.t.Helper()
	want := list(pairs...)
	x.localBecomes(soon, member, name, func(used corev1.ResourceList) error {
		return same("local used", narrowed(used, want), want)
	})
}

func (x *tenant) localBecomes(patience time.Duration, member, name string, check func(used corev1.ResourceList) error) {
	x.t.Helper()
	x.eventually(patience, func(ctx context.Context) error {
		q, err := x.Member(member).Kubernetes.CoreV1().ResourceQuotas(x.namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		return errors.Join(check(q.Status.Used), same("local hard", q.Status.Hard, q.Spec.Hard))
	})
}

// A pod that has finished leaves what it used, in its member and in the sum; it
// still exists, and so still counts as an object.
func TestFinishedPodLeavesLocalAndGlobalUse(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t)
	hard := list("pods", "10", "requests.cpu", "10", "count/pods", "10")
	x.create("west", resourceQuota("local", "pods", "10", "requests.cpu", "10", "count/pods", "10"))
	x.quota("all", hard, sharedMembers)
	for _, name := range []string{"a", "b", "c"} {
		x.eventually(soon, func(ctx context.Context) error { // admission refuses pods until the status is known
			return x.Member("west").Create(ctx, x.namespace, pod(name, requests("cpu", "250m")))
		})
	}
	x.create("east", pod("a", requests("cpu", "1")))
	x.becomes("all", complete, uses("pods", "4", "requests.cpu", "1750m", "count/pods", "4"))
	x.localUses("west", "local", "pods", "3", "requests.cpu", "750m", "count/pods", "3")

	x.must(finish(t.Context(), x.Member("west"), x.namespace, "a"))
	x.becomes("all", complete, uses("pods", "3", "requests.cpu", "1500m", "count/pods", "4"), memberUses("west", "pods", "2"))
	x.localUses("west", "local", "pods", "2", "requests.cpu", "500m", "count/pods", "3")

	x.delete("west", pods, "b")
	x.becomes("all", complete, uses("pods", "2", "requests.cpu", "1250m", "count/pods", "3"))
	x.localUses("west", "local", "pods", "1", "requests.cpu", "250m", "count/pods", "2")

	x.delete("west", pods, "a") // finished: it gives back its object alone
	x.becomes("all", complete, uses("pods", "2", "requests.cpu", "1250m", "count/pods", "2"))
	x.localUses("west", "local", "pods", "1", "requests.cpu", "250m", "count/pods", "1")
}

// A pod that outlives its deletion and its grace leaves what it used when the
// time has come, although no event says so.
func TestPodStuckBeyondItsGraceLeavesUse(t *testing.T) {
	t.Parallel()
	const grace = 3 * time.Second
	x := shared.tenant(t)
	x.create("west", resourceQuota("local", "pods", "10", "count/pods", "10"))
	x.eventually(soon, func(ctx context.Context) error {
		return x.Member("west").Create(ctx, x.namespace, pod("stuck", requests("cpu", "1"), scheduled, finalizer))
	})
	x.create("west", pod("stays", requests("cpu", "1")))
	x.quota("all", list("pods", "10", "requests.cpu", "10", "count/pods", "10"), sharedMembers)
	x.becomes("all", complete, uses("pods", "2", "requests.cpu", "2", "count/pods", "2"))

	seconds := int64(grace.Seconds())
	x.must(x.Member("west").Kubernetes.CoreV1().Pods(x.namespace).Delete(t.Context(), "stuck", metav1.DeleteOptions{GracePeriodSeconds: &seconds}))
	deleted, err := x.Member("west").Kubernetes.CoreV1().Pods(x.namespace).Get(t.Context(), "stuck", metav1.GetOptions{})
	x.must(err)
	due := deleted.DeletionTimestamp.Add(grace) // Kubernetes adds the grace twice: the timestamp has it too
	seen := x.watch("all")
	x.becomesWithin(time.Until(due)+5*time.Second, "all", uses("pods", "1", "requests.cpu", "1", "count/pods", "2"))
	if early := time.Until(due); early > time.Second {
		t.Errorf("it left %s too early", early)
	}
	seen.stop()
	x.localUses("west", "local", "pods", "1", "count/pods", "2")
	x.agrees("all", "east", "west", "south")
}

// Services, claims and deployments are followed as they change, not only as
// they come and go.
func TestChangedObjectsAreCountedAnew(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t)
	x.create("east", service("s", corev1.ServiceTypeClusterIP, 2), claim("c", "gold", "1Gi"), deployment("d"))
	x.create("south", service("s", corev1.ServiceTypeNodePort, 1))
	x.quota("all", everything(), sharedMembers)
	x.becomes("all", complete, uses("services.nodeports", "1", "services.loadbalancers", "0", "services", "2", "requests.storage", "1Gi"))

	retype := func(kind corev1.ServiceType) {
		t.Helper()
		_, err := x.Member("east").Kubernetes.CoreV1().Services(x.namespace).Patch(t.Context(), "s", types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"type":%q}}`, kind), metav1.PatchOptions{})
		x.must(err)
	}
	retype(corev1.ServiceTypeNodePort)
	x.becomes("all", uses("services.nodeports", "3", "services.loadbalancers", "0"))
	retype(corev1.ServiceTypeLoadBalancer)
	x.becomes("all", uses("services.nodeports", "3", "services.loadbalancers", "1"))
	retype(corev1.ServiceTypeClusterIP)
	x.becomes("all", uses("services.nodeports", "1", "services.loadbalancers", "0", "services", "2"))

	x.delete("east", claims, "c")
	x.delete("east", deployments, "d")
	x.becomes("all", uses("requests.storage", "0", "persistentvolumeclaims", "0", "count/deployments.apps", "0"))
	x.agrees("all", "east", "west", "south")

	x.delete("south", services, "s")
	x.delete("east", services, "s")
	quota := x.becomes("all", uses("services", "0", "services.nodeports", "0"))
	if row := rowOf(quota, "east"); row.Phase != v1alpha1.Live {
		t.Errorf("east is %s", row.Phase)
	}
}
