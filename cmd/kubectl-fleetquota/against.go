package main

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/cmd/kubectl-fleetquota/internal/manifest"
	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/federation/v1alpha1/client"
)

// against is the question whether the files fit into a global quota, with all
// that the hub says of it.
type against struct {
	*usageOptions
	*limits

	versions map[string]string // member -> its version of Kubernetes; empty: not known
	loads    []load            // the newest rules first
	bad      []manifest.Problem
	notes    []manifest.Problem
}

// load is what the files use of the quota, for those members that count alike.
type load struct {
	rules   string // such as 1.37; several where they say the same
	members []string
	would   corev1.ResourceList // an amount that is not known is absent
	refused []string            // what admission would say, an object each
}

// runAgainst answers for a global quota of the hub.
func (o *usageOptions) runAgainst(ctx context.Context) error {
	hub, err := o.hub()
	if err != nil {
		return err
	}
	namespace, name, err := o.quotaName(o.against)
	if err != nil {
		return err
	}
	found, err := oneQuota(ctx, hub, namespace, name)
	if err != nil {
		return err
	}
	a, err := o.newAgainst(found.items[0])
	if err != nil {
		return err
	}
	if err := a.learnVersions(ctx, hub); err != nil {
		return err
	}
	a.count()
	return a.conclude()
}

// newAgainst compiles the quota. Objects that name no namespace are in its own.
func (o *usageOptions) newAgainst(quota *v1alpha1.FleetQuota) (*against, error) {
	selector, err := evaluator.NewSelector(quota.Spec.Scopes, quota.Spec.ScopeSelector)
	if err != nil {
		return nil, fmt.Errorf("the scopes of global quota %s are not understood here: %w", keyOf(quota), err)
	}
	o.home = quota.Namespace
	evaluator.BoundAll(quota.Status.Used)
	for i := range quota.Status.Clusters {
		evaluator.BoundAll(quota.Status.Clusters[i].Used, quota.Status.Clusters[i].Granted)
	}
	return &against{
		usageOptions: o,
		limits: &limits{
			Object: &manifest.Object{Namespace: quota.Namespace, Names: []string{quota.Name}},
			global: quota, hard: bounded(quota.Spec.Hard), selector: selector,
		},
		versions: map[string]string{},
	}, nil
}

// learnVersions finds out the members and their versions. Who may not see
// members still gets an answer.
func (a *against) learnVersions(ctx context.Context, hub *client.Client) error {
	for i := range a.global.Status.Clusters {
		a.versions[a.global.Status.Clusters[i].Name] = ""
	}
	list, err := hub.Members().List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		if !a.rulesChosen {
			a.warn("you may not list members (the cluster role fleetquota-view allows it): their versions are not known, and the rules of %s are used", a.kubernetes)
		}
		return nil
	}
	if err != nil {
		return hubError("list members", err)
	}
	omitted := leftOut(a.global)
	for i := range list.Items {
		member := &list.Items[i]
		if _, shown := a.versions[member.Name]; shown || omitted.Matches(labels.Set(member.Labels)) {
			a.versions[member.Name] = member.Status.Version
		}
	}
	return nil
}

// leftOut selects the members that a status is too small for, and more.
func leftOut(quota *v1alpha1.FleetQuota) labels.Selector {
	switch summary := quota.Status.Summary; {
	case summary == nil || summary.Omitted == 0:
		return labels.Nothing()
	case quota.Spec.ClusterSelector == nil:
		return labels.Everything()
	}
	selector, err := metav1.LabelSelectorAsSelector(quota.Spec.ClusterSelector)
	if err != nil {
		return labels.Nothing() // then the hub has counted nothing either
	}
	return selector
}

// count counts the files by the rules of each version that a member has, and
// joins the versions that say the same.
func (a *against) count() {
	for rules, members := range a.byRules() {
		l := load{rules: rules, members: members}
		a.fill(&l)
		same := func(o load) bool {
			return federation.Equal(o.would, l.would) && slices.Equal(o.refused, l.refused)
		}
		if i := slices.IndexFunc(a.loads, same); i >= 0 {
			a.loads[i].rules += ", " + rules
			a.loads[i].members = slices.Sorted(slices.Values(append(a.loads[i].members, members...)))
			continue
		}
		a.loads = append(a.loads, l)
	}
}

// byRules yields the rules by which to count, the newest first, with their
// members: those that were asked for, or else those of each member's version.
func (a *against) byRules() iter.Seq2[string, []string] {
	asked := evaluator.NewSet(a.kubernetes, nil)
	if !asked.Exact() {
		a.warn("there are no rules for Kubernetes %s here: those of %s are used", a.kubernetes, asked.Rules())
	}
	members := map[string][]string{asked.Rules(): nil}
	known := map[string]*evaluator.Set{"": asked} // version -> its rules
	for _, member := range slices.Sorted(maps.Keys(a.versions)) {
		version := a.versions[member]
		if a.rulesChosen {
			version = ""
		}
		if known[version] == nil {
			known[version] = a.rulesOf(version)
		}
		rules := known[version].Rules()
		members[rules] = append(members[rules], member)
	}
	if len(members) > 1 && members[asked.Rules()] == nil {
		delete(members, asked.Rules())
	}
	return func(yield func(string, []string) bool) {
		for _, rules := range slices.Backward(slices.Sorted(maps.Keys(members))) {
			if !yield(rules, members[rules]) {
				return
			}
		}
	}
}

// rulesOf are the rules of a member's version.
func (a *against) rulesOf(version string) *evaluator.Set {
	rules := evaluator.NewSet(version, nil)
	if !rules.Exact() {
		a.warn("there are no rules for Kubernetes %s here: those of %s are used for members of it, as the hub does", version, rules.Rules())
	}
	return rules
}

// fill fills in what the files use, less what they replace.
func (a *against) fill(l *load) {
	input, t := a.tally(a.files, l.rules)
	if len(a.loads)+len(a.bad) == 0 {
		a.hint(input)
		a.hintElsewhere(input)
	}
	l.would, l.refused = a.known(t), t.refused(a.limits)
	if len(a.replaces) == 0 {
		return
	}
	_, t = a.tally(a.replaces, l.rules)
	before := a.known(t)
	for name, use := range l.would {
		less, known := before[name]
		if !known {
			delete(l.would, name)
			continue
		}
		use.Sub(less) // no other list shares its storage
		l.would[name] = use
	}
}

// tally counts files by the rules of one version. What is wrong with them is
// noted once.
func (a *against) tally(paths []string, rules string) (*manifest.Input, *tally) {
	input := a.read(paths, rules)
	if a.expand {
		input.Expand(a.nodes)
	}
	t := newTally(rules, a.time, input.Objects, a.served(input))
	a.bad = withNew(a.bad, append(input.Bad, t.bad...))
	a.notes = withNew(a.notes, input.Notes)
	return input, t
}

// withNew adds the problems that are not noted yet.
func withNew(all, more []manifest.Problem) []manifest.Problem {
	for _, problem := range more {
		if !slices.Contains(all, problem) {
			all = append(all, problem)
		}
	}
	return all
}

// served lists the kinds of which it is known how many the files hold: also
// those that the quota counts and the files do not hold at all.
func (a *against) served(input *manifest.Input) []schema.GroupResource {
	served := input.Served()
	for name := range a.hard {
		kind, counts := strings.CutPrefix(string(name), countPrefix)
		if resource := schema.ParseGroupResource(kind); counts && !input.Guesses(resource.Group) {
			served = append(served, resource)
		}
	}
	return served
}

// known is what a tally counts of the quota.
func (a *against) known(t *tally) corev1.ResourceList {
	part := t.ledger.Part(a.question(), theFiles)
	for _, name := range part.Unknown {
		delete(part.Used, name)
	}
	return part.Used
}

// hintElsewhere says which objects are not looked at.
func (a *against) hintElsewhere(input *manifest.Input) {
	here, elsewhere := 0, map[string]int{}
	for _, object := range input.Objects {
		switch object.Namespace {
		case "":
		case a.Namespace:
			here += len(object.Names)
		default:
			elsewhere[object.Namespace] += len(object.Names)
		}
	}
	for _, namespace := range slices.Sorted(maps.Keys(elsewhere)) {
		a.warn("%s in namespace %s and not counted: the quota governs %s", isOrAre(elsewhere[namespace], "object"), namespace, a.Namespace)
	}
	if here == 0 {
		a.warn("no object in the files is in namespace %s", a.Namespace)
	}
}

// conclude tells what is wrong, shows the answer, and is the verdict.
func (a *against) conclude() error {
	a.tell(a.bad, a.notes, nil)
	if len(a.bad) > 0 && !a.keepGoing {
		return fmt.Errorf("nothing is counted because of %s; --keep-going counts the rest", countOf(len(a.bad), "problem"))
	}
	for i := range a.loads {
		for _, text := range a.loads[i].refused {
			a.warn("%s", text)
		}
	}
	conclusions := a.conclusions()
	if err := a.show(conclusions); err != nil {
		return err
	}
	if len(a.bad) > 0 {
		return fmt.Errorf("not everything is counted: %s", countOf(len(a.bad), "problem"))
	}
	somewhere := slices.ContainsFunc(conclusions, func(x conclusion) bool { return x.verdict == fits })
	if a.exitCode && !somewhere {
		return errAbove
	}
	return nil
}
