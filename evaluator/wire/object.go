package wire

import (
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/evaluator"
)

// Object is what is kept of an object: which one it is and what it costs. It is
// as much of an API object as a reflector needs. It is never changed.
type Object struct {
	Namespace, Name string
	Version         string // its resourceVersion

	created int64 // in seconds; undated: it does not say
	ends    bool  // it is the bookmark that ends the initial events
	cost    *cost
}

const undated = math.MinInt64

// Named is an object that costs nothing, such as a namespace.
func Named(meta metav1.Object) *Object {
	o := &Object{
		Namespace: meta.GetNamespace(), Name: meta.GetName(), Version: meta.GetResourceVersion(), created: undated,
		ends: meta.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true", cost: &cost{},
	}
	if at := meta.GetCreationTimestamp(); !at.IsZero() {
		o.created = at.Unix()
	}
	return o
}

// Cost says what the object costs from the beginning of time
// ([evaluator.Charge.At] finds what it costs now), and what other charges need
// of it. The charge is shared by objects and must not be changed.
func (o *Object) Cost() (evaluator.Charge, evaluator.Record, error) {
	return o.cost.charge, o.cost.record, o.cost.err
}

// Created is the object's creationTimestamp.
func (o *Object) Created() time.Time {
	if o.created == undated {
		return time.Time{}
	}
	return time.Unix(o.created, 0)
}

// GetObjectMeta is for meta.Accessor. It says nothing else of the object.
func (o *Object) GetObjectMeta() metav1.Object {
	meta := &metav1.ObjectMeta{
		Namespace: o.Namespace, Name: o.Name, ResourceVersion: o.Version, CreationTimestamp: metav1.NewTime(o.Created()),
	}
	if o.ends {
		meta.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
	}
	return meta
}

// GetObjectKind is for runtime.Object: the reader knows the kind.
func (o *Object) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject is for runtime.Object.
func (o *Object) DeepCopyObject() runtime.Object {
	copied := *o
	return &copied
}

// List is a list of objects of one kind.
type List struct {
	metav1.ListMeta

	Items []*Object
}

// GetObjectKind is for runtime.Object: the reader knows the kind.
func (l *List) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject is for runtime.Object.
func (l *List) DeepCopyObject() runtime.Object {
	return &List{ListMeta: *l.DeepCopy(), Items: slices.Clone(l.Items)}
}
