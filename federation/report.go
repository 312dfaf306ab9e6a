package federation

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// MaxRows is how many members' rows a status holds. Above it rows of live
// members are left out, those that use least of their quota first.
const MaxRows = 500

// Report is the status of a quota with this usage. It starts from the status
// that the quota has, so that times of transitions stay; the time is that of
// new ones. The quota is not changed.
func Report(quota *v1alpha1.FleetQuota, usage Usage, e Enforcement, now time.Time) v1alpha1.FleetQuotaStatus {
	hard := formatted(quota.Spec.Hard, nil)
	used := formatted(e.counted(quota.Spec.StalePolicy, usage), hard)
	status := v1alpha1.FleetQuotaStatus{
		ObservedGeneration: quota.Generation,
		Hard:               hard,
		Used:               used,
		Granted:            formatted(e.granted(), hard),
		GrantUID:           e.grantUID(quota),
		Clusters:           rows(usage.Parts, e, hard),
		Summary:            summarize(usage.Parts, used, hard),
		Conditions:         slices.Clone(quota.Status.Conditions),
	}
	status.Summary.Omitted = int32(len(usage.Parts) - len(status.Clusters)) //nolint:gosec // a number of clusters
	for _, condition := range []metav1.Condition{
		e.ready(),
		complete(usage, quota.Spec.StalePolicy),
		within(used, hard),
		e.enforced(quota, usage.Parts),
	} {
		set(&status, condition, now)
	}
	return status
}

// Refuse is the status of a quota whose spec is not understood: what was known
// stays, and Ready says what to change.
func Refuse(quota *v1alpha1.FleetQuota, problem error, now time.Time) v1alpha1.FleetQuotaStatus {
	status := *quota.Status.DeepCopy()
	status.ObservedGeneration = quota.Generation
	for _, condition := range []metav1.Condition{
		{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Message: problem.Error()},
		{Type: v1alpha1.ConditionUsageComplete, Status: metav1.ConditionFalse, Message: "nothing is counted until the spec is understood"},
		{Type: v1alpha1.ConditionWithinHard, Status: metav1.ConditionUnknown, Message: "nothing is counted until the spec is understood"},
		{Type: v1alpha1.ConditionEnforced, Status: metav1.ConditionFalse, Message: "nothing is limited until the spec is understood"},
	} {
		condition.Reason = "InvalidSpec"
		set(&status, condition, now)
	}
	return status
}

// Same says whether two statuses say the same, however quantities are written.
func Same(a, b v1alpha1.FleetQuotaStatus) bool {
	return equality.Semantic.DeepEqual(a, b)
}

func set(status *v1alpha1.FleetQuotaStatus, condition metav1.Condition, now time.Time) {
	condition.ObservedGeneration = status.ObservedGeneration
	condition.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
	meta.SetStatusCondition(&status.Conditions, condition)
}

// rows are the members' parts by name, at most MaxRows unless more than that
// are not live.
func rows(parts []Part, e Enforcement, hard corev1.ResourceList) []v1alpha1.ClusterUsage {
	kept := slices.Clone(parts)
	if len(kept) > MaxRows {
		kept = worst(kept, hard)
	}
	slices.SortFunc(kept, func(a, b Part) int { return strings.Compare(a.Member, b.Member) })
	rows := make([]v1alpha1.ClusterUsage, len(kept))
	for i := range kept {
		rows[i] = row(&kept[i], hard)
	}
	e.fill(rows, hard)
	return rows
}

// worst is MaxRows of the parts, or more where more are not live: of the live
// ones those that use most of their limit.
func worst(parts []Part, hard corev1.ResourceList) []Part {
	var kept, live []Part
	use := map[string]int64{} // member -> percent
	for i := range parts {
		if parts[i].Phase != v1alpha1.Live {
			kept = append(kept, parts[i])
			continue
		}
		live = append(live, parts[i])
		use[parts[i].Member] = highest(parts[i].Used, hard)
	}
	slices.SortFunc(live, func(a, b Part) int {
		return cmp.Or(cmp.Compare(use[b.Member], use[a.Member]), strings.Compare(a.Member, b.Member))
	})
	return append(kept, live[:max(0, MaxRows-len(kept))]...)
}

func row(part *Part, hard corev1.ResourceList) v1alpha1.ClusterUsage {
	row := v1alpha1.ClusterUsage{
		Name: part.Member, Phase: part.Phase, Used: formatted(part.Used, hard),
		Unknown: slices.Clone(part.Unknown), Reason: part.Reason,
	}
	if len(row.Used) == 0 {
		row.Used = nil // as it reads back from JSON
	}
	if part.Phase != v1alpha1.Live && !part.LastObserved.IsZero() {
		observed := metav1.NewTime(part.LastObserved).Rfc3339Copy()
		row.LastObservedTime = &observed
	}
	return row
}

// formatted is a copy of a list as it is shown: bounded, and in the units of hard,
// whatever the objects' were. A value that a Quantity would not read back from its own
// text is written as a plain number: above 2^63-1 BinarySI is cut to that, and
// there is no suffix above E.
func formatted(list, hard corev1.ResourceList) corev1.ResourceList {
	shown := list.DeepCopy()
	evaluator.BoundAll(shown)
	for name, quantity := range shown {
		limit, limited := hard[name]
		switch {
		case quantity.CmpInt64(math.MaxInt64) > 0:
			quantity = *resource.NewDecimalQuantity(*quantity.AsDec(), resource.DecimalExponent)
		case limited:
			quantity.Format = limit.Format
		}
		shown[name] = quantity
	}
	return shown
}

func summarize(parts []Part, used, hard corev1.ResourceList) *v1alpha1.Summary {
	live := 0
	for i := range parts {
		if parts[i].Phase == v1alpha1.Live {
			live++
		}
	}
	members := len(parts)
	s := &v1alpha1.Summary{
		Members:  int32(members), //nolint:gosec // a number of clusters
		Live:     int32(live),
		Clusters: fmt.Sprintf("%d/%d", live, members),
		CPU:      ratio(used, hard, corev1.ResourceRequestsCPU, corev1.ResourceCPU),
		Memory:   ratio(used, hard, corev1.ResourceRequestsMemory, corev1.ResourceMemory),
		Pods:     ratio(used, hard, corev1.ResourcePods),
	}
	if percent := highest(used, hard); percent >= 0 {
		s.Highest = strconv.FormatInt(percent, 10) + "%"
	}
	if live < members {
		s.Stale = strconv.Itoa(members - live)
	}
	return s
}

// highest is the largest use of any resource in percent; -1 when there is none.
func highest(used, hard corev1.ResourceList) int64 {
	most := int64(-1)
	for name := range hard {
		if percent, ok := Percent(used, hard, name); ok {
			most = max(most, percent)
		}
	}
	return most
}

// ratio is "used/hard" of the first of the names that is limited.
func ratio(used, hard corev1.ResourceList, names ...corev1.ResourceName) string {
	for _, name := range names {
		limit, ok := hard[name]
		if !ok {
			continue
		}
		part := "unknown"
		if quantity, ok := used[name]; ok {
			part = quantity.String()
		}
		return part + "/" + limit.String()
	}
	return ""
}

func complete(usage Usage, policy v1alpha1.StalePolicy) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionUsageComplete, Status: metav1.ConditionFalse}
	var last, never, unknown []string
	for i := range usage.Parts {
		part := &usage.Parts[i]
		switch part.Phase {
		case v1alpha1.Live:
		case v1alpha1.Partial:
			unknown = append(unknown, fmt.Sprintf("%s (%s)", part.Member, listed(part.Unknown)))
		case v1alpha1.NeverSynced:
			never = append(never, part.Member)
		case v1alpha1.Stale, v1alpha1.Unreachable, v1alpha1.Leaving:
			last = append(last, fmt.Sprintf("%s (%s)", part.Member, part.Phase))
		}
	}
	switch {
	case len(usage.Parts) == 0:
		condition.Reason = "NoMembers"
		condition.Message = "spec.clusterSelector selects no member: nothing is counted"
		return condition
	case len(last)+len(never) > 0:
		condition.Reason = "MembersNotLive"
	case len(unknown) > 0:
		condition.Reason = "ResourcesUnknown"
	default:
		condition.Status, condition.Reason = metav1.ConditionTrue, "AllLive"
		condition.Message = "every number of every member is live"
		return condition
	}
	silent := "last known numbers are used for "
	if policy == v1alpha1.AssumeHard {
		silent = "what they are granted, else last known numbers, is counted for "
	}
	condition.Message = sentence(
		clause{silent, last},
		clause{"nothing is known yet of ", never},
		clause{"not counted at present in ", unknown},
	)
	return condition
}

// clause is a part of a message about some members.
type clause struct {
	text    string
	members []string
}

// sentence joins the clauses that are about anyone.
func sentence(clauses ...clause) string {
	var said []string
	for _, c := range clauses {
		if len(c.members) > 0 {
			slices.Sort(c.members)
			said = append(said, c.text+listed(c.members))
		}
	}
	return strings.Join(said, "; ")
}

func within(used, hard corev1.ResourceList) metav1.Condition {
	condition := metav1.Condition{Type: v1alpha1.ConditionWithinHard, Status: metav1.ConditionTrue}
	over := exceeded(used, hard)
	slices.Sort(over)
	var unknown []corev1.ResourceName
	for name := range hard {
		if _, ok := used[name]; !ok {
			unknown = append(unknown, name)
		}
	}
	slices.Sort(unknown)
	switch {
	case len(over) > 0:
		condition.Status, condition.Reason = metav1.ConditionFalse, "Exceeded"
		condition.Message = "more is used than hard allows: " + listed(over)
	case len(unknown) > 0:
		condition.Status, condition.Reason = metav1.ConditionUnknown, "UsageUnknown"
		condition.Message = "no member has a number for " + listed(unknown)
	default:
		condition.Reason, condition.Message = "Within", "no more is used than hard allows"
	}
	return condition
}

// listed joins the first few names and says how many more there are, so that a
// message stays short in a large fleet.
func listed[S ~string](names []S) string {
	const few = 5
	var text strings.Builder
	for i, name := range names {
		if i == few {
			fmt.Fprintf(&text, " and %d more", len(names)-few)
			break
		}
		if i > 0 {
			text.WriteString(", ")
		}
		text.WriteString(string(name))
	}
	return text.String()
}
