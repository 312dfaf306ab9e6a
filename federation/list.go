package federation

import (
	"math"
	"math/big"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetquota/fleetquota/evaluator"
)

// addTo adds a list to a sum in place. The list is not changed, and the sum
// shares no storage with it: a copied Quantity would share its big decimal.
func addTo(sum, list corev1.ResourceList) {
	for name, quantity := range list {
		total, found := sum[name]
		if !found {
			sum[name] = quantity.DeepCopy()
			continue
		}
		total.Add(quantity) // total's decimal is the sum's own
		sum[name] = total
	}
}

// compare compares two quantities, of which anybody may have written either.
func compare(a, b resource.Quantity) int {
	a = evaluator.Bound(a)
	return a.Cmp(evaluator.Bound(b))
}

// larger is the larger of two quantities, and shares no storage with them.
func larger(a, b resource.Quantity) resource.Quantity {
	if compare(a, b) >= 0 {
		return a.DeepCopy()
	}
	return b.DeepCopy()
}

// smaller is the smaller of two quantities, and shares no storage with them.
func smaller(a, b resource.Quantity) resource.Quantity {
	if compare(a, b) <= 0 {
		return a.DeepCopy()
	}
	return b.DeepCopy()
}

// assign sets one resource of a list that may be nil.
func assign(list *corev1.ResourceList, name corev1.ResourceName, quantity resource.Quantity) {
	if *list == nil {
		*list = corev1.ResourceList{}
	}
	(*list)[name] = quantity.DeepCopy()
}

// Growth is by how much each resource that both lists name has grown.
func Growth(before, now corev1.ResourceList) corev1.ResourceList {
	grown := corev1.ResourceList{}
	for name, is := range now {
		was, known := before[name]
		if known && compare(is, was) > 0 {
			by := is.DeepCopy()
			by.Sub(was)
			grown[name] = by
		}
	}
	return grown
}

// Most is the larger value of each resource that either list names.
func Most(a, b corev1.ResourceList) corev1.ResourceList {
	most := a.DeepCopy()
	for name, quantity := range b {
		if have, ok := most[name]; !ok || compare(quantity, have) > 0 {
			assign(&most, name, quantity)
		}
	}
	return most
}

// exceeded names the resources of which more is used than the limit.
func exceeded(used, hard corev1.ResourceList) []corev1.ResourceName {
	var names []corev1.ResourceName
	for name, limit := range hard {
		if quantity, ok := used[name]; ok && compare(quantity, limit) > 0 {
			names = append(names, name)
		}
	}
	return names
}

// Equal says whether two lists name the same resources with the same values,
// however the values are written.
func Equal(a, b corev1.ResourceList) bool {
	if len(a) != len(b) {
		return false
	}
	for name, quantity := range a {
		other, ok := b[name]
		if !ok || compare(quantity, other) != 0 {
			return false
		}
	}
	return true
}

// Percent is used of hard in whole percent, rounded down and exact. It is false
// where there is no such number: one of them is not known, or hard is 0.
func Percent(used, hard corev1.ResourceList, name corev1.ResourceName) (int64, bool) {
	u, known := used[name]
	h, limited := hard[name]
	if !known || !limited || h.IsZero() {
		return 0, false
	}
	percent := new(big.Int).Mul(nanos(u), big.NewInt(100))
	percent.Quo(percent, nanos(h))
	if !percent.IsInt64() {
		return math.MaxInt64, true
	}
	return percent.Int64(), true
}

// nanos is a quantity in units of 1e-9, the smallest that a Quantity holds.
func nanos(q resource.Quantity) *big.Int {
	const smallest = 9
	own := evaluator.Bound(q.DeepCopy()) // AsDec changes its receiver
	dec := own.AsDec()
	digits := new(big.Int).Set(dec.UnscaledBig())
	shift := big.NewInt(10)
	if exponent := smallest - int64(dec.Scale()); exponent >= 0 {
		return digits.Mul(digits, shift.Exp(shift, big.NewInt(exponent), nil))
	}
	return digits.Quo(digits, shift.Exp(shift, big.NewInt(int64(dec.Scale())-smallest), nil))
}
