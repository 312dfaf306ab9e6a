package main

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/cmd/kubectl-fleetquota/internal/manifest"
	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// theFiles is the member that holds all that was read.
const theFiles = "files"

// countPrefix begins the names of object counts.
const countPrefix = "count/"

// tally is what all objects cost, in a ledger as the hub keeps it.
type tally struct {
	set    *evaluator.Set
	ledger *federation.Ledger
	now    time.Time

	charged []charged
	bad     []manifest.Problem
}

// charged is objects that are charged the same.
type charged struct {
	*manifest.Object

	charge evaluator.Charge
}

// newTally charges the objects and enters them into the ledger.
func newTally(version string, now time.Time, objects []*manifest.Object, served []schema.GroupResource) *tally {
	t := &tally{
		set:    evaluator.NewSet(version, served),
		ledger: federation.NewLedger(nil),
		now:    now,
	}
	for _, object := range objects {
		t.add(object)
	}
	t.enter(served)
	return t
}

// add charges an object; one that is in no namespace costs nothing.
func (t *tally) add(object *manifest.Object) {
	rule, counted := t.set.For(object.Resource)
	if !counted || object.Namespace == "" {
		return
	}
	charge, err := rule.Charge(object.Value, t.now)
	if err != nil {
		t.bad = append(t.bad, object.Problem(err.Error()))
		return
	}
	for _, a := range charge.Amounts {
		if a.Quantity.Sign() < 0 {
			t.bad = append(t.bad, object.Problem(fmt.Sprintf("%s is negative: %s", a.Name, a.Quantity.String())))
			return
		}
	}
	t.charged = append(t.charged, charged{object, charge})
}

// enter writes all charges into the ledger, as complete lists of each kind.
func (t *tally) enter(served []schema.GroupResource) {
	lists := map[schema.GroupResource][]federation.Object{}
	for _, kind := range served {
		lists[kind] = nil
	}
	for _, c := range t.charged {
		for _, name := range c.Names {
			lists[c.Resource] = append(lists[c.Resource], federation.Object{Namespace: c.Namespace, Name: name, Charge: c.charge})
		}
	}
	t.ledger.Mark(theFiles, federation.Reach{Phase: v1alpha1.Live, LastContact: t.now})
	book := t.ledger.Open(theFiles, t.set, nil)
	for kind, list := range lists {
		book.Replace(kind, slices.Values(list))
	}
}

// use is all that one namespace uses.
type use struct {
	namespace string
	used      corev1.ResourceList
	objects   map[corev1.ResourceName]int // how many objects each amount is of
}

// all is what each namespace uses, by name.
func (t *tally) all() []use {
	found := map[string]*use{}
	for _, c := range t.charged {
		u := found[c.Namespace]
		if u == nil {
			u = &use{namespace: c.Namespace, objects: map[corev1.ResourceName]int{}}
			found[c.Namespace] = u
		}
		for _, a := range c.charge.Amounts {
			n := len(c.Names)
			if a.Quantity.IsZero() {
				n = 0
			}
			u.objects[a.Name] += n
		}
	}
	all := make([]use, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		u := found[name]
		u.used = t.ledger.Part(federation.Question{Namespace: name, Resources: slices.Collect(maps.Keys(u.objects))}, theFiles).Used
		all = append(all, *u)
	}
	return all
}

// past says whether an object is a pod that has had its time: nobody will
// create it any more.
func past(value runtime.Object) bool {
	pod, ok := value.(*corev1.Pod)
	return ok && (pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed)
}

// refused is what admission says to the objects that leave open what a quota
// limits.
func (t *tally) refused(l *limits) []string {
	if !l.admits() {
		return nil
	}
	var all []string
	for _, c := range t.charged {
		rule, counted := t.set.For(c.Resource)
		if !counted || c.Namespace != l.Namespace || !l.selector.Matches(c.charge.Class) || past(c.Value) {
			continue
		}
		var required []corev1.ResourceName
		for name := range l.hard {
			if rule.Covers(name) {
				required = append(required, name)
			}
		}
		if err := rule.Constraints(c.Value, required); err != nil {
			all = append(all, c.Problem(fmt.Sprintf("would be refused: failed quota: %s: %v", l.Names[0], err)).String())
		}
	}
	return all
}
