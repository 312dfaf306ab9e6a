package evaluator

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// ScopedKind says which of a quota's scopes an object can be in at all.
type ScopedKind uint8

const (
	// ScopedNone is an object in no scope: every kind but pods and claims.
	ScopedNone ScopedKind = iota
	// ScopedPod is a pod: in every scope but VolumeAttributesClass.
	ScopedPod
	// ScopedClaim is a persistent volume claim: in VolumeAttributesClass or none.
	ScopedClaim
)

// classSeparator joins names in Class.VolumeAttributesClasses. No name holds it.
const classSeparator = "\x00"

// Class is the scopes that an object falls under. Objects of one class are
// counted by the same quotas; it is comparable so that sums can be kept by it.
type Class struct {
	Kind ScopedKind

	// Of pods.
	Terminating            bool
	BestEffort             bool
	CrossNamespaceAffinity bool
	PriorityClass          string // empty: none

	// Of claims: the classes referred to, sorted and joined. Empty: none.
	VolumeAttributesClasses string
}

// Selector is a quota's scopes, compiled. The zero value matches every class.
type Selector struct {
	requirements []corev1.ScopedResourceSelectorRequirement // all must match
}

// NewSelector compiles spec.scopes and spec.scopeSelector of a quota. It refuses
// what the validation of ResourceQuota refuses, with the path of the field. It
// does not look at the names in spec.hard. The arguments are not kept.
func NewSelector(scopes []corev1.ResourceQuotaScope, selector *corev1.ScopeSelector) (Selector, error) {
	problems := validateScopes(scopes)
	var requirements []corev1.ScopedResourceSelectorRequirement
	for _, scope := range scopes {
		requirements = append(requirements, corev1.ScopedResourceSelectorRequirement{
			ScopeName: scope,
			Operator:  corev1.ScopeSelectorOpExists,
		})
	}
	if selector != nil {
		problems = append(problems, validateExpressions(selector.MatchExpressions)...)
		for i := range selector.MatchExpressions {
			requirements = append(requirements, *selector.MatchExpressions[i].DeepCopy())
		}
	}
	if len(problems) > 0 {
		return Selector{}, problems.ToAggregate()
	}
	return Selector{requirements: requirements}, nil
}

// Matches says whether a quota with these scopes counts objects of the class.
func (s Selector) Matches(class Class) bool {
	for i := range s.requirements {
		if !class.in(&s.requirements[i]) {
			return false
		}
	}
	return true
}

// in says whether the class is in one scope.
func (c Class) in(r *corev1.ScopedResourceSelectorRequirement) bool {
	switch c.Kind {
	case ScopedPod:
		return c.inPodScope(r)
	case ScopedClaim:
		return r.ScopeName == corev1.ResourceQuotaScopeVolumeAttributesClass && anyName(c.VolumeAttributesClasses, r)
	case ScopedNone:
	}
	return false
}

// inPodScope says whether the class of a pod is in one scope.
func (c Class) inPodScope(r *corev1.ScopedResourceSelectorRequirement) bool {
	switch r.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return c.Terminating
	case corev1.ResourceQuotaScopeNotTerminating:
		return !c.Terminating
	case corev1.ResourceQuotaScopeBestEffort:
		return c.BestEffort
	case corev1.ResourceQuotaScopeNotBestEffort:
		return !c.BestEffort
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return c.CrossNamespaceAffinity
	case corev1.ResourceQuotaScopePriorityClass:
		return anyName(c.PriorityClass, r)
	case corev1.ResourceQuotaScopeVolumeAttributesClass:
	}
	return false
}

// anyName says whether one of the joined names fits the requirement. That no
// name is there fits NotIn and DoesNotExist.
func anyName(names string, r *corev1.ScopedResourceSelectorRequirement) bool {
	switch r.Operator {
	case corev1.ScopeSelectorOpExists:
		return names != ""
	case corev1.ScopeSelectorOpDoesNotExist:
		return names == ""
	case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
		wanted := r.Operator == corev1.ScopeSelectorOpIn
		if names == "" {
			return !wanted
		}
		for name := range strings.SplitSeq(names, classSeparator) {
			if slices.Contains(r.Values, name) == wanted {
				return true
			}
		}
	}
	return false
}

// validateScopes checks spec.scopes.
func validateScopes(scopes []corev1.ResourceQuotaScope) field.ErrorList {
	path := field.NewPath("spec", "scopes")
	var problems field.ErrorList
	for i, scope := range scopes {
		problems = append(problems, validateScope(scope, path.Index(i))...)
	}
	return append(problems, validatePairs(scopes, path)...)
}

// validateExpressions checks spec.scopeSelector.matchExpressions.
func validateExpressions(expressions []corev1.ScopedResourceSelectorRequirement) field.ErrorList {
	path := field.NewPath("spec", "scopeSelector", "matchExpressions")
	var problems field.ErrorList
	var scopes []corev1.ResourceQuotaScope
	for i := range expressions {
		scopes = append(scopes, expressions[i].ScopeName)
		problems = append(problems, validateScope(expressions[i].ScopeName, path.Index(i).Child("scopeName"))...)
		problems = append(problems, validateOperator(&expressions[i], path.Index(i))...)
	}
	return append(problems, validatePairs(scopes, path)...)
}

// validateScope checks that a scope is one that Kubernetes knows.
func validateScope(scope corev1.ResourceQuotaScope, path *field.Path) field.ErrorList {
	known := append(scopesWithoutNames(), corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeVolumeAttributesClass)
	if slices.Contains(known, scope) {
		return nil
	}
	return field.ErrorList{field.NotSupported(path, scope, known)}
}

// validateOperator checks the operator of one expression, and its values.
func validateOperator(r *corev1.ScopedResourceSelectorRequirement, path *field.Path) field.ErrorList {
	operator, values := path.Child("operator"), path.Child("values")
	var problems field.ErrorList
	if slices.Contains(scopesWithoutNames(), r.ScopeName) && r.Operator != corev1.ScopeSelectorOpExists {
		problems = append(problems, field.Invalid(operator, r.Operator, "scope "+string(r.ScopeName)+" only takes Exists"))
	}
	switch r.Operator {
	case corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn:
		if len(r.Values) == 0 {
			problems = append(problems, field.Required(values, "operator "+string(r.Operator)+" needs at least one value"))
		}
	case corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist:
		if len(r.Values) > 0 {
			problems = append(problems, field.Invalid(values, r.Values, "operator "+string(r.Operator)+" takes no values"))
		}
	default:
		problems = append(problems, field.NotSupported(operator, r.Operator, []corev1.ScopeSelectorOperator{
			corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn,
			corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist,
		}))
	}
	return problems
}

// validatePairs checks that no scope stands beside its opposite: nothing would
// match both.
func validatePairs(scopes []corev1.ResourceQuotaScope, path *field.Path) field.ErrorList {
	var problems field.ErrorList
	for _, pair := range [][2]corev1.ResourceQuotaScope{
		{corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort},
		{corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating},
	} {
		if slices.Contains(scopes, pair[0]) && slices.Contains(scopes, pair[1]) {
			problems = append(problems, field.Invalid(path, scopes, string(pair[0])+" and "+string(pair[1])+" exclude each other"))
		}
	}
	return problems
}

// scopesWithoutNames lists the scopes that an object is in or not, with no name
// to compare.
func scopesWithoutNames() []corev1.ResourceQuotaScope {
	return []corev1.ResourceQuotaScope{
		corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating,
		corev1.ResourceQuotaScopeBestEffort, corev1.ResourceQuotaScopeNotBestEffort,
		corev1.ResourceQuotaScopeCrossNamespacePodAffinity,
	}
}
