package evaluator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Amount is how much of one named thing an object costs.
type Amount struct {
	Name     corev1.ResourceName // canonical, see [Canonical]
	Quantity resource.Quantity
}

// Amounts is sorted by name and holds each name once. A name that is absent is
// not zero: the object says nothing about it, and adds nothing to it.
type Amounts []Amount

// Charge is what one object costs a quota that matches its class.
type Charge struct {
	Amounts Amounts
	Class   Class

	// Until is the last moment at which the amounts hold although the object
	// does not change. Zero: they hold until it does.
	Until time.Time
	// After is what the object costs once the time is after Until. It is nil
	// when Until is zero.
	After *Charge
}

// Evaluator charges the objects of one kind. It is safe for concurrent use.
type Evaluator interface {
	// Resource is the kind whose objects are charged.
	Resource() schema.GroupResource
	// Covers says whether the kind's objects are part of the amount with this
	// name, which may be canonical or not.
	Covers(name corev1.ResourceName) bool
	// Charge says what the object costs at the given time. The object is not
	// changed, and the charge keeps no part of it that arithmetic could write to.
	Charge(obj runtime.Object, now time.Time) (Charge, error)
	// Constraints says which of the names that a quota limits the object
	// leaves open although it must not. It is nil for all kinds but pods.
	Constraints(obj runtime.Object, required []corev1.ResourceName) error
}

// count is the amount of n whole things.
func count(name corev1.ResourceName, n int) Amount {
	return Amount{Name: name, Quantity: *resource.NewQuantity(int64(n), resource.DecimalSI)}
}

// ordered puts the amounts into the order that Amounts promises. Names must be
// unique already.
func ordered(amounts Amounts) Amounts {
	slices.SortFunc(amounts, func(a, b Amount) int { return strings.Compare(string(a.Name), string(b.Name)) })
	return amounts
}

// object is what an API type looks like as an object.
type object[T any] interface {
	*T
	runtime.Object
}

// as asserts the type that an evaluator can charge, and refuses nil.
func as[T any, P object[T]](obj runtime.Object) (P, error) {
	typed, ok := obj.(P)
	if !ok || typed == nil {
		return nil, fmt.Errorf("object is a %T: want a %T, not nil", obj, typed)
	}
	return typed, nil
}
