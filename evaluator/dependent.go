package evaluator

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Dependent is an Evaluator whose charges depend on other objects. For these
// and for its own objects one [Record] each is kept; when a record changes,
// those that depend on one of its Refs, before or after, are charged again.
//
// Charge answers as if none of the other objects existed.
type Dependent interface {
	Evaluator
	// Slim is what charges need of an object of its own kind or of one that a
	// charge depends on. It is the zero Record where charges need nothing of it.
	Slim(kind schema.GroupResource, obj runtime.Object) (Record, error)
	// ChargeRecord says what an object of its own kind costs from the beginning
	// of time: [Charge.At] finds what it costs now.
	ChargeRecord(record Record, lookup Lookup) Charge
}

// Ref is how records are found: by the name of their object, or by the owner
// that they share.
type Ref struct {
	Kind      schema.GroupResource
	Namespace string    // empty for cluster-scoped objects
	Name      string    // empty: every object that has the owner
	Owner     types.UID // empty: the object of that name
}

// Record is the little of an object that charges depend on. It is immutable.
type Record struct {
	// Refs is what the record is found by.
	Refs []Ref
	// DependsOn is what the object's own charge looks up. It is empty for a kind
	// that only others depend on.
	DependsOn []Ref

	facts facts
}

// facts is what an evaluator has read in an object.
type facts interface {
	same(other facts) bool
}

// Lookup finds the records under a Ref, in any order.
type Lookup func(Ref) []Record

// IsZero says whether nothing depends on the object, and it on nothing.
func (r Record) IsZero() bool {
	return r.facts == nil
}

// Equal says whether two records lead to the same charges.
func (r Record) Equal(other Record) bool {
	if r.IsZero() || other.IsZero() {
		return r.IsZero() == other.IsZero()
	}
	return r.facts.same(other.facts) && slices.Equal(r.Refs, other.Refs) && slices.Equal(r.DependsOn, other.DependsOn)
}

// At is what the charge is at a time.
func (c Charge) At(now time.Time) Charge {
	for c.After != nil && now.After(c.Until) {
		c = *c.After
	}
	return c
}

// Needs lists the kinds, beside those of [Set.Kinds], whose objects decide an
// amount without being part of it. They must be observed too, and may be
// cluster-scoped.
func (s *Set) Needs(name corev1.ResourceName) []schema.GroupResource {
	claims, served := s.evaluators[deviceClaims{}.Resource()]
	if !served || !claims.Covers(name) || !s.rules.extendedRequest(Canonical(name)) {
		return nil
	}
	return []schema.GroupResource{deviceClassKind()}
}

// Record is what the charges of this or other objects need of an object beside
// its own charge, whether the other kinds are served or not. For almost every
// object it is zero.
func (s *Set) Record(kind schema.GroupResource, obj runtime.Object) (Record, error) {
	return deviceClaims{rules: s.rules}.Slim(kind, obj)
}
