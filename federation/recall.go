package federation

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// Recall fills in what the ledger does not know of members that are not live
// from the rows of an earlier status, so that the last known numbers survive a
// restart of the hub. The time is when those rows were written: a row that was
// live then says no time of its own. The receiver is not changed.
func (u Usage) Recall(rows []v1alpha1.ClusterUsage, written time.Time) Usage {
	known := make(map[string]*v1alpha1.ClusterUsage, len(rows))
	for i := range rows {
		known[rows[i].Name] = &rows[i]
	}
	parts := slices.Clone(u.Parts)
	for i := range parts {
		if row := known[parts[i].Member]; row != nil && parts[i].Phase != v1alpha1.Live {
			parts[i] = parts[i].recall(row, written)
		}
	}
	return Usage{Used: total(parts), Parts: parts}
}

// recall takes from a row the numbers that the part lacks, and the time of
// those that it has no time for.
func (p Part) recall(row *v1alpha1.ClusterUsage, written time.Time) Part {
	since := written
	if row.LastObservedTime != nil {
		since = row.LastObservedTime.Time
	}
	p, recalled := p.borrow(row)
	if p.Phase == v1alpha1.NeverSynced && recalled {
		p.Phase = v1alpha1.Unreachable // since before the hub started
		if p.Reason == ReasonSyncing {
			p.Phase = v1alpha1.Stale // it answers, and lists are on their way
		}
	}
	if away(p.Phase) && (p.LastObserved.IsZero() || recalled && since.Before(p.LastObserved)) {
		p.LastObserved = since // that of the oldest number
	}
	return p
}

// borrow takes the numbers that the part lacks from a row, and says whether
// there were any. In a member that is away all numbers are old, so that only
// those stay unknown that were unknown then; else the borrowed ones stay too.
func (p Part) borrow(row *v1alpha1.ClusterUsage) (Part, bool) {
	var unknown []corev1.ResourceName
	used := corev1.ResourceList{}
	addTo(used, p.Used)
	for _, name := range p.Unknown {
		last, had := row.Used[name]
		_, have := p.Used[name]
		if had && !have {
			used[name] = evaluator.Bound(last.DeepCopy())
		}
		if have || !had || p.Phase == v1alpha1.Partial || slices.Contains(row.Unknown, name) {
			unknown = append(unknown, name)
		}
	}
	recalled := len(used) > len(p.Used)
	p.Used, p.Unknown = used, unknown
	return p, recalled
}
