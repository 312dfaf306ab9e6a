package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// everything is a limit on all that the tests create.
func everything() corev1.ResourceList {
	return list(
		"requests.cpu", "100", "cpu", "100", "limits.cpu", "100", "requests.memory", "200Gi", "limits.memory", "200Gi",
		"memory", "200Gi", "hugepages-2Mi", "10Gi", "requests.hugepages-2Mi", "10Gi",
		"requests.ephemeral-storage", "1Ti", "limits.ephemeral-storage", "1Ti", "requests.nvidia.com/gpu", "50",
		"pods", "500", "count/pods", "500",
		"services", "100", "count/services", "100", "services.nodeports", "100", "services.loadbalancers", "100",
		"persistentvolumeclaims", "100", "requests.storage", "10Ti",
		"gold.storageclass.storage.k8s.io/requests.storage", "5Ti", "gold.storageclass.storage.k8s.io/persistentvolumeclaims", "50",
		"configmaps", "100", "count/configmaps", "100", "secrets", "100", "count/secrets", "100",
		"replicationcontrollers", "100", "resourcequotas", "10",
		"count/deployments.apps", "100", "count/jobs.batch", "100", "count/cronjobs.batch", "100",
		"count/widgets.example.com", "100",
	)
}

// zoo is objects of every kind that quotas count, in amounts that differ with
// the seed.
func zoo(seed int) []runtime.Object {
	milli := fmt.Sprintf("%dm", 100+seed)
	objects := []runtime.Object{
		pod("plain", requests("cpu", milli, "memory", "64Mi"), limits("cpu", "1", "memory", "128Mi")),
		pod("gpu", requests("cpu", "1", "nvidia.com/gpu", "2"), limits("nvidia.com/gpu", "2")),
		pod("scratch", requests("ephemeral-storage", "1Gi", "memory", "1000k"), limits("ephemeral-storage", "2Gi")),
		pod("limited", limits("cpu", "300m", "memory", "32Mi")),
		pod("init", requests("cpu", "100m"), initContainer("big", "cpu", "750m", "memory", "1Gi"), initContainer("small", "cpu", "10m")),
		pod("sidecar", requests("cpu", "100m"), sidecar("mesh", "cpu", "50m", "memory", "16Mi"), initContainer("late", "cpu", "200m")),
		pod("gold", requests("cpu", "200m"), priority("gold")),
		pod("silver", requests("memory", "1Gi"), priority("silver")),
		pod("batch", requests("cpu", "1500m"), terminating),
		pod("effortless"),
		pod("effortless-batch", terminating),
		pod("sandboxed", requests("cpu", "30m"), limits("memory", "1Gi"), sandboxed),
		pod("whole", requests("cpu", "100m"), ofPod(list("cpu", "600m"), list("cpu", "1", "memory", "2Gi"))),
		pod("huge-pages", requests("cpu", "10m", "hugepages-2Mi", "4Mi"), limits("hugepages-2Mi", "4Mi")),
		pod("near", requests("cpu", "20m"), affine),
		service("internal", corev1.ServiceTypeClusterIP, 1), service("ports", corev1.ServiceTypeNodePort, 3),
		service("balanced", corev1.ServiceTypeLoadBalancer, 2), service("outside", corev1.ServiceTypeExternalName, 0),
		claim("golden", "gold", "10Gi"), claim("plain", "", "1G"), claim("other", "silver", "1500Mi"),
		configMap("a"), configMap("b"), secret("a"), replicationController("a"),
		deployment("a"), deployment("b"), job("a"), cronJob("a"),
		custom(widgets, "a"), custom(widgets, "b"),
	}
	for i := range seed {
		objects = append(objects, pod(fmt.Sprintf("more-%d", i), requests("cpu", milli)), custom(widgets, fmt.Sprintf("more-%d", i)))
	}
	return objects
}

// The sum and each member's part equal what Kubernetes' own evaluators count
// from lists of the API, for every kind of key.
func TestTotalsEqualAnIndependentCount(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t)
	for i, member := range []string{"east", "west", "south"} {
		x.create(member, zoo(i)...)
	}
	x.create("east", resourceQuota("local", "pods", "100"))
	x.must(resize(t.Context(), x.Member("west"), x.namespace))
	x.quota("all", everything(), sharedMembers)
	quota := x.agrees("all", "east", "west", "south")
	if got, want := len(quota.Status.Used), len(everything()); got != want {
		t.Errorf("%d keys are known, want all %d", got, want)
	}
	for name, used := range quota.Status.Used {
		if used.IsZero() {
			t.Errorf("%s is 0 in this test, which proves little", name)
		}
	}
}

// resize makes a pod whose resources are changed while it runs, before its
// kubelet has followed: three numbers differ.
func resize(ctx context.Context, member *scene.Cluster, namespace string) error {
	running := pod("resized", requests("cpu", "100m"), limits("cpu", "1"), scheduled)
	size := list("cpu", "8", "memory", "8Gi", "pods", "10")
	node := &corev1.Node{ObjectMeta: named(running.Spec.NodeName), Status: corev1.NodeStatus{Capacity: size, Allocatable: size}}
	if err := errors.Join(member.Create(ctx, "", node), member.Create(ctx, namespace, running)); err != nil {
		return err
	}
	api := member.Kubernetes.CoreV1().Pods(namespace)
	for _, change := range []struct{ subresource, patch string }{
		{"status", `{"status":{"phase":"Running","containerStatuses":[{"name":"main","image":"image","imageID":"image","ready":true,"restartCount":0,` +
			`"allocatedResources":{"cpu":"200m"},"resources":{"requests":{"cpu":"400m"},"limits":{"cpu":"1"}}}]}}`},
		{"resize", `{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":"300m"}}}]}}`},
	} {
		if _, err := api.Patch(ctx, running.Name, types.StrategicMergePatchType, []byte(change.patch), metav1.PatchOptions{}, change.subresource); err != nil {
			return fmt.Errorf("patch the %s of a pod: %w", change.subresource, err)
		}
	}
	return nil
}

// Scopes narrow what is counted as they do in Kubernetes.
func TestScopedTotalsEqualAnIndependentCount(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t)
	for i, member := range []string{"east", "west", "south"} {
		x.create(member, zoo(i)...)
		attributed := claim("attributed", "gold", "3Gi")
		class := "fast"
		attributed.Spec.VolumeAttributesClassName = &class
		x.create(member, attributed)
	}
	compute := list("pods", "100", "requests.cpu", "100", "cpu", "100", "requests.memory", "100Gi", "limits.memory", "100Gi", "limits.cpu", "100")
	effortless := list("pods", "100")
	storage := list("persistentvolumeclaims", "10", "requests.storage", "1Ti", "gold.storageclass.storage.k8s.io/requests.storage", "1Ti")
	scopes := func(hard corev1.ResourceList, scopes ...corev1.ResourceQuotaScope) v1alpha1.FleetQuotaSpec {
		return v1alpha1.FleetQuotaSpec{Hard: hard, Scopes: scopes}
	}
	selects := func(hard corev1.ResourceList, scope corev1.ResourceQuotaScope, operator corev1.ScopeSelectorOperator, values ...string) v1alpha1.FleetQuotaSpec {
		return v1alpha1.FleetQuotaSpec{Hard: hard, ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: scope, Operator: operator, Values: values},
		}}}
	}
	for name, spec := range map[string]v1alpha1.FleetQuotaSpec{
		"terminating":               scopes(compute, corev1.ResourceQuotaScopeTerminating),
		"not-terminating":           scopes(compute, corev1.ResourceQuotaScopeNotTerminating),
		"best-effort":               scopes(effortless, corev1.ResourceQuotaScopeBestEffort),
		"not-best-effort":           scopes(compute, corev1.ResourceQuotaScopeNotBestEffort),
		"two-scopes":                scopes(effortless, corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeBestEffort),
		"any-priority":              selects(compute, corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpExists),
		"no-priority":               selects(compute, corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpDoesNotExist),
		"gold":                      selects(compute, corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpIn, "gold", "platinum"),
		"not-gold":                  selects(compute, corev1.ResourceQuotaScopePriorityClass, corev1.ScopeSelectorOpNotIn, "gold"),
		"cross-namespace":           scopes(compute, corev1.ResourceQuotaScopeCrossNamespacePodAffinity),
		"terminating-by-selector":   selects(compute, corev1.ResourceQuotaScopeTerminating, corev1.ScopeSelectorOpExists),
		"volume-attributes":         selects(storage, corev1.ResourceQuotaScopeVolumeAttributesClass, corev1.ScopeSelectorOpIn, "fast"),
		"any-volume-attributes":     scopes(storage, corev1.ResourceQuotaScopeVolumeAttributesClass),
		"other-volume-attributes":   selects(storage, corev1.ResourceQuotaScopeVolumeAttributesClass, corev1.ScopeSelectorOpNotIn, "fast"),
		"without-volume-attributes": selects(storage, corev1.ResourceQuotaScopeVolumeAttributesClass, corev1.ScopeSelectorOpDoesNotExist),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := &tenant{world: shared, t: t, namespace: x.namespace}
			x.quota(name, spec.Hard, sharedMembers, func(s *v1alpha1.FleetQuotaSpec) { s.Scopes, s.ScopeSelector = spec.Scopes, spec.ScopeSelector })
			quota := x.agrees(name, "east", "west", "south")
			for key := range spec.Hard {
				if used := quota.Status.Used[key]; used.IsZero() {
					t.Logf("%s is 0 here", key)
				}
			}
		})
	}
}

// While objects come and go the totals follow, and afterwards they are exact.
func TestTotalsStayExactUnderChurn(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t)
	x.quota("all", everything(), sharedMembers)
	lasts := 8 * time.Second
	if testing.Short() {
		lasts = 3 * time.Second
	}
	ctx, cancel := context.WithTimeout(t.Context(), lasts)
	defer cancel()
	errs := make(chan error, 3)
	for seed, member := range []string{"east", "west", "south"} {
		go func() { errs <- churn(ctx, x.Member(member), x.namespace, uint64(seed)) }()
	}
	for range 3 {
		x.must(<-errs)
	}
	quota := x.agrees("all", "east", "west", "south")
	if used := quota.Status.Used["count/pods"]; used.IsZero() {
		t.Error("nothing is left: the test proves little")
	}
}

// churn creates, finishes and deletes objects at random until ctx ends.
func churn(ctx context.Context, member *scene.Cluster, namespace string, seed uint64) error {
	random := rand.New(rand.NewPCG(seed, 1))
	made := map[string]schema.GroupVersionResource{}
	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprintf("x%d", i)
		var err error
		switch random.IntN(6) {
		case 0, 1:
			made[name] = pods
			err = member.Create(ctx, namespace, pod(name, requests("cpu", fmt.Sprintf("%dm", 1+random.IntN(500)))))
		case 2:
			made[name] = widgets
			err = member.Create(ctx, namespace, custom(widgets, name))
		case 3:
			made[name] = claims
			err = member.Create(ctx, namespace, claim(name, "gold", "1Gi"))
		case 4:
			made[name] = services
			err = member.Create(ctx, namespace, service(name, corev1.ServiceTypeNodePort, 1+random.IntN(2)))
		default:
			for old, resource := range made { // any
				delete(made, old)
				if resource == pods && random.IntN(2) == 0 {
					err = finish(ctx, member, namespace, old)
					break
				}
				err = member.Delete(ctx, resource, namespace, old)
				break
			}
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
	return nil
}
