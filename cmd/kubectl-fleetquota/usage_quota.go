package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetquota/fleetquota/cmd/kubectl-fleetquota/internal/manifest"
	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// limits is one quota of either kind.
type limits struct {
	*manifest.Object

	local  *corev1.ResourceQuota // exactly one of the two is set
	global *v1alpha1.FleetQuota

	hard     corev1.ResourceList
	selector evaluator.Selector
}

// admits says whether admission looks at the quota at all.
func (l *limits) admits() bool {
	return l.local != nil || l.global.Spec.Distribution != nil
}

// question asks what the quota's resources use.
func (l *limits) question() federation.Question {
	return federation.Question{Namespace: l.Namespace, Resources: slices.Sorted(maps.Keys(l.hard)), Selector: l.selector}
}

// quotas are what --quota names.
type quotas struct {
	limits []*limits
	bad    []manifest.Problem
	notes  []manifest.Problem
}

// readQuotas reads the quotas of --quota.
func (o *usageOptions) readQuotas(rules string) quotas {
	if len(o.quotaFiles) == 0 {
		return quotas{}
	}
	input := o.read(o.quotaFiles, rules)
	q := quotas{bad: input.Bad, notes: input.Notes}
	for _, object := range input.Objects {
		if l := quotaOf(object); l != nil {
			q.add(l)
		}
	}
	if len(q.limits)+len(q.bad) == 0 {
		q.bad = append(q.bad, manifest.Problem{
			Place: manifest.Place{File: strings.Join(o.quotaFiles, ", ")}, Text: "there is no ResourceQuota and no FleetQuota in it",
		})
	}
	return q
}

// quotaOf is the object as a quota; nil for any other kind.
func quotaOf(object *manifest.Object) *limits {
	switch typed := object.Value.(type) {
	case *corev1.ResourceQuota:
		return &limits{Object: object, local: typed, hard: bounded(typed.Spec.Hard)}
	case *v1alpha1.FleetQuota:
		return &limits{Object: object, global: typed, hard: bounded(typed.Spec.Hard)}
	}
	return nil
}

// bounded is a copy of a list without quantities that nobody can reckon with.
func bounded(list corev1.ResourceList) corev1.ResourceList {
	list = list.DeepCopy()
	evaluator.BoundAll(list)
	return list
}

// add compiles a quota's scopes, or refuses them.
func (q *quotas) add(l *limits) {
	var err error
	if l.local != nil {
		l.selector, err = evaluator.NewSelector(l.local.Spec.Scopes, l.local.Spec.ScopeSelector)
	} else {
		l.selector, err = evaluator.NewSelector(l.global.Spec.Scopes, l.global.Spec.ScopeSelector)
	}
	if err != nil {
		q.bad = append(q.bad, l.Problem(err.Error()))
		return
	}
	q.limits = append(q.limits, l)
}

// objects are the quotas that a member itself would hold, and so count.
func (q *quotas) objects() []*manifest.Object {
	var all []*manifest.Object
	for _, l := range q.limits {
		if l.local != nil {
			all = append(all, l.Object)
		}
	}
	return all
}

// filled is a quota with what is used of it.
type filled struct {
	*limits

	status  runtime.Object // the quota with its status filled in
	amounts []amount
	refused []string // what admission would say, an object each
}

// fill fills in every quota, as its controller would.
func (t *tally) fill(q quotas) []filled {
	answers := make([]filled, 0, len(q.limits))
	for _, l := range q.limits {
		a := filled{limits: l, refused: t.refused(l)}
		if l.local != nil {
			a.status, a.amounts = t.local(l)
		} else {
			a.status, a.amounts = t.global(l)
		}
		answers = append(answers, a)
	}
	return answers
}

// local fills in a ResourceQuota. Usage that is not known stays as it was.
func (t *tally) local(l *limits) (runtime.Object, []amount) {
	part := t.ledger.Part(l.question(), theFiles)
	quota := l.local.DeepCopy()
	status := corev1.ResourceQuotaStatus{Hard: l.hard.DeepCopy(), Used: corev1.ResourceList{}}
	var all []amount
	for _, name := range slices.Sorted(maps.Keys(l.hard)) {
		a := amount{resource: name, hard: l.hard[name]}
		if used, known := part.Used[name]; known && !slices.Contains(part.Unknown, name) {
			a.used = &used
			status.Used[name] = used.DeepCopy()
		} else if last, had := l.local.Status.Used[name]; had {
			status.Used[name] = last.DeepCopy()
		}
		all = append(all, a)
	}
	quota.Status = status
	return quota, all
}

// global fills in a FleetQuota whose one member holds what is in the files.
func (t *tally) global(l *limits) (runtime.Object, []amount) {
	quota := l.global.DeepCopy()
	quota.Status = federation.Report(quota, t.ledger.Usage(l.question(), []string{theFiles}), federation.Enforcement{}, t.now)
	return quota, amounts(quota)
}

// over lists the amounts of which more is used than the limit.
func (a *filled) over() []amount {
	return slices.DeleteFunc(slices.Clone(a.amounts), func(x amount) bool { return x.state() != stateExceeded })
}

// unknown lists the amounts that nobody can count.
func (a *filled) unknown() []amount {
	return slices.DeleteFunc(slices.Clone(a.amounts), func(x amount) bool { return x.used != nil })
}

// warnings is what a person should know of the quota.
func (a *filled) warnings() []string {
	var all []string
	if over := a.over(); len(over) > 0 {
		parts := make([]string, 0, len(over))
		for _, x := range over {
			parts = append(parts, fmt.Sprintf("%s (%s of %s)", x.resource, x.usedText(), x.hard.String()))
		}
		all = append(all, a.Problem("exceeded: "+strings.Join(parts, ", ")).String())
	}
	for _, x := range a.unknown() {
		all = append(all, a.Problem(fmt.Sprintf("%s: %s", x.resource, whyUnknown(x.resource))).String())
	}
	return append(a.refused, all...)
}

// whyUnknown says what would make an amount known.
func whyUnknown(name corev1.ResourceName) string {
	if strings.HasPrefix(string(name), countPrefix) {
		return "nothing here is of this kind, so it is unknown; its CustomResourceDefinition among the files makes it 0"
	}
	return "nothing that is counted has this name, so it is unknown"
}
