package evaluator_test

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/evaluator"
)

// chargeBy charges an object by the rules of a version.
func chargeBy(tb testing.TB, version string, kind schema.GroupResource, p *corev1.Pod) evaluator.Charge {
	tb.Helper()
	found, _ := evaluator.NewSet(version, []schema.GroupResource{kind}).For(kind)
	got, err := found.Charge(p, noon)
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

func holdingInit(name string, allocated, actual corev1.ResourceList) podOption {
	return func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{
			Name: name, AllocatedResources: allocated, Resources: &corev1.ResourceRequirements{Requests: actual, Limits: actual},
		})
	}
}

func TestSkewOfResizedPods(t *testing.T) {
	tests := map[string]struct {
		pod      *corev1.Pod
		upTo136  corev1.ResourceList // beside the pod itself
		since137 corev1.ResourceList
	}{
		"two containers, one of them shrinking and one growing": {
			pod: pod(container("a", list("cpu", "1")), container("b", list("cpu", "3")),
				holding("a", list("cpu", "2"), list("cpu", "2")), holding("b", list("cpu", "1"), list("cpu", "1"))),
			upTo136:  list("requests.cpu", "5", "limits.cpu", "3"), // 2 + 3
			since137: list("requests.cpu", "4", "limits.cpu", "3"), // of 4 asked for, 3 allocated, 3 actual
		},
		"an allocation without actual resources": {
			pod:      pod(container("a", list("cpu", "1")), holding("a", list("cpu", "2"), nil)),
			upTo136:  list("requests.cpu", "1"),
			since137: list("requests.cpu", "2"),
		},
		"an infeasible resize with a status": {
			pod:      pod(container("a", list("cpu", "8"), list("cpu", "8")), infeasible, holding("a", list("cpu", "2"), list("cpu", "1"))),
			upTo136:  list("requests.cpu", "2", "limits.cpu", "1"),
			since137: list("requests.cpu", "2", "limits.cpu", "1"),
		},
		"an infeasible resize of a container without a status": {
			pod:      pod(container("a", list("cpu", "8"), list("cpu", "8")), infeasible),
			upTo136:  list("requests.cpu", "8", "limits.cpu", "8"),
			since137: list(),
		},
		"an infeasible resize with an empty status": {
			pod:      pod(container("a", list("cpu", "8"), list("cpu", "8")), infeasible, holding("a", nil, list())),
			upTo136:  list(),
			since137: list(),
		},
		"a sidecar that holds more": {
			pod:      pod(sidecar(list("cpu", "1")), container("a", list("cpu", "1")), holdingInit("proxy", list("cpu", "3"), list("cpu", "2"))),
			upTo136:  list("requests.cpu", "4", "limits.cpu", "2"),
			since137: list("requests.cpu", "4", "limits.cpu", "2"),
		},
		"an init container that holds more": {
			pod:      pod(initContainer("setup", list("cpu", "1")), holdingInit("setup", list("cpu", "3"), list("cpu", "2"))),
			upTo136:  list("requests.cpu", "1"),
			since137: list("requests.cpu", "3", "limits.cpu", "2"),
		},
		"the last status of a name, or the first": {
			pod:      pod(container("a", list("cpu", "1")), holding("a", nil, list("cpu", "2")), holding("a", nil, list("cpu", "3"))),
			upTo136:  list("requests.cpu", "3", "limits.cpu", "3"),
			since137: list("requests.cpu", "2", "limits.cpu", "2"),
		},
		"pod-level resources come first everywhere": {
			pod: pod(container("a", list("cpu", "1")), holding("a", list("cpu", "5"), list("cpu", "5")),
				podLevel(list("cpu", "4"), list("cpu", "4")), overhead(list("cpu", "1"))),
			upTo136:  list("requests.cpu", "5", "limits.cpu", "5"),
			since137: list("requests.cpu", "5", "limits.cpu", "5"),
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			before := test.pod.DeepCopy()
			for version, want := range map[string]corev1.ResourceList{
				"v1.34.4": test.upTo136, "v1.35.4": test.upTo136, "v1.36.3": test.upTo136, "v1.37.2": test.since137,
			} {
				expected := list("pods", "1", "count/pods", "1")
				maps.Copy(expected, want)
				wantAmounts(t, chargeBy(t, version, podKind, test.pod).Amounts, expected)
			}
			if !equalForms(before, test.pod) {
				t.Error("the pod changed")
			}
		})
	}
}

func TestSkewOfBestEffort(t *testing.T) {
	tests := map[string]struct {
		pod               *corev1.Pod
		upTo136, since137 bool
	}{
		"empty pod-level resources, and containers that ask": {
			pod: pod(container("a", list("cpu", "1")), podLevel(nil, nil)), upTo136: true, since137: false,
		},
		"pod-level resources that are none of those that count": {
			pod: pod(container("a", list("cpu", "1")), podLevel(list("example.com/gpu", "1"), nil)), upTo136: true, since137: false,
		},
		"pod-level resources": {
			pod: pod(container("a", nil), podLevel(list("cpu", "1"), nil)),
		},
		"pod-level resources of zero": {
			pod: pod(container("a", list("cpu", "1")), podLevel(list("cpu", "0"), nil)), upTo136: true, since137: true,
		},
		"less than nothing": {
			pod: pod(container("a", list("cpu", "-1"))), upTo136: true, since137: false,
		},
		"what the API server recorded": {
			pod: pod(container("a", list("cpu", "1")), qosClass(corev1.PodQOSBestEffort)), upTo136: true, since137: true,
		},
	}
	for sentence, test := range tests {
		for version, want := range map[string]bool{
			"v1.34.4": test.upTo136, "v1.35.4": test.upTo136, "v1.36.3": test.upTo136, "v1.37.2": test.since137,
		} {
			if got := chargeBy(t, version, podKind, test.pod).Class.BestEffort; got != want {
				t.Errorf("%s, %s: best effort is %t, want %t", version, sentence, got, want)
			}
		}
	}
}

func TestSkewOfImplicitResources(t *testing.T) {
	const name = "requests.deviceclass.resource.kubernetes.io/big"
	p := pod(container("a", list("deviceclass.resource.kubernetes.io/big", "2")))
	for version, counts := range map[string]bool{"v1.34.4": false, "v1.35.4": true, "v1.36.3": true, "v1.37.2": true} {
		want := list("pods", "1", "count/pods", "1")
		if counts {
			want[name] = list("n", "2")["n"]
		}
		wantAmounts(t, chargeBy(t, version, podKind, p).Amounts, want)
		set := evaluator.NewSet(version, []schema.GroupResource{podKind})
		if got := len(set.Kinds(name)) > 0; got != counts {
			t.Errorf("%s: a quota on it can be counted: %t, want %t", version, got, counts)
		}
	}
}
