package federation

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// Enforcement is how the limits of a FleetQuota stand among its members. The zero
// value is that of one which is only observed.
type Enforcement struct {
	Grant   *v1alpha1.FleetGrant // nil: there is none
	Problem Problem              // why the spec cannot be divided
	Planned []Share              // what is not granted yet, or would be if distribution were not paused
	Trouble map[string]Trouble   // member -> what keeps it from its share
}

// Problem is why something cannot be done, in one word and a sentence. The zero
// value is none.
type Problem struct{ Reason, Message string }

// ProblemOf is an error of [Divide].
func ProblemOf(err error) Problem {
	switch {
	case err == nil:
		return Problem{}
	case errors.As(err, new(*SharesExceedError)):
		return Problem{"SharesExceedHard", err.Error()}
	}
	return Problem{"CannotDivide", err.Error()}
}

// granted is the sum of what members may use; nil without a record.
func (e Enforcement) granted() corev1.ResourceList {
	if e.Grant == nil || len(e.Grant.Spec.Members) == 0 {
		return nil
	}
	return Record{Spec: e.Grant.Spec}.Granted()
}

// counted is what counts as used. With AssumeHard, a member that is silent counts
// with all that it may use.
func (e Enforcement) counted(policy v1alpha1.StalePolicy, usage Usage) corev1.ResourceList {
	if policy != v1alpha1.AssumeHard || e.Grant == nil {
		return usage.Used
	}
	used := corev1.ResourceList{}
	addTo(used, usage.Used)
	record := Record{Spec: e.Grant.Spec}
	for i := range usage.Parts {
		part := &usage.Parts[i]
		row := record.Row(part.Member)
		if row == nil || part.Phase == v1alpha1.Live || part.Phase == v1alpha1.Partial {
			continue
		}
		for name, granted := range row.Granted {
			more := granted.DeepCopy()
			more.Sub(part.Used[name])
			addTo(used, corev1.ResourceList{name: larger(more, resource.Quantity{})})
		}
	}
	return used
}

// grantUID is that of the record. One that is missing stays noted, unless nothing
// is divided any more.
func (e Enforcement) grantUID(quota *v1alpha1.FleetQuota) types.UID {
	switch {
	case e.Grant != nil:
		return e.Grant.UID
	case quota.Spec.Distribution == nil:
		return ""
	}
	return quota.Status.GrantUID
}

// fill adds to rows what their members are granted, or would be.
func (e Enforcement) fill(rows []v1alpha1.ClusterUsage, hard corev1.ResourceList) {
	granted := map[string]corev1.ResourceList{}
	if e.Grant != nil {
		for i := range e.Grant.Spec.Members {
			granted[e.Grant.Spec.Members[i].Cluster] = e.Grant.Spec.Members[i].Granted
		}
	}
	planned := map[string]corev1.ResourceList{}
	for _, share := range e.Planned {
		planned[share.Cluster] = share.Hard
	}
	for i := range rows {
		row := &rows[i]
		if list := granted[row.Name]; len(list) > 0 {
			row.Granted = formatted(list, hard)
		}
		if list := planned[row.Name]; len(list) > 0 {
			row.Planned = formatted(list, hard)
		}
		if row.Reason == "" {
			row.Reason = string(e.Trouble[row.Name])
		}
	}
}

func (e Enforcement) ready() metav1.Condition {
	if e.Problem != (Problem{}) {
		return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: e.Problem.Reason, Message: e.Problem.Message}
	}
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: "Reported", Message: "the status is of this spec"}
}

// enforced says whether the members, of which these are the parts, can use more
// than hard together.
func (e Enforcement) enforced(quota *v1alpha1.FleetQuota, parts []Part) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionEnforced, Status: metav1.ConditionFalse}
	c.Reason, c.Message = e.gap(quota, parts)
	if c.Reason == "" {
		c.Status, c.Reason = metav1.ConditionTrue, "Enforced"
		c.Message = fmt.Sprintf("all %d members together can not use more than hard", len(parts))
	}
	return c
}

// gap says in one word and a sentence why members could use more than hard, the
// most important first. Empty: they cannot.
func (e Enforcement) gap(quota *v1alpha1.FleetQuota, parts []Part) (reason, message string) {
	d := quota.Spec.Distribution
	switch {
	case d == nil && e.Grant != nil:
		return "Releasing", "spec.distribution was removed: the local quotas of the members are being released"
	case d == nil:
		return "ObserveOnly", "spec.distribution is not set: usage is observed and limits no one"
	case e.Problem != (Problem{}):
		return e.Problem.Reason, e.Problem.Message + "; shares stay as they were"
	case d.Paused:
		return "Paused", "spec.distribution.paused: shares are planned in status.clusters, and none is written"
	case e.Grant == nil:
		return "Starting", "nothing has been granted yet"
	case d.Mode == v1alpha1.Shared:
		return "Shared", "mode Shared lets each member use all that is left: together they can use more for a moment"
	}
	if over := e.over(quota.Spec.Hard); len(over) > 0 {
		return "Shrinking", "members may still use more than hard, until use there falls: " + listed(over)
	}
	return e.open(quota, parts)
}

// over is by how much the limit on record is above the user's.
func (e Enforcement) over(hard corev1.ResourceList) []string {
	var over []string
	for _, name := range slices.Sorted(maps.Keys(hard)) {
		limit, record := hard[name], e.Grant.Spec.Hard[name]
		if compare(record, limit) > 0 {
			above := record.DeepCopy()
			above.Sub(limit)
			above.Format = limit.Format
			over = append(over, fmt.Sprintf("%s of %s", above.String(), name))
		}
	}
	return over
}

// open names the members that are not bounded.
func (e Enforcement) open(quota *v1alpha1.FleetQuota, parts []Part) (reason, message string) {
	recovering, tampered := e.inState(v1alpha1.Recovering), e.inState(v1alpha1.Repairing)
	var unbounded []string
	for i := range parts {
		if e.unbounded(&parts[i], Governed(quota.Spec.Hard)) {
			unbounded = append(unbounded, e.named(parts[i].Member))
		}
	}
	switch {
	case len(recovering) > 0:
		reason = "Recovering"
	case len(tampered) > 0:
		reason = string(TroubleTampered)
	case len(unbounded) > 0:
		reason = "MemberUnbounded"
	}
	return reason, sentence(
		clause{"the record was lost, and nothing is raised until these have confirmed what they hold: ", recovering},
		clause{"nothing is raised until local quotas that others have changed are put right in ", tampered},
		clause{"not bounded yet: ", unbounded},
	)
}

func (e Enforcement) inState(state v1alpha1.GrantState) []string {
	var names []string
	for i := range e.Grant.Spec.Members {
		if row := &e.Grant.Spec.Members[i]; row.State == state {
			names = append(names, row.Cluster)
		}
	}
	return names
}

// unbounded says whether a member has no limit for some resource. What is being
// recovered or repaired is told otherwise.
func (e Enforcement) unbounded(part *Part, limit corev1.ResourceList) bool {
	row := Record{Spec: e.Grant.Spec}.Row(part.Member)
	switch {
	case row == nil:
		return !e.holdsNothing(part)
	case e.Trouble[part.Member] == TroubleCluster:
		return true
	}
	return row.State == "" && Unbounded(*row, limit)
}

// holdsNothing says that nothing can be used in a member.
func (e Enforcement) holdsNothing(part *Part) bool {
	trouble := e.Trouble[part.Member]
	return part.Reason == ReasonNamespaceMissing || trouble == TroubleNoNamespace || trouble == TroubleFenced
}

// named is a member, and what troubles it.
func (e Enforcement) named(cluster string) string {
	if trouble := e.Trouble[cluster]; trouble != "" {
		return fmt.Sprintf("%s (%s)", cluster, trouble)
	}
	return cluster
}
