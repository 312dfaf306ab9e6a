package evaluator_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetquota/fleetquota/evaluator"
)

func TestPodCharge(t *testing.T) {
	tests := map[string]struct {
		pod  *corev1.Pod
		want corev1.ResourceList // beside one of count/pods and one of pods
	}{
		"a pod that asks for nothing costs itself": {
			pod: pod(container("app", nil)),
		},
		"a request of zero is said, an absent one is not": {
			pod:  pod(container("app", list("cpu", "0"))),
			want: list("requests.cpu", "0"),
		},
		"requests and limits of containers add up": {
			pod: pod(
				container("app", list("cpu", "100m", "memory", "64Mi"), list("cpu", "1", "memory", "1Gi")),
				container("log", list("cpu", "50m", "ephemeral-storage", "1Gi"), list("cpu", "1", "ephemeral-storage", "2Gi"))),
			want: list("requests.cpu", "150m", "requests.memory", "64Mi", "requests.ephemeral-storage", "1Gi",
				"limits.cpu", "2", "limits.memory", "1Gi", "limits.ephemeral-storage", "2Gi"),
		},
		"an init container counts where it asks for more than all the others together": {
			pod: pod(initContainer("setup", list("cpu", "2", "memory", "1Mi")),
				container("app", list("cpu", "1", "memory", "1Gi")), container("log", list("cpu", "500m"))),
			want: list("requests.cpu", "2", "requests.memory", "1Gi"),
		},
		"init containers run one by one": {
			pod:  pod(initContainer("a", list("cpu", "2")), initContainer("b", list("cpu", "3")), container("app", list("cpu", "1"))),
			want: list("requests.cpu", "3"),
		},
		"a sidecar runs beside the init containers after it": {
			pod:  pod(sidecar(list("cpu", "1")), initContainer("setup", list("cpu", "3")), container("app", list("cpu", "2"))),
			want: list("requests.cpu", "4"),
		},
		"a sidecar does not run beside the init containers before it": {
			pod:  pod(initContainer("setup", list("cpu", "3")), sidecar(list("cpu", "1")), container("app", list("cpu", "1"))),
			want: list("requests.cpu", "3"),
		},
		"a sidecar runs beside the containers": {
			pod:  pod(sidecar(list("cpu", "1")), container("app", list("cpu", "2"))),
			want: list("requests.cpu", "3"),
		},
		"overhead adds to requests, and to limits that are set": {
			pod: pod(overhead(list("cpu", "250m", "memory", "120Mi")),
				container("app", list("cpu", "1"), list("cpu", "2"))),
			want: list("requests.cpu", "1250m", "requests.memory", "120Mi", "limits.cpu", "2250m"),
		},
		"resources of the pod as a whole replace the sum of the containers": {
			pod: pod(podLevel(list("cpu", "2"), list("cpu", "4")),
				container("app", list("cpu", "5", "memory", "1Gi"), list("cpu", "6"))),
			want: list("requests.cpu", "2", "requests.memory", "1Gi", "limits.cpu", "4"),
		},
		"of the resources of the pod as a whole only cpu, memory and huge pages count": {
			pod:  pod(podLevel(list("hugepages-2Mi", "4Mi", "example.com/gpu", "9"), nil), container("app", nil)),
			want: list("requests.hugepages-2Mi", "4Mi"),
		},
		"overhead adds to the resources of the pod as a whole": {
			pod:  pod(podLevel(list("cpu", "2"), list("cpu", "4")), overhead(list("cpu", "1")), container("app", nil)),
			want: list("requests.cpu", "3", "limits.cpu", "5"),
		},
		"a pod that is to grow costs what it asks for": {
			pod:  pod(container("app", list("cpu", "4")), holding("app", list("cpu", "1"), list("cpu", "1"))),
			want: list("requests.cpu", "4", "limits.cpu", "1"),
		},
		"a pod that is to shrink costs what is allocated": {
			pod:  pod(container("app", list("cpu", "1")), holding("app", list("cpu", "4"), list("cpu", "2"))),
			want: list("requests.cpu", "4", "limits.cpu", "2"),
		},
		"a pod that is to shrink costs what is still set": {
			pod:  pod(container("app", list("cpu", "1"), list("cpu", "1")), holding("app", list("cpu", "1"), list("cpu", "3"))),
			want: list("requests.cpu", "3", "limits.cpu", "3"),
		},
		"what cannot be granted does not count": {
			pod:  pod(container("app", list("cpu", "64")), holding("app", list("cpu", "1"), list("cpu", "2")), infeasible),
			want: list("requests.cpu", "2", "limits.cpu", "2"),
		},
		"huge pages are counted by request": {
			pod:  pod(container("app", list("hugepages-2Mi", "8Mi"), list("hugepages-2Mi", "8Mi"))),
			want: list("requests.hugepages-2Mi", "8Mi"),
		},
		"extended resources are counted by request": {
			pod:  pod(container("app", list("example.com/gpu", "2"), list("example.com/gpu", "2"))),
			want: list("requests.example.com/gpu", "2"),
		},
		"the implicit resource of a device class is counted by request": {
			pod:  pod(container("app", list("deviceclass.resource.kubernetes.io/big", "1"))),
			want: list("requests.deviceclass.resource.kubernetes.io/big", "1"),
		},
		"other names are not counted": {
			pod: pod(container("app", list("storage", "1", "kubernetes.io/batch", "1", "requests.example.com/x", "1",
				"example.com/"+strings.Repeat("x", 64), "1"), list("example.com/gpu", "1"))),
		},
		"sums beyond an int64 are exact": {
			pod:  pod(container("a", list("memory", "7Ei")), container("b", list("memory", "7Ei"))),
			want: list("requests.memory", "16140901064495857664"),
		},
		"a pod in an unknown phase counts": {
			pod:  pod(phase(corev1.PodUnknown), container("app", list("cpu", "1"))),
			want: list("requests.cpu", "1"),
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			want := list("count/pods", "1", "pods", "1")
			maps.Copy(want, test.want)
			got := charge(t, podKind, test.pod)
			wantAmounts(t, got.Amounts, want)
			if !got.Until.IsZero() || got.After != nil {
				t.Errorf("until %v, then %v: want for ever", got.Until, got.After)
			}
		})
	}
}

func TestPodChargeEnds(t *testing.T) {
	running := list("count/pods", "1", "pods", "1", "requests.cpu", "1")
	stored := list("count/pods", "1")
	tests := map[string]struct {
		end   podOption
		want  corev1.ResourceList
		lasts time.Duration // zero: until it changes
	}{
		"a pod that succeeded costs a count":                       {end: phase(corev1.PodSucceeded), want: stored},
		"a pod that failed costs a count":                          {end: phase(corev1.PodFailed), want: stored},
		"a deleted pod costs all until grace has passed once more": {end: deleted(30*time.Second, 30), want: running, lasts: time.Minute},
		"a deleted pod costs all at its last moment":               {end: deleted(-30*time.Second, 30), want: running, lasts: -1},
		"a pod past its grace costs a count":                       {end: deleted(-31*time.Second, 30), want: stored},
		"a finished pod that is deleted has no deadline": {
			end: func(p *corev1.Pod) { deleted(time.Minute, 30)(p); phase(corev1.PodFailed)(p) }, want: stored,
		},
		"a deletion without a grace period has no deadline": {
			end: func(p *corev1.Pod) { deleted(-time.Hour, 0)(p); p.DeletionGracePeriodSeconds = nil }, want: running,
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			got := charge(t, podKind, pod(container("app", list("cpu", "1")), highPriority, test.end))
			wantAmounts(t, got.Amounts, test.want)
			if test.lasts == 0 {
				if !got.Until.IsZero() || got.After != nil {
					t.Errorf("until %v, then %v: want for ever", got.Until, got.After)
				}
				return
			}
			if want := noon.Add(max(test.lasts, 0)); !got.Until.Equal(want) {
				t.Errorf("until %v, want %v", got.Until, want)
			}
			wantAmounts(t, got.After.Amounts, stored)
			if got.After.Class != got.Class || got.After.After != nil || !got.After.Until.IsZero() {
				t.Errorf("then %+v: want the same class, for ever", got.After)
			}
		})
	}
}

// The sum over containers adds the overhead in place: without a copy, a pod with
// more than 100000Gi would grow each time that it is looked at.
func TestPodChargeLeavesBigQuantitiesAlone(t *testing.T) {
	big := pod(podLevel(list("memory", "100000Gi"), list("memory", "100000Gi")), overhead(list("memory", "50000Gi")), container("app", nil))
	want := list("count/pods", "1", "pods", "1", "requests.memory", "150000Gi", "limits.memory", "150000Gi")
	for range 3 {
		wantAmounts(t, charge(t, podKind, big).Amounts, want)
	}
}

// Whoever adds up a charge must not change the object through it.
func TestPodChargeSharesNoQuantity(t *testing.T) {
	tests := map[string]*corev1.Pod{
		"of a container":    pod(container("app", list("memory", "100000Gi"), list("memory", "100000Gi"))),
		"of the whole pod":  pod(podLevel(list("memory", "100000Gi"), list("memory", "100000Gi")), container("app", nil)),
		"of the overhead":   pod(overhead(list("memory", "100000Gi")), container("app", nil)),
		"of the allocation": pod(container("app", nil), holding("app", list("memory", "100000Gi"), list("memory", "100000Gi"))),
	}
	for sentence, object := range tests {
		t.Run(sentence, func(t *testing.T) {
			before := object.DeepCopy()
			got := charge(t, podKind, object)
			for i := range got.Amounts {
				got.Amounts[i].Quantity.Add(list("x", "50000Gi")["x"])
			}
			if diff := cmp.Diff(before, object); diff != "" {
				t.Errorf("the pod changed:\n%s", diff)
			}
		})
	}
}

func TestChargeRefusesOtherObjects(t *testing.T) {
	for _, kind := range []struct {
		evaluator evaluator.Evaluator
		null      runtime.Object
	}{
		{forKind(t, podKind), (*corev1.Pod)(nil)},
		{forKind(t, serviceKind), (*corev1.Service)(nil)},
		{forKind(t, claimKind), (*corev1.PersistentVolumeClaim)(nil)},
	} {
		for _, object := range []runtime.Object{nil, kind.null, &corev1.ConfigMap{}} {
			if got, err := kind.evaluator.Charge(object, noon); err == nil {
				t.Errorf("%v charged %T: %v", kind.evaluator.Resource(), object, got)
			}
		}
	}
}

func TestPodConstraints(t *testing.T) {
	tests := map[string]struct {
		pod      *corev1.Pod
		required []corev1.ResourceName
		want     string
	}{
		"nothing is required": {
			pod: pod(container("app", nil)),
		},
		"only cpu and memory have to be set": {
			pod:      pod(container("app", nil)),
			required: []corev1.ResourceName{"pods", "requests.ephemeral-storage", "limits.ephemeral-storage", "requests.example.com/gpu", "requests.storage"},
		},
		"what is set is enough, even when zero": {
			pod:      pod(container("app", list("cpu", "0", "memory", "1"), list("cpu", "1", "memory", "1"))),
			required: []corev1.ResourceName{"cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"},
		},
		"each name is reported, as the quota writes it": {
			pod:      pod(container("app", nil)),
			required: []corev1.ResourceName{"requests.cpu", "cpu", "limits.memory", "memory", "requests.memory", "limits.cpu", "cpu"},
			want: "must specify cpu for: app; limits.cpu for: app; limits.memory for: app; memory for: app; " +
				"requests.cpu for: app; requests.memory for: app",
		},
		"each container is reported once, init containers too": {
			pod: pod(container("web", nil), container("log", list("cpu", "1")),
				initContainer("setup", nil), initContainer("web", nil)),
			required: []corev1.ResourceName{"requests.cpu"},
			want:     "must specify requests.cpu for: setup,web",
		},
		"a pod that sets resources as a whole is free": {
			pod:      pod(podLevel(list("cpu", "1"), nil), container("app", nil)),
			required: []corev1.ResourceName{"limits.memory"},
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			got := ""
			if err := forKind(t, podKind).Constraints(test.pod, test.required); err != nil {
				got = err.Error()
			}
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	if err := forKind(t, podKind).Constraints(&corev1.Service{}, nil); err == nil {
		t.Error("a service met the constraints of pods")
	}
}

func BenchmarkChargePod(b *testing.B) {
	object := pod(
		initContainer("setup", list("cpu", "1", "memory", "1Gi")),
		sidecar(list("cpu", "100m", "memory", "64Mi")),
		container("app", list("cpu", "500m", "memory", "512Mi"), list("cpu", "1", "memory", "1Gi")),
		container("log", list("cpu", "50m", "memory", "32Mi"), list("memory", "64Mi")),
		holding("app", list("cpu", "500m", "memory", "512Mi"), list("cpu", "500m", "memory", "512Mi")),
		phase(corev1.PodRunning), qosClass(corev1.PodQOSBurstable), highPriority,
	)
	pods := forKind(b, podKind)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := pods.Charge(object, noon); err != nil {
			b.Fatal(err)
		}
	}
}
