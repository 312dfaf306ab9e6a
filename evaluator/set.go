package evaluator

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Set is the evaluators for one version of Kubernetes and the kinds that one
// cluster serves. It is immutable and safe for concurrent use; a cluster that
// serves other kinds than before gets a new one.
type Set struct {
	rules      rules
	exact      bool
	evaluators map[schema.GroupResource]Evaluator
}

// NewSet builds the evaluators for a version such as "v1.37.2", "1.36+" or
// "v1.34.4-gke.100", and the kinds that are served. Outside of 1.34 to 1.37 the
// nearest rules apply, and the newest where the version is not understood; Exact
// is then false. Kinds that quota never counts are left out, as if not served.
func NewSet(version string, served []schema.GroupResource) *Set {
	chosen, exact := rulesFor(version)
	set := &Set{rules: chosen, exact: exact, evaluators: make(map[schema.GroupResource]Evaluator, len(served))}
	for _, kind := range served {
		if !neverCounted(kind) {
			set.evaluators[kind] = newEvaluator(kind, chosen)
		}
	}
	return set
}

// Rules is the minor version whose rules are in effect, such as "1.37".
func (s *Set) Rules() string {
	return s.rules.version()
}

// Exact says whether the rules are those of the version that was given.
func (s *Set) Exact() bool {
	return s.exact
}

// Kinds lists the served kinds that must be observed to know an amount, which
// may have its canonical name or another. Empty: nobody here can count it, and
// it is unknown. See also [Set.Needs].
func (s *Set) Kinds(name corev1.ResourceName) []schema.GroupResource {
	canonical := Canonical(name)
	var kinds []schema.GroupResource
	for _, kind := range [...]schema.GroupResource{
		volumeClaims{}.Resource(), pods{}.Resource(), services{}.Resource(), deviceClaims{}.Resource(),
	} {
		if s.covers(kind, canonical) {
			kinds = append(kinds, kind)
		}
	}
	if kind, counts := countedKind(canonical); counts && s.covers(kind, canonical) && !slices.Contains(kinds, kind) {
		kinds = append(kinds, kind)
	}
	return kinds
}

// covers says whether a kind is served and part of an amount.
func (s *Set) covers(kind schema.GroupResource, name corev1.ResourceName) bool {
	evaluator, served := s.evaluators[kind]
	return served && evaluator.Covers(name)
}

// For is the evaluator of a kind; false when the kind is not served.
//
//nolint:ireturn // which evaluator a kind has is nobody else's business
func (s *Set) For(kind schema.GroupResource) (Evaluator, bool) {
	evaluator, served := s.evaluators[kind]
	return evaluator, served
}

// Special says whether a charge of this kind, or one that depends on it, needs
// more of an object than its metadata. Every other kind can be observed as
// PartialObjectMetadata.
func (s *Set) Special(kind schema.GroupResource) bool {
	if kind == deviceClassKind() {
		return s.rules.extendedClaims
	}
	evaluator, served := s.evaluators[kind]
	if !served {
		return false
	}
	_, metadataOnly := evaluator.(counted)
	return !metadataOnly
}

// newEvaluator builds the evaluator of a kind.
//
//nolint:ireturn // it chooses the implementation
func newEvaluator(kind schema.GroupResource, chosen rules) Evaluator {
	switch kind {
	case pods{}.Resource():
		return pods{rules: chosen}
	case services{}.Resource():
		return services{}
	case volumeClaims{}.Resource():
		return volumeClaims{}
	case deviceClaims{}.Resource():
		return deviceClaims{rules: chosen}
	}
	return counted{kind: kind, name: countName(kind)}
}

// neverCounted says whether quota leaves a kind out although it is served: what
// is not stored, events, and device classes, which are in no namespace.
func neverCounted(kind schema.GroupResource) bool {
	switch kind.Group {
	case "":
		return kind.Resource == "bindings" || kind.Resource == "componentstatuses" || kind.Resource == "events"
	case "resource.k8s.io":
		return kind.Resource == "deviceclasses"
	case "events.k8s.io":
		return kind.Resource == "events"
	case "authentication.k8s.io":
		return kind.Resource == "tokenreviews" || kind.Resource == "selfsubjectreviews"
	case "authorization.k8s.io":
		switch kind.Resource {
		case "subjectaccessreviews", "selfsubjectaccessreviews", "localsubjectaccessreviews", "selfsubjectrulesreviews":
			return true
		}
	}
	return false
}
