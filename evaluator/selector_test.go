package evaluator_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetquota/fleetquota/evaluator"
)

// where is one expression of a scope selector.
func where(scope corev1.ResourceQuotaScope, operator corev1.ScopeSelectorOperator, values ...string) corev1.ScopedResourceSelectorRequirement {
	return corev1.ScopedResourceSelectorRequirement{ScopeName: scope, Operator: operator, Values: values}
}

// only is a selector of one expression.
func only(tb testing.TB, scope corev1.ResourceQuotaScope, operator corev1.ScopeSelectorOperator, values ...string) evaluator.Selector {
	tb.Helper()
	selector, err := evaluator.NewSelector(nil, &corev1.ScopeSelector{
		MatchExpressions: []corev1.ScopedResourceSelectorRequirement{where(scope, operator, values...)},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return selector
}

func TestSelectorScopes(t *testing.T) {
	plain := evaluator.Class{Kind: evaluator.ScopedPod}
	marked := evaluator.Class{
		Kind: evaluator.ScopedPod, Terminating: true, BestEffort: true, CrossNamespaceAffinity: true, PriorityClass: "high",
	}
	fast := evaluator.Class{Kind: evaluator.ScopedClaim, VolumeAttributesClasses: "fast"}
	bare := evaluator.Class{Kind: evaluator.ScopedClaim}
	none := evaluator.Class{}

	tests := map[string]struct {
		scopes  []corev1.ResourceQuotaScope
		in, out []evaluator.Class
	}{
		"no scope matches everything": {in: []evaluator.Class{plain, marked, fast, bare, none}},
		"Terminating":                 {scopes: []corev1.ResourceQuotaScope{"Terminating"}, in: []evaluator.Class{marked}, out: []evaluator.Class{plain, fast, bare, none}},
		"NotTerminating":              {scopes: []corev1.ResourceQuotaScope{"NotTerminating"}, in: []evaluator.Class{plain}, out: []evaluator.Class{marked, fast, bare, none}},
		"BestEffort":                  {scopes: []corev1.ResourceQuotaScope{"BestEffort"}, in: []evaluator.Class{marked}, out: []evaluator.Class{plain, fast, bare, none}},
		"NotBestEffort":               {scopes: []corev1.ResourceQuotaScope{"NotBestEffort"}, in: []evaluator.Class{plain}, out: []evaluator.Class{marked, fast, bare, none}},
		"PriorityClass":               {scopes: []corev1.ResourceQuotaScope{"PriorityClass"}, in: []evaluator.Class{marked}, out: []evaluator.Class{plain, fast, bare, none}},
		"CrossNamespacePodAffinity":   {scopes: []corev1.ResourceQuotaScope{"CrossNamespacePodAffinity"}, in: []evaluator.Class{marked}, out: []evaluator.Class{plain, fast, bare, none}},
		"VolumeAttributesClass":       {scopes: []corev1.ResourceQuotaScope{"VolumeAttributesClass"}, in: []evaluator.Class{fast}, out: []evaluator.Class{plain, marked, bare, none}},
		"all scopes must match":       {scopes: []corev1.ResourceQuotaScope{"Terminating", "NotBestEffort"}, out: []evaluator.Class{plain, marked, fast, bare, none}},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			selector, err := evaluator.NewSelector(test.scopes, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, class := range test.in {
				if !selector.Matches(class) {
					t.Errorf("%+v is out", class)
				}
			}
			for _, class := range test.out {
				if selector.Matches(class) {
					t.Errorf("%+v is in", class)
				}
			}
		})
	}
	if !(evaluator.Selector{}).Matches(marked) {
		t.Error("the zero selector matches nothing")
	}
}

func TestSelectorOperators(t *testing.T) {
	const scope = corev1.ResourceQuotaScopePriorityClass
	tests := map[string]struct {
		selector evaluator.Selector
		high     bool
		low      bool
		none     bool
	}{
		"In":           {selector: only(t, scope, "In", "high", "mid"), high: true},
		"NotIn":        {selector: only(t, scope, "NotIn", "high", "mid"), low: true, none: true},
		"Exists":       {selector: only(t, scope, "Exists"), high: true, low: true},
		"DoesNotExist": {selector: only(t, scope, "DoesNotExist"), none: true},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			for name, want := range map[string]bool{"high": test.high, "low": test.low, "": test.none} {
				class := evaluator.Class{Kind: evaluator.ScopedPod, PriorityClass: name}
				if got := test.selector.Matches(class); got != want {
					t.Errorf("class %q: got %t, want %t", name, got, want)
				}
			}
		})
	}
}

func TestSelectorOperatorsOnManyNames(t *testing.T) {
	const scope = corev1.ResourceQuotaScopeVolumeAttributesClass
	ab, empty := charge(t, claimKind, claim(attributes("a", "b", ""))).Class, charge(t, claimKind, claim()).Class
	tests := map[string]struct {
		selector  evaluator.Selector
		ab, empty bool
	}{
		"In is met by one of the names":         {selector: only(t, scope, "In", "b"), ab: true},
		"NotIn is met by one of the names":      {selector: only(t, scope, "NotIn", "b"), ab: true, empty: true},
		"NotIn is not met when all are listed":  {selector: only(t, scope, "NotIn", "a", "b"), empty: true},
		"Exists is met by any name":             {selector: only(t, scope, "Exists"), ab: true},
		"DoesNotExist is met by no name at all": {selector: only(t, scope, "DoesNotExist"), empty: true},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			if got := test.selector.Matches(ab); got != test.ab {
				t.Errorf("a and b: got %t, want %t", got, test.ab)
			}
			if got := test.selector.Matches(empty); got != test.empty {
				t.Errorf("no name: got %t, want %t", got, test.empty)
			}
		})
	}
}

func TestSelectorRefuses(t *testing.T) {
	tests := map[string]struct {
		scopes      []corev1.ResourceQuotaScope
		expressions []corev1.ScopedResourceSelectorRequirement
		want        string
	}{
		"an unknown scope": {
			scopes: []corev1.ResourceQuotaScope{"BestEffort", "Sometimes"},
			want:   "spec.scopes[1]: Unsupported value",
		},
		"a scope and its opposite": {
			scopes: []corev1.ResourceQuotaScope{"Terminating", "NotTerminating"},
			want:   "spec.scopes: Invalid value",
		},
		"an unknown scope in an expression": {
			expressions: []corev1.ScopedResourceSelectorRequirement{where("Sometimes", "Exists")},
			want:        "spec.scopeSelector.matchExpressions[0].scopeName: Unsupported value",
		},
		"a scope and its opposite in expressions": {
			expressions: []corev1.ScopedResourceSelectorRequirement{where("BestEffort", "Exists"), where("NotBestEffort", "Exists")},
			want:        "spec.scopeSelector.matchExpressions: Invalid value",
		},
		"an operator that the scope does not take": {
			expressions: []corev1.ScopedResourceSelectorRequirement{where("BestEffort", "DoesNotExist")},
			want:        "spec.scopeSelector.matchExpressions[0].operator: Invalid value",
		},
		"an unknown operator": {
			expressions: []corev1.ScopedResourceSelectorRequirement{where("PriorityClass", "Exists"), where("PriorityClass", "Near", "high")},
			want:        "spec.scopeSelector.matchExpressions[1].operator: Unsupported value",
		},
		"In without values": {
			expressions: []corev1.ScopedResourceSelectorRequirement{where("PriorityClass", "In")},
			want:        "spec.scopeSelector.matchExpressions[0].values: Required value",
		},
		"Exists with values": {
			expressions: []corev1.ScopedResourceSelectorRequirement{where("PriorityClass", "Exists", "high")},
			want:        "spec.scopeSelector.matchExpressions[0].values: Invalid value",
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			_, err := evaluator.NewSelector(test.scopes, &corev1.ScopeSelector{MatchExpressions: test.expressions})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestSelectorKeepsNothingOfItsArguments(t *testing.T) {
	spec := &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{where("PriorityClass", "In", "high")}}
	selector, err := evaluator.NewSelector(nil, spec)
	if err != nil {
		t.Fatal(err)
	}
	spec.MatchExpressions[0].Values[0] = "low"
	if !selector.Matches(evaluator.Class{Kind: evaluator.ScopedPod, PriorityClass: "high"}) {
		t.Error("the selector changed with the quota it was made from")
	}
}
