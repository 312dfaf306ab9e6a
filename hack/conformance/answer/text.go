package answer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Text gathers an answer.
type Text struct {
	lines strings.Builder
}

// String is the answer.
func (t *Text) String() string {
	return t.lines.String()
}

// Usage is what one object costs.
func (t *Text) Usage(kind schema.GroupResource, i int, used corev1.ResourceList, err error) {
	if err != nil {
		fmt.Fprintf(&t.lines, "%s %d is not charged\n", kind, i)
		return
	}
	fmt.Fprintf(&t.lines, "%s %d costs%s\n", kind, i, amounts(used))
}

// Open is what one object leaves open although it is required.
func (t *Text) Open(kind schema.GroupResource, i int, err error) {
	if err != nil {
		fmt.Fprintf(&t.lines, "%s %d %v\n", kind, i, err)
	}
}

// Scopes says which requirements of a quota one object fits.
func (t *Text) Scopes(kind schema.GroupResource, i, quota int, fits []bool) {
	fmt.Fprintf(&t.lines, "%s %d quota %d fits %v\n", kind, i, quota, fits)
}

// Uncovered lists the scopes of a quota that one object does not fit.
func (t *Text) Uncovered(kind schema.GroupResource, i, quota int, requirements []corev1.ScopedResourceSelectorRequirement) {
	if len(requirements) == 0 {
		return
	}
	fmt.Fprintf(&t.lines, "%s %d quota %d does not cover", kind, i, quota)
	for _, requirement := range requirements {
		fmt.Fprintf(&t.lines, " %s", requirement.ScopeName)
	}
	fmt.Fprintln(&t.lines)
}

// Admitted lists the requests for one object that admission charges.
func (t *Text) Admitted(kind schema.GroupResource, i int, requests []Request) {
	fmt.Fprintf(&t.lines, "%s %d is charged at %v\n", kind, i, requests)
}

// Type is the type of a service if that costs anything.
func (t *Text) Type(i int, kind corev1.ServiceType) {
	fmt.Fprintf(&t.lines, "services %d costs as a %q\n", i, kind)
}

// Foreign says whether objects of other kinds are refused, and selectors that
// cannot be.
func (t *Text) Foreign(kind schema.GroupResource, refused bool) {
	fmt.Fprintf(&t.lines, "%s: others are refused: %t\n", kind, refused)
}

// Matches says whether a quota counts one object.
func (t *Text) Matches(kind schema.GroupResource, i, quota int, matches bool) {
	fmt.Fprintf(&t.lines, "%s %d quota %d matches %t\n", kind, i, quota, matches)
}

// Sum is what a quota's names add up to.
func (t *Text) Sum(quota int, used corev1.ResourceList, err error) {
	if err != nil {
		fmt.Fprintf(&t.lines, "quota %d is not summed\n", quota)
		return
	}
	fmt.Fprintf(&t.lines, "quota %d sums%s\n", quota, amounts(used))
}

// Refused says that a quota cannot be.
func (t *Text) Refused(quota int) {
	fmt.Fprintf(&t.lines, "quota %d is refused\n", quota)
}

// amounts writes each name with its value.
func amounts(list corev1.ResourceList) string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(list)) {
		text.WriteString(" " + string(name) + "=" + number(list[name]))
	}
	return text.String()
}

// number is a quantity as a plain decimal number. Its own text is not the same
// for the same value.
func number(quantity resource.Quantity) string {
	text := quantity.AsDec().String()
	if strings.Contains(text, ".") {
		text = strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
	}
	if text == "-0" {
		return "0"
	}
	return text
}

// Requirements is the scopes and the selector of a quota as one list.
func Requirements(spec *corev1.ResourceQuotaSpec) []corev1.ScopedResourceSelectorRequirement {
	var all []corev1.ScopedResourceSelectorRequirement
	for _, scope := range spec.Scopes {
		all = append(all, corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: corev1.ScopeSelectorOpExists})
	}
	if spec.ScopeSelector != nil {
		all = append(all, spec.ScopeSelector.MatchExpressions...)
	}
	return all
}
