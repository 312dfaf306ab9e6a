package federation_test

import (
	"math"
	"math/big"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetquota/fleetquota/federation"
)

// FuzzQuantities adds two quantities however they are written, as what pods use
// in two members, and takes one away again.
func FuzzQuantities(f *testing.F) {
	for _, text := range []string{"0", "1n", "100m", "1.5Gi", "100000Gi", "7Ei", "9223372036854775807", "1000E", "12345678901234567890.5", "-1", "1e3", "0.0000000001"} {
		f.Add(text, "7Ei")
		f.Add("1n", text)
	}
	const longest = 32                                 // as the API allows
	absurd := regexp.MustCompile(`[eE][+-]?[0-9]{3,}`) // the evaluators have a bound for these, but some take minutes to be read
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a) > longest || len(b) > longest || absurd.MatchString(a) || absurd.MatchString(b) {
			return
		}
		x, errX := resource.ParseQuantity(a)
		y, errY := resource.ParseQuantity(b)
		const tooFar = 1e30 // the evaluators have a bound there
		if errX != nil || errY != nil || math.Abs(x.AsApproximateFloat64()) > tooFar || math.Abs(y.AsApproximateFloat64()) > tooFar {
			return
		}
		ledger := federation.NewLedger(nil)
		eu, us := ledger.Open("eu", served, nil), ledger.Open("us", served, nil)
		eu.Replace(pods, nothing)
		us.Replace(pods, nothing)
		used := func(members ...string) *big.Rat {
			return rational(ledger.Usage(ask("memory"), members).Used[corev1.ResourceMemory])
		}
		eu.Set(pods, charged(pods, asks(x), noon))
		us.Set(pods, charged(pods, asks(y), noon))
		sum := new(big.Rat).Add(rational(x), rational(y))
		for range 2 { // a sum that is read does not change
			if got := used("eu", "us"); got.Cmp(sum) != 0 {
				t.Errorf("%s and %s are %s, want %s", a, b, got, sum)
			}
		}
		other := asks(y)
		other.Name = "q"
		eu.Set(pods, charged(pods, other, noon))
		eu.Delete(pods, "a", "p")
		if got := used("eu"); got.Cmp(rational(y)) != 0 {
			t.Errorf("%s is left of %s and %s, want %s", got, a, b, b)
		}
	})
}

func asks(memory resource.Quantity) *corev1.Pod {
	p := pod("p")
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceMemory: memory.DeepCopy()}
	return p
}
