package main_test

import (
	"math"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/evaluator/wire"
	"github.com/fleetquota/fleetquota/hack/conformance/answer"
	"github.com/fleetquota/fleetquota/hack/conformance/check"
	"github.com/fleetquota/fleetquota/hack/conformance/ours"
)

// live is the version that the tests build; of the others they have records.
const live = "1.37"

func TestLive(t *testing.T) {
	const objects, percent = 50_000, 95
	result, coverage, err := check.Live(t.Context(), live, t.TempDir(), 2, objects)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v\n%v", &result, coverage)
	if got := coverage.Total().Percent(); got < percent {
		t.Errorf("%.1f %% of the statements of upstream's evaluators have run, want %d %%", got, percent)
	}
}

func TestRecorded(t *testing.T) {
	for _, minor := range []string{"1.34", "1.35", "1.36"} {
		t.Run(minor, func(t *testing.T) {
			record, err := check.ReadRecord(minor)
			if err != nil {
				t.Fatal(err)
			}
			result, err := record.Compare(minor)
			if err != nil {
				t.Fatal(err)
			}
			if result.Different != nil {
				mine, err := ours.Answer(minor, result.Different, wire.NewCharges(0))
				t.Fatalf("Kubernetes %s has answered otherwise; go run . -versions %s -objects %d -seed %d shows how. Ours: %v\n%s\n%s",
					record.Kubernetes, minor, record.Objects, record.Seed, err, mine, check.YAML(result.Different))
			}
			t.Log(&result)
		})
	}
}

// TestDifferences holds the differences that we want: gen makes no such objects.
func TestDifferences(t *testing.T) {
	folder := t.TempDir()
	program, err := check.Build(t.Context(), live, folder)
	if err != nil {
		t.Fatal(err)
	}
	upstream, err := check.Start(t.Context(), program, folder)
	if err != nil {
		t.Fatal(err)
	}
	defer upstream.Stop()
	const implicit = "requests.deviceclass.resource.kubernetes.io/big"
	tests := map[string]struct {
		world  *answer.World
		ours   string
		theirs []string // one of these
	}{
		"a claim for more devices than fit an int64, of which a pod has paid for one": {
			world: &answer.World{
				Pods:         []*corev1.Pod{asking("p", "deviceclass.resource.kubernetes.io/big", "1")},
				DeviceClaims: []*resourcev1.ResourceClaim{madeFor("p", claiming(map[string]int64{"big": math.MaxInt64}, map[string]int64{"big": math.MaxInt64}))},
				Quotas:       limiting("big.deviceclass.resource.k8s.io/devices"),
			},
			ours:   "quota 0 sums big.deviceclass.resource.k8s.io/devices=18446744073709551614",
			theirs: []string{"quota 0 sums big.deviceclass.resource.k8s.io/devices=18446744073709551613"},
		},
		"two device classes that name one extended resource": {
			world: &answer.World{
				DeviceClaims:  []*resourcev1.ResourceClaim{claiming(map[string]int64{"new": 2, "old": 1})},
				DeviceClasses: []*resourcev1.DeviceClass{naming("new"), naming("old")},
				Quotas:        limiting("requests.example.com/gpu"),
			},
			ours:   "quota 0 sums requests.example.com/gpu=3",
			theirs: []string{"quota 0 sums requests.example.com/gpu=1", "quota 0 sums requests.example.com/gpu=2"},
		},
		"claims of a device class that does not exist": {
			world: &answer.World{
				DeviceClaims: []*resourcev1.ResourceClaim{claiming(map[string]int64{"big": 2})},
				Quotas:       limiting(implicit),
			},
			ours:   "quota 0 sums " + implicit + "=2",
			theirs: []string{"quota 0 sums " + implicit + "=0"}, // but 2 if the quota also limits the number of claims
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			mine, err := ours.Answer(live, test.world, wire.NewCharges(0))
			if err != nil {
				t.Fatal(err)
			}
			if err := upstream.Ask(test.world); err != nil {
				t.Fatal(err)
			}
			theirs, err := upstream.Next()
			if err != nil {
				t.Fatal(err)
			}
			if last(mine) != test.ours {
				t.Errorf("ours: got %q, want %q", last(mine), test.ours)
			}
			for _, expected := range test.theirs {
				if last(theirs) == expected {
					return
				}
			}
			t.Errorf("upstream: got %q, want one of %q: is the difference gone?", last(theirs), test.theirs)
		})
	}
}

func last(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}

func limiting(names ...corev1.ResourceName) []*corev1.ResourceQuota {
	quota := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{}}}
	for _, name := range names {
		quota.Spec.Hard[name] = resource.MustParse("1")
	}
	return []*corev1.ResourceQuota{quota}
}

func asking(name string, resourceName corev1.ResourceName, quantity string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: answer.Namespace, Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{resourceName: resource.MustParse(quantity)},
		}}}},
	}
}

// claiming is a claim for devices: class -> how many, for each request.
func claiming(requests ...map[string]int64) *resourcev1.ResourceClaim {
	claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: answer.Namespace, Name: "c"}}
	for _, devices := range requests {
		for class, n := range devices {
			claim.Spec.Devices.Requests = append(claim.Spec.Devices.Requests, resourcev1.DeviceRequest{Name: class, Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: n,
			}})
		}
	}
	return claim
}

// madeFor makes a claim one that was made for the extended resources of a pod.
func madeFor(pod string, claim *resourcev1.ResourceClaim) *resourcev1.ResourceClaim {
	claim.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod, Controller: new(true)}}
	return claim
}

func naming(class string) *resourcev1.DeviceClass {
	return &resourcev1.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: class},
		Spec:       resourcev1.DeviceClassSpec{ExtendedResourceName: new("example.com/gpu")},
	}
}
