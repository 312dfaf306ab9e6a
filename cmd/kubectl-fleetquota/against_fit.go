package main

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// verdict is whether something fits.
type verdict string

// The verdicts, in words.
const (
	fits       verdict = "yes"
	fitsNot    verdict = "no"
	cannotTell verdict = unknown
)

// fit is whether something fits into one limit: of the quota, or of what one
// member has been granted.
type fit struct {
	amount // what is used already; hard is the limit

	would *resource.Quantity // what it would use besides; nil: not known
}

// left is what is left of the limit after it; nil where that is not known.
func (f *fit) left() *resource.Quantity {
	if f.would == nil || f.used == nil || len(f.missing) > 0 {
		return nil
	}
	short := f.short()
	short.Neg()
	return &short
}

// short is how much more than the limit would be used, as far as known.
func (f *fit) short() resource.Quantity {
	short := f.would.DeepCopy()
	if f.used != nil {
		short.Add(*f.used)
	}
	short.Sub(f.hard)
	return short
}

// verdict is never fits where it may not: what is not known is at least 0. Who
// asks for no more of something than before, is not held up by its limit.
func (f *fit) verdict() verdict {
	if f.would == nil {
		return cannotTell
	}
	short := f.short()
	switch {
	case f.would.Sign() <= 0:
		return fits
	case short.Sign() > 0:
		return fitsNot
	case f.used == nil || len(f.missing) > 0:
		return cannotTell
	}
	return fits
}

// reason says why it does not fit, or why that cannot be told.
func (f *fit) reason(of string) string {
	switch v := f.verdict(); {
	case v == fitsNot && f.left() == nil:
		short := f.short()
		return fmt.Sprintf("%s is at least %s short%s", f.resource, short.String(), of)
	case v == fitsNot:
		short := f.short()
		return fmt.Sprintf("%s is %s short%s", f.resource, short.String(), of)
	case v == fits:
		return ""
	case f.would == nil:
		return fmt.Sprintf("what the files use of %s is not known", f.resource)
	case f.used == nil:
		return fmt.Sprintf("the use of %s is not known", f.resource)
	}
	return fmt.Sprintf("the use of %s in %s is not known", f.resource, few(f.missing))
}

// fits are the answers for each resource of the quota, by name.
func (a *against) fits(l *load) []fit {
	known := whyNotCounted(a.global) == ""
	all := make([]fit, 0, len(a.hard))
	for _, name := range slices.Sorted(maps.Keys(a.hard)) {
		f := fit{amount: amount{resource: name, hard: a.hard[name]}}
		if used, ok := a.global.Status.Used[name]; ok && known {
			f.used, f.missing = &used, missing(a.global, name)
		}
		if would, ok := l.would[name]; ok {
			f.would = &would
		}
		all = append(all, f)
	}
	return all
}

// grants are the answers for what one member has been granted; none where the
// quota alone bounds its use.
func (l *load) grants(member *v1alpha1.ClusterUsage) []fit {
	all := make([]fit, 0, len(member.Granted))
	for _, name := range slices.Sorted(maps.Keys(member.Granted)) {
		f := fit{amount: amount{resource: name, hard: member.Granted[name]}}
		if used, ok := member.Used[name]; ok {
			f.used = &used
		}
		if would, ok := l.would[name]; ok {
			f.would = &would
		}
		all = append(all, f)
	}
	return all
}

// whyNotCounted is why the hub's numbers are not of the quota as it is; empty
// where they are.
func whyNotCounted(quota *v1alpha1.FleetQuota) string {
	ready := meta.FindStatusCondition(quota.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case quota.Status.Summary == nil && quota.Status.ObservedGeneration == 0:
		return "the hub has not counted the quota yet: is it running?"
	case quota.Status.ObservedGeneration < quota.Generation:
		return "the hub has not taken up the latest spec of the quota yet: is it running?"
	case ready != nil && ready.Status == metav1.ConditionFalse:
		return "the hub does not take the spec of the quota: " + ready.Message
	case quota.Status.Summary != nil && quota.Status.Summary.Members == 0:
		return "spec.clusterSelector of the quota selects no member, so nothing is counted"
	}
	return ""
}

// conclusion is what is true of some members.
type conclusion struct {
	verdict verdict
	reason  string   // why it does not fit, or on what it rests
	members []string // none: no member is known
}

// conclusions concludes, at once for all members of which the same is true.
// The order is that of the members.
func (a *against) conclusions() []conclusion {
	var all []conclusion
	for i := range a.loads {
		l := &a.loads[i]
		whole := a.fits(l)
		if len(l.members) == 0 {
			all = append(all, a.conclusion(l, whole, nil))
		}
		for _, name := range l.members {
			var granted []fit
			if member := rowOf(a.global, name); member != nil {
				granted = l.grants(member)
			}
			one := a.conclusion(l, whole, granted)
			same := func(o conclusion) bool { return o.verdict == one.verdict && o.reason == one.reason }
			at := slices.IndexFunc(all, same)
			if at < 0 {
				at, all = len(all), append(all, one)
			}
			all[at].members = append(all[at].members, name)
		}
	}
	return all
}

// conclusion concludes from the limits of the quota. Where a member has been
// granted a part, that part counts alone: it is the member's whatever others use.
func (a *against) conclusion(l *load, whole, granted []fit) conclusion {
	reasons := map[verdict][]string{}
	note := func(f *fit, of string) {
		if v := f.verdict(); v != fits {
			reasons[v] = append(reasons[v], f.reason(of))
		}
	}
	for i := range whole {
		own := slices.IndexFunc(granted, func(g fit) bool { return g.resource == whole[i].resource })
		if own < 0 {
			note(&whole[i], "")
		} else {
			note(&granted[own], " of its grant")
		}
	}
	if n := len(l.refused); n > 0 {
		reasons[fitsNot] = append(reasons[fitsNot], countOf(n, "object")+" would be refused")
	}
	for _, v := range []verdict{fitsNot, cannotTell} {
		if len(reasons[v]) == 0 {
			continue
		}
		if why := whyNotCounted(a.global); why != "" && v == cannotTell {
			return conclusion{verdict: v, reason: why}
		}
		return conclusion{verdict: v, reason: few(reasons[v])}
	}
	if len(a.bad) > 0 {
		return conclusion{verdict: cannotTell, reason: "not everything in the files is counted"}
	}
	return conclusion{verdict: fits, reason: a.lastKnown(l)}
}

// lastKnown says whose numbers are not current, of what the files use.
func (a *against) lastKnown(l *load) string {
	var members []string
	for i := range a.global.Status.Clusters {
		member := &a.global.Status.Clusters[i]
		for name, would := range l.would {
			if would.Sign() > 0 && isLast(member, name) {
				members = append(members, member.Name)
				break
			}
		}
	}
	if len(members) == 0 {
		return ""
	}
	return "with the last known numbers of " + few(members)
}

// isLast says whether a member counts with a number that is not current.
func isLast(member *v1alpha1.ClusterUsage, resource corev1.ResourceName) bool {
	_, known := member.Used[resource]
	return known && (slices.Contains(member.Unknown, resource) || member.Phase == v1alpha1.Stale || member.Phase == v1alpha1.Unreachable)
}

// rowOf is a member's row; nil where it has none.
func rowOf(quota *v1alpha1.FleetQuota, member string) *v1alpha1.ClusterUsage {
	for i := range quota.Status.Clusters {
		if quota.Status.Clusters[i].Name == member {
			return &quota.Status.Clusters[i]
		}
	}
	return nil
}
