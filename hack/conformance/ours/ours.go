// Package ours answers as fleetquota does.
package ours

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/evaluator/wire"
	"github.com/fleetquota/fleetquota/hack/conformance/answer"
)

// Answer answers a World by the rules of a version. It fails where the
// evaluators break a promise of theirs.
//
// Objects are read from their messages, as off a watch. Charges are remembered
// from one World to the next, as the hub does from one object to the next.
func Answer(version string, world *answer.World, remembered *wire.Charges) (string, error) {
	s := newSide(version, world)
	s.remembered = remembered
	charges, err := s.charges()
	if err != nil {
		return "", err
	}
	var text answer.Text
	for _, kind := range answer.Special() {
		for i, object := range world.Objects(kind) {
			s.object(&text, kind, i, object, charges[kind][i])
			text.Admitted(kind, i, admitted(kind, charges[kind], i))
			if service, ok := object.(*corev1.Service); ok {
				text.Type(i, limitsType(charges[kind][i], service))
			}
		}
		text.Foreign(kind, s.refuses(kind))
	}
	for i, q := range world.Quotas {
		selector, err := evaluator.NewSelector(q.Spec.Scopes, q.Spec.ScopeSelector)
		if err != nil {
			text.Refused(i)
			continue
		}
		text.Sum(i, s.sums(q.Spec.Hard, selector, charges), nil)
	}
	return text.String(), nil
}

type side struct {
	world      *answer.World
	set        *evaluator.Set
	remembered *wire.Charges
}

func newSide(version string, world *answer.World) *side {
	classes := resourcev1.Resource("deviceclasses")
	return &side{world: world, set: evaluator.NewSet(version, append(append(answer.Special(), answer.Counted()...), classes))}
}

// charges is what every object costs.
func (s *side) charges() (map[schema.GroupResource][]evaluator.Charge, error) {
	lookup, err := s.records()
	if err != nil {
		return nil, err
	}
	charges := map[schema.GroupResource][]evaluator.Charge{}
	for _, kind := range answer.Special() {
		for i, object := range s.world.Objects(kind) {
			charge, err := s.charge(kind, object, lookup)
			if err != nil {
				return nil, fmt.Errorf("%s %d: %w", kind, i, err)
			}
			charges[kind] = append(charges[kind], charge)
		}
	}
	for _, kind := range answer.Counted() {
		for range s.world.Counts[kind.String()] {
			charge, err := s.charge(kind, nil, lookup)
			if err != nil {
				return nil, err
			}
			charges[kind] = append(charges[kind], charge)
		}
	}
	return charges, nil
}

// records is what charges depend on.
func (s *side) records() (evaluator.Lookup, error) {
	found := map[evaluator.Ref][]evaluator.Record{}
	for _, kind := range append(answer.Special(), resourcev1.Resource("deviceclasses")) {
		for _, object := range s.world.Objects(kind) {
			_, record, err := s.read(kind, object)
			if err != nil {
				return nil, err
			}
			for _, ref := range record.Refs {
				found[ref] = append(found[ref], record)
			}
		}
	}
	return func(ref evaluator.Ref) []evaluator.Record { return found[ref] }, nil
}

// read reads an object from its message, as from a watch: what it costs from the
// beginning of time, and what charges need of it. The whole object must say the
// same.
func (s *side) read(kind schema.GroupResource, object runtime.Object) (evaluator.Charge, evaluator.Record, error) {
	var none evaluator.Charge
	if kind == resourcev1.Resource("deviceclasses") && !s.set.Special(kind) {
		return none, evaluator.Record{}, nil
	}
	sent, ok := object.(interface{ Marshal() ([]byte, error) })
	if !ok {
		return none, evaluator.Record{}, fmt.Errorf("a %T has no message", object)
	}
	message, err := sent.Marshal()
	if err != nil {
		return none, evaluator.Record{}, err
	}
	slim, err := s.remembered.Reader(kind, s.set).Read(message)
	if err != nil {
		return none, evaluator.Record{}, err
	}
	charge, record, err := slim.Cost()
	if err != nil {
		return none, evaluator.Record{}, err
	}
	whole, err := s.set.Record(kind, object)
	if err != nil {
		return none, evaluator.Record{}, err
	}
	if !whole.Equal(record) {
		return none, evaluator.Record{}, errors.New("the record that was read is not that of the whole object")
	}
	return charge, record, nil
}

// charge charges one object. What was read from its message, what it cost before
// and what it will cost must add up to the same.
func (s *side) charge(kind schema.GroupResource, object runtime.Object, lookup evaluator.Lookup) (evaluator.Charge, error) {
	found, _ := s.set.For(kind)
	now, err := found.Charge(object, s.world.Now)
	if err != nil || object == nil {
		return now, err
	}
	read, record, err := s.read(kind, object)
	if err != nil {
		return evaluator.Charge{}, err
	}
	if dependent, ok := found.(evaluator.Dependent); ok {
		return dependent.ChargeRecord(record, lookup).At(s.world.Now), nil
	}
	if then := read.At(s.world.Now); text(then.Amounts) != text(now.Amounts) || then.Class != now.Class {
		return evaluator.Charge{}, fmt.Errorf("costs %s, but what was read of it was to cost %s by now", text(now.Amounts), text(then.Amounts))
	}
	return read.At(s.world.Now), nil
}

func text(amounts evaluator.Amounts) string {
	var text answer.Text
	text.Usage(schema.GroupResource{}, 0, named(amounts), nil)
	return text.String()
}

// named gives amounts every name that Kubernetes gives them.
func named(amounts evaluator.Amounts) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, amount := range amounts {
		list[amount.Name] = amount.Quantity
		for _, prefix := range []string{corev1.DefaultResourceRequestsPrefix, "count/"} {
			alias := corev1.ResourceName(strings.TrimPrefix(string(amount.Name), prefix))
			if evaluator.Canonical(alias) == amount.Name {
				list[alias] = amount.Quantity
			}
		}
	}
	return list
}

// object answers for one object by itself.
func (s *side) object(text *answer.Text, kind schema.GroupResource, i int, object runtime.Object, charge evaluator.Charge) {
	found, _ := s.set.For(kind)
	text.Usage(kind, i, named(charge.Amounts), nil)
	text.Open(kind, i, found.Constraints(object, s.world.Required))
	for j, q := range s.world.Quotas {
		selector, err := evaluator.NewSelector(q.Spec.Scopes, q.Spec.ScopeSelector)
		if err != nil {
			continue
		}
		var fits []bool
		for _, requirement := range answer.Requirements(&q.Spec) {
			one, err := evaluator.NewSelector(nil, &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{requirement}})
			fits = append(fits, err == nil && one.Matches(charge.Class))
		}
		text.Scopes(kind, i, j, fits)
		uncovered := uncovered(answer.Requirements(&q.Spec), fits)
		if charge.Class.Kind == evaluator.ScopedNone {
			uncovered = nil // admission asks nothing of kinds without scopes
		}
		text.Uncovered(kind, i, j, uncovered)
		if kind.Resource == "resourceclaims" {
			continue
		}
		text.Matches(kind, i, j, selector.Matches(charge.Class) && covers(found, q.Spec.Hard))
	}
}

// uncovered is the requirements of whose scope none fits.
func uncovered(requirements []corev1.ScopedResourceSelectorRequirement, fits []bool) []corev1.ScopedResourceSelectorRequirement {
	covered := map[corev1.ResourceQuotaScope]bool{}
	for i, requirement := range requirements {
		covered[requirement.ScopeName] = covered[requirement.ScopeName] || fits[i]
	}
	return slices.DeleteFunc(slices.Clone(requirements), func(r corev1.ScopedResourceSelectorRequirement) bool { return covered[r.ScopeName] })
}

// refuses says whether objects of another kind and selectors that cannot be are
// refused.
func (s *side) refuses(kind schema.GroupResource) bool {
	found, _ := s.set.For(kind)
	_, foreign := found.Charge(&corev1.Namespace{}, s.world.Now)
	_, bad := evaluator.NewSelector(nil, &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
		{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: "Bad"},
	}})
	return foreign != nil && bad != nil
}

// limitsType is the type of a service that costs more than itself; else empty.
func limitsType(charge evaluator.Charge, service *corev1.Service) corev1.ServiceType {
	balancers := amount(charge.Amounts, corev1.ResourceServicesLoadBalancers)
	ports := amount(charge.Amounts, corev1.ResourceServicesNodePorts)
	if balancers.IsZero() && ports.IsZero() && service.Spec.Type != corev1.ServiceTypeNodePort {
		return ""
	}
	return service.Spec.Type
}

// admitted is what docs/design.md says of the requests that admission charges.
// An update of a pod is one of them if it changes the scope Terminating.
func admitted(kind schema.GroupResource, charges []evaluator.Charge, i int) []answer.Request {
	var charged []answer.Request
	for _, request := range answer.Requests() {
		before := charges[(i+1)%len(charges)]
		yes := false
		switch request {
		case answer.Request{Verb: "CREATE"}:
			yes = true
		case answer.Request{Verb: "UPDATE"}:
			yes = kind.Resource != "pods" || charges[i].Class.Terminating != before.Class.Terminating
		case answer.Request{Verb: "UPDATE", Subresource: "resize"}:
			yes = kind.Resource == "pods"
		case answer.Request{Verb: "UPDATE", Subresource: "status"}:
			yes = kind.Resource == "persistentvolumeclaims"
		}
		if yes {
			charged = append(charged, request)
		}
	}
	return charged
}

func covers(found evaluator.Evaluator, hard corev1.ResourceList) bool {
	for name := range hard {
		if found.Covers(name) {
			return true
		}
	}
	return false
}

// sums adds up what a quota limits. What nobody counts is left out.
func (s *side) sums(hard corev1.ResourceList, selector evaluator.Selector, charges map[schema.GroupResource][]evaluator.Charge) corev1.ResourceList {
	used := corev1.ResourceList{}
	for key := range hard {
		kinds := s.set.Kinds(key)
		if len(kinds) == 0 {
			continue
		}
		var sum resource.Quantity
		for _, kind := range kinds {
			for _, charge := range charges[kind] {
				if selector.Matches(charge.Class) {
					sum.Add(amount(charge.Amounts, evaluator.Canonical(key)))
				}
			}
		}
		used[key] = sum
	}
	return used
}

func amount(amounts evaluator.Amounts, name corev1.ResourceName) resource.Quantity {
	i := slices.IndexFunc(amounts, func(a evaluator.Amount) bool { return a.Name == name })
	if i < 0 {
		return resource.Quantity{}
	}
	return amounts[i].Quantity
}
