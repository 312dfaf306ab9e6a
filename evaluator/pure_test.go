package evaluator_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/fleetquota/fleetquota/evaluator"
)

// anyList draws requests of all kinds, with quantities below and above what fits
// an int64.
func anyList(t *rapid.T, label string) corev1.ResourceList {
	names := rapid.SampledFrom([]string{
		"cpu", "memory", "storage", "ephemeral-storage", "hugepages-2Mi", "example.com/gpu", "unknown",
	})
	quantities := rapid.SampledFrom([]string{"0", "1", "100m", "1500m", "64Mi", "100000Gi", "7Ei", "1000E"})
	drawn := corev1.ResourceList{}
	for name, quantity := range rapid.MapOfN(names, quantities, 0, 4).Draw(t, label) {
		drawn[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return drawn
}

func anyPod(t *rapid.T) *corev1.Pod {
	p := pod(overhead(anyList(t, "overhead")), phase(rapid.SampledFrom([]corev1.PodPhase{"", "Running", "Failed"}).Draw(t, "phase")))
	for i := range rapid.IntRange(0, 3).Draw(t, "containers") {
		name := string(rune('a' + i))
		container(name, anyList(t, "requests"), anyList(t, "limits"))(p)
		holding(name, anyList(t, "allocated"), anyList(t, "actual"))(p)
	}
	for range rapid.IntRange(0, 2).Draw(t, "sidecars") {
		sidecar(anyList(t, "sidecar"))(p)
		initContainer("setup", anyList(t, "init"))(p)
	}
	if rapid.Bool().Draw(t, "whole") {
		podLevel(anyList(t, "whole requests"), anyList(t, "whole limits"))(p)
	}
	if rapid.Bool().Draw(t, "deleted") {
		deleted(time.Duration(rapid.IntRange(-60, 60).Draw(t, "since"))*time.Second, rapid.Int64Range(0, 60).Draw(t, "grace"))(p)
	}
	return p
}

func anyClaim(t *rapid.T) *corev1.PersistentVolumeClaim {
	c := claim(inClass(rapid.SampledFrom([]string{"", "gold"}).Draw(t, "class")), allocated(anyList(t, "allocated")))
	c.Spec.Resources.Requests = anyList(t, "requests")
	return c
}

func anyDeviceClaim(t *rapid.T) *resourcev1.ResourceClaim {
	classes, counts := rapid.SampledFrom([]string{"", "big", "small"}), rapid.Int64Range(-1, math.MaxInt64)
	modes := rapid.SampledFrom([]resourcev1.DeviceAllocationMode{
		"", resourcev1.DeviceAllocationModeAll, resourcev1.DeviceAllocationModeExactCount,
	})
	c := deviceClaim("c")
	for range rapid.IntRange(0, 3).Draw(t, "requests") {
		if rapid.Bool().Draw(t, "exactly") {
			exactly(classes.Draw(t, "class"), modes.Draw(t, "mode"), counts.Draw(t, "count"))(c)
			continue
		}
		firstOf(option(classes.Draw(t, "class"), modes.Draw(t, "mode"), counts.Draw(t, "count")),
			option(classes.Draw(t, "class"), modes.Draw(t, "mode"), counts.Draw(t, "count")))(c)
	}
	return c
}

func anyService(t *rapid.T) *corev1.Service {
	kinds := []corev1.ServiceType{"", corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer}
	return service(rapid.SampledFrom(kinds).Draw(t, "type"), nil, rapid.SliceOfN(rapid.Int32Range(0, 1), 0, 3).Draw(t, "ports")...)
}

// equalForms is stricter than Equal: the form of a quantity counts too.
func equalForms(a, b any) bool {
	return reflect.DeepEqual(a, b)
}

func TestChargingIsPure(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		version := rapid.SampledFrom([]string{"v1.34.4", "v1.36.3", "v1.37.2"}).Draw(t, "version")
		for kind, object := range map[schema.GroupResource]runtime.Object{
			podKind: anyPod(t), claimKind: anyClaim(t), serviceKind: anyService(t), deviceClaimKind: anyDeviceClaim(t),
		} {
			charges, _ := evaluator.NewSet(version, []schema.GroupResource{kind}).For(kind)
			before := object.DeepCopyObject()
			first, err := charges.Charge(object, noon)
			if err != nil {
				t.Fatal(err)
			}
			second, err := charges.Charge(object, noon)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(first, second); diff != "" {
				t.Errorf("the second charge differs:\n%s", diff)
			}
			for i := range first.Amounts {
				first.Amounts[i].Quantity.Add(resource.MustParse("50000Gi"))
			}
			if !equalForms(before, object) {
				t.Errorf("the object changed:\n%s", cmp.Diff(before, object))
			}
			third, err := charges.Charge(object, noon)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(second, third); diff != "" {
				t.Errorf("adding to a charge changed the next one:\n%s", diff)
			}
		}
	})
}
