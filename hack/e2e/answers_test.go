package e2e_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// A member without the namespace is live and uses nothing there, until it has
// the namespace.
func TestNamespaceMissingInSomeMembers(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, "east")
	x.create("east", pod("a"))
	x.quota("all", list("pods", "10"), sharedMembers)
	x.becomes("all", complete, uses("pods", "1"), phase("east", v1alpha1.Live, ""),
		phase("west", v1alpha1.Live, "NamespaceMissing"), memberUses("west", "pods", "0"), phase("south", v1alpha1.Live, "NamespaceMissing"))

	x.must(x.Member("west").CreateNamespace(t.Context(), x.namespace))
	x.becomes("all", complete, phase("west", v1alpha1.Live, ""), memberUses("west", "pods", "0"))
	x.create("west", pod("a"))
	x.becomes("all", complete, uses("pods", "2"), phase("south", v1alpha1.Live, "NamespaceMissing"))
}

// A key that no member can count has no number, is named in every row, and
// leaves the other keys alone.
func TestKeyThatNoMemberCanCount(t *testing.T) {
	t.Parallel()
	const key = "count/unicorns.example.com"
	x := shared.tenant(t)
	x.create("east", pod("a", requests("cpu", "1")))
	x.quota("all", list("requests.cpu", "10", key, "5"), sharedMembers)
	quota := x.becomes("all", uses("requests.cpu", "1"), absent(key),
		unknown("east", []string{key}, "NotServed"), unknown("west", []string{key}, "NotServed"), unknown("south", []string{key}, "NotServed"),
		condition("Ready", "True", "Reported"), condition("UsageComplete", "False", "ResourcesUnknown"), condition("WithinHard", "Unknown", "UsageUnknown"))
	for _, c := range quota.Status.Conditions {
		if (c.Type == v1alpha1.ConditionUsageComplete || c.Type == v1alpha1.ConditionWithinHard) && !strings.Contains(c.Message, key) {
			t.Errorf("%s does not name %s: %s", c.Type, key, c.Message)
		}
	}
	for i := range quota.Status.Clusters {
		if _, ok := quota.Status.Clusters[i].Used[key]; ok {
			t.Errorf("%s has a number for %s", quota.Status.Clusters[i].Name, key)
		}
	}
	x.member("east", memberCondition("Ready", "True", "Live"), memberCondition("Synced", "True", "Counted"))
}

// Resource claims are counted by the devices that they ask for, and as the
// extended resource that a device class names.
func TestDevicesOfClaimsAreCounted(t *testing.T) {
	t.Parallel()
	const devices, count = "gold.deviceclass.resource.k8s.io/devices", "count/resourceclaims.resource.k8s.io"
	x := shared.tenant(t)
	x.quota("all", list("pods", "10", count, "10", devices, "5"), in("south"))
	x.becomes("all", complete, uses("pods", "0", count, "0", devices, "0"))
	x.create("south", deviceClaim("two", "gold", 2), deviceClaim("one", "silver", 1))
	x.becomes("all", complete, uses(count, "2", devices, "2"))
	x.agrees("all", "south")
	x.delete("south", resourcev1.SchemeGroupVersion.WithResource("resourceclaims"), "two")
	x.becomes("all", complete, uses(count, "1", devices, "0"))

	const chips = "requests.example.com/chip"
	_, err := x.Member("south").Kubernetes.ResourceV1().DeviceClasses().Create(t.Context(), &resourcev1.DeviceClass{
		ObjectMeta: named("chip"), Spec: resourcev1.DeviceClassSpec{ExtendedResourceName: new("example.com/chip")},
	}, metav1.CreateOptions{})
	x.must(err)
	x.create("south", deviceClaim("chips", "chip", 3), pod("chip", limits("example.com/chip", "1")))
	x.change("all", func(s *v1alpha1.FleetQuotaSpec) { s.Hard = list(count, "10", devices, "5", chips, "8") })
	x.becomes("all", complete, uses(count, "2", chips, "4"))
	x.agrees("all", "south")
}

// Two quotas of one namespace each answer for themselves.
func TestTwoQuotasInOneNamespace(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t)
	x.create("east", pod("a", requests("cpu", "1")), pod("effortless"))
	x.create("south", pod("a", requests("cpu", "2")))
	x.quota("compute", list("requests.cpu", "10", "pods", "10"), sharedMembers)
	x.quota("effortless", list("pods", "1"), in("east"), func(s *v1alpha1.FleetQuotaSpec) {
		s.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}
	})
	x.becomes("compute", complete, uses("requests.cpu", "3", "pods", "3"), rows("east", "south", "west"))
	x.becomes("effortless", complete, uses("pods", "1"), rows("east"))

	x.must(x.Hub.Quota.Quotas(x.namespace).Delete(t.Context(), "effortless", metav1.DeleteOptions{}))
	x.create("south", pod("b", requests("cpu", "1")))
	x.becomes("compute", complete, uses("requests.cpu", "4", "pods", "4"))

	x.quota("effortless", list("pods", "3"), in("east", "south")) // the same name again, and another quota
	x.becomes("effortless", complete, uses("pods", "4"), rows("east", "south"), condition("WithinHard", "False", "Exceeded"))
}

func TestSelectorThatMatchesNoMember(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t)
	x.create("east", pod("a"))
	x.quota("none", list("pods", "10"), selecting("region", "nowhere"))
	x.becomes("none", rows(), absent("pods"), condition("Ready", "True", "Reported"),
		condition("UsageComplete", "False", "NoMembers"), condition("WithinHard", "Unknown", "UsageUnknown"), columns("0/0", ""))
	x.change("none", in("east"))
	x.becomes("none", complete, rows("east"), uses("pods", "1"))
	x.change("none", selecting("region", "nowhere"))
	x.becomes("none", rows(), absent("pods"), condition("UsageComplete", "False", "NoMembers"))
}

// columns wants the summary to show these.
func columns(clusters, highest string) func(*v1alpha1.FleetQuota) error {
	return func(q *v1alpha1.FleetQuota) error {
		s := q.Status.Summary
		if s == nil || s.Clusters != clusters || s.Highest != highest {
			return fmt.Errorf("summary %+v, want clusters %q and highest %q", s, clusters, highest)
		}
		return nil
	}
}

// A quota that limits nothing observes nothing, and grows and shrinks as its
// spec does.
func TestEmptyHard(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t)
	x.create("east", pod("a"), configMap("a"))
	x.quota("empty", nil, sharedMembers)
	nothing := func(q *v1alpha1.FleetQuota) error {
		return errors.Join(same("used", q.Status.Used, nil), same("hard", q.Status.Hard, nil))
	}
	x.becomes("empty", complete, nothing, rows("east", "south", "west"), condition("Ready", "True", "Reported"),
		condition("WithinHard", "True", "Within"), columns("3/3", ""))
	x.change("empty", func(s *v1alpha1.FleetQuotaSpec) { s.Hard = list("pods", "2", "configmaps", "4") })
	x.becomes("empty", complete, uses("pods", "1", "configmaps", "1"), columns("3/3", "50%"))
	x.change("empty", func(s *v1alpha1.FleetQuotaSpec) { s.Hard = list("pods", "2") })
	x.becomes("empty", complete, uses("pods", "1"), absent("configmaps"))
	x.change("empty", func(s *v1alpha1.FleetQuotaSpec) { s.Hard = corev1.ResourceList{} })
	x.becomes("empty", complete, nothing)
}

// A spec that only the hub can find wrong is refused by a condition that names
// the field, and works once it is mended.
func TestSpecThatOnlyTheHubCanRefuse(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t)
	x.create("east", pod("a"))
	x.quota("wrong", list("pods", "10"), func(s *v1alpha1.FleetQuotaSpec) {
		s.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "region", Operator: "Near", Values: []string{"east"}},
		}}
	})
	x.becomes("wrong", condition("Ready", "False", "InvalidSpec"), func(q *v1alpha1.FleetQuota) error {
		for _, c := range q.Status.Conditions {
			if c.Type == v1alpha1.ConditionReady && !strings.Contains(c.Message, "spec.clusterSelector") {
				return fmt.Errorf("the message does not name the field: %s", c.Message)
			}
		}
		return nil
	})
	x.change("wrong", in("east"))
	x.becomes("wrong", complete, uses("pods", "1"), condition("Ready", "True", "Reported"))
	x.change("wrong", func(s *v1alpha1.FleetQuotaSpec) {
		s.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopeNotBestEffort, Operator: corev1.ScopeSelectorOpExists},
		}}
	})
	x.becomes("wrong", complete, uses("pods", "0"))
}

// What is used above hard is told, and never cut.
func TestUseAboveHardIsReportedNotClamped(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t)
	x.create("east", pod("a", requests("memory", "3Gi")), pod("b", requests("memory", "3Gi")))
	x.create("west", pod("a", requests("memory", "4Gi")))
	x.quota("all", list("requests.memory", "8Gi", "pods", "2"), sharedMembers)
	quota := x.becomes("all", complete, uses("requests.memory", "10Gi", "pods", "3"),
		condition("WithinHard", "False", "Exceeded"), columns("3/3", "150%"))
	s := quota.Status.Summary
	if s.Memory != "10Gi/8Gi" || s.Pods != "3/2" {
		t.Errorf("the summary is %+v", s)
	}
	x.change("all", func(s *v1alpha1.FleetQuotaSpec) { s.Hard = list("requests.memory", "10Gi", "pods", "3") })
	x.becomes("all", complete, condition("WithinHard", "True", "Within"), columns("3/3", "100%"))
}
