package evaluator_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/fleetquota/fleetquota/evaluator"
)

// With a quantity that is taken as it is, any of these would take hours.
func TestAbsurdQuantitiesCostNoTime(t *testing.T) {
	const most = "9223372036854775807"
	absurd := list("memory", "1e999999999")
	pods := map[string]*corev1.Pod{
		"requested":    pod(container("app", absurd), container("other", absurd)),
		"overhead":     pod(container("app", list("memory", "1")), overhead(absurd)),
		"in an init":   pod(container("app", list("memory", "1")), initContainer("setup", absurd)),
		"pod-level":    pod(container("app", list("memory", "1")), podLevel(absurd, nil)),
		"allocated":    pod(container("app", list("memory", "1")), holding("app", absurd, list("memory", "1"))),
		"actual, init": pod(initContainer("setup", list("memory", "1")), sidecar(nil), holdingInit("proxy", nil, absurd)),
	}
	for sentence, p := range pods {
		before := p.DeepCopy()
		for _, version := range []string{"v1.36.3", "v1.37.2"} {
			found := false
			for _, amount := range chargeBy(t, version, podKind, p).Amounts {
				if amount.Name == "requests.memory" {
					found = amount.Quantity.Cmp(list("n", most)["n"]) >= 0
				}
			}
			if !found {
				t.Errorf("%s, %s: the pod does not cost the most that there is", version, sentence)
			}
		}
		if !equalForms(before, p) {
			t.Errorf("%s: the pod changed", sentence)
		}
	}
	got := charge(t, podKind, pod(container("app", list("memory", "-1e999999999"))))
	wantAmounts(t, got.Amounts, list("pods", "1", "count/pods", "1", "requests.memory", "-"+most))
	got = charge(t, claimKind, claim(asking("1e999999999"), allocated(list("storage", "1e999999999"))))
	wantAmounts(t, got.Amounts, list("count/persistentvolumeclaims", "1", "requests.storage", most))

	large := list("memory", "1e29") // sums of such are exact
	got = charge(t, podKind, pod(container("app", large), container("other", large)))
	if diff := cmp.Diff("200e27", got.Amounts[2].Quantity.String()); diff != "" {
		t.Error(diff)
	}
}

// Limits are shared between goroutines once they are bounded.
func TestBoundingAgainWritesNothing(t *testing.T) {
	hard := list("pods", "1e999999999", "cpu", "-1e31", "memory", "1e30")
	evaluator.BoundAll(nil, hard)
	want := list("pods", "9223372036854775807", "cpu", "-9223372036854775807", "memory", "1e30")
	for name, quantity := range want {
		if quantity.Cmp(hard[name]) != 0 {
			t.Errorf("%s is %s, want %s", name, hard.Name(name, "").String(), quantity.String())
		}
	}
	if n := testing.AllocsPerRun(10, func() { evaluator.BoundAll(hard) }); n > 0 {
		t.Errorf("the second time allocates %v times", n)
	}
}
