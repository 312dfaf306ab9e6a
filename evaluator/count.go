package evaluator

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// counted charges one per object, and looks at nothing in the object.
type counted struct {
	kind schema.GroupResource
	name corev1.ResourceName
}

// Resource is the kind that is counted.
func (c counted) Resource() schema.GroupResource {
	return c.kind
}

// Covers says whether the name counts this kind.
func (c counted) Covers(name corev1.ResourceName) bool {
	return Canonical(name) == c.name
}

// Charge is one, for any object, which may be its metadata alone, or nil.
func (c counted) Charge(runtime.Object, time.Time) (Charge, error) {
	return Charge{Amounts: Amounts{count(c.name, 1)}}, nil
}

// Constraints is nil: a counted object may be created as it is.
func (counted) Constraints(runtime.Object, []corev1.ResourceName) error {
	return nil
}
