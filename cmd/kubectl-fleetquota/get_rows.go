package main

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

const (
	columnAge       = "AGE"
	columnNamespace = "NAMESPACE"
	columnResource  = "RESOURCE"
	columnUsed      = "USED"
)

// part is one resource of one quota.
type part struct {
	amount

	quota *v1alpha1.FleetQuota
}

// parts are the resources of quotas that are to be shown, in order.
func (o *getOptions) parts(quotas []*v1alpha1.FleetQuota) []part {
	var all []part
	for _, quota := range quotas {
		for _, a := range chosen(amounts(quota), o.resources) {
			if o.limit == nil || o.aboveLimit(a) {
				all = append(all, part{quota: quota, amount: a})
			}
		}
	}
	switch o.sortBy {
	case sortByUsed:
		slices.SortStableFunc(all, func(a, b part) int { return byUse(a.amount, b.amount) })
	case sortByHard:
		slices.SortStableFunc(all, func(a, b part) int { return b.hard.Cmp(a.hard) })
	}
	return all
}

// sort puts quotas in the order of the flags.
func (o *getOptions) sort(quotas []*v1alpha1.FleetQuota) {
	slices.SortStableFunc(quotas, func(a, b *v1alpha1.FleetQuota) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if o.sortBy != sortByUsed {
		return
	}
	slices.SortStableFunc(quotas, func(a, b *v1alpha1.FleetQuota) int {
		return byUse(highest(amounts(a)), highest(amounts(b)))
	})
}

// highest is the amount of which most is used.
func highest(all []amount) amount {
	if len(all) == 0 {
		return amount{}
	}
	return slices.MinFunc(all, byUse)
}

// namespaced puts the namespace in front where several are shown.
func (o *getOptions) namespaced(columns []column) []column {
	if o.allNamespaces {
		return append([]column{{name: columnNamespace}}, columns...)
	}
	return columns
}

// row begins with the namespace where several are shown.
func (o *getOptions) row(quota *v1alpha1.FleetQuota, key string, cells []string) row {
	if o.allNamespaces {
		cells = append([]string{quota.Namespace}, cells...)
	}
	return row{key: keyOf(quota) + " " + key, cells: cells}
}

// quotaColumns are those that kubectl get shows for the type.
func (o *getOptions) quotaColumns() []column {
	return o.namespaced([]column{
		{name: "NAME"},
		{name: "MODE"},
		{name: "READY"},
		{name: "USED%"},
		{name: "CLUSTERS"},
		{name: "CPU", wide: true},
		{name: "MEMORY", wide: true},
		{name: "PODS", wide: true},
		{name: "STALE", wide: true},
		{name: columnAge, moving: true},
	})
}

func (o *getOptions) quotaRows(quotas []*v1alpha1.FleetQuota) []row {
	rows := make([]row, 0, len(quotas))
	for _, quota := range quotas {
		summary := v1alpha1.Summary{}
		if quota.Status.Summary != nil {
			summary = *quota.Status.Summary
		}
		rows = append(rows, o.row(quota, "", []string{
			quota.Name,
			mode(quota),
			conditionStatus(quota.Status.Conditions, v1alpha1.ConditionReady),
			orUnknown(summary.Highest),
			orUnknown(summary.Clusters),
			orUnknownIf(quota, summary.CPU),
			orUnknownIf(quota, summary.Memory),
			orUnknownIf(quota, summary.Pods),
			stale(quota),
			age(o.now(), quota.CreationTimestamp),
		}))
	}
	return rows
}

// mode is how a quota is distributed, none where it only observes.
func mode(quota *v1alpha1.FleetQuota) string {
	if quota.Spec.Distribution == nil {
		return none
	}
	return string(quota.Spec.Distribution.Mode)
}

// orUnknownIf prints a string of the summary. An empty one is a resource that
// the quota does not limit, once the hub has made a summary.
func orUnknownIf(quota *v1alpha1.FleetQuota, s string) string {
	if quota.Status.Summary == nil {
		return unknown
	}
	return orNone(s)
}

// stale is how many members have numbers that are not live.
func stale(quota *v1alpha1.FleetQuota) string {
	summary := quota.Status.Summary
	switch {
	case summary == nil:
		return unknown
	case summary.Stale != "":
		return summary.Stale
	default:
		return strconv.Itoa(int(summary.Members - summary.Live))
	}
}

func (o *getOptions) resourceColumns() []column {
	return o.namespaced([]column{
		{name: "NAME"},
		{name: columnResource},
		{name: columnUsed},
		{name: "HARD"},
		{name: "USED%"},
		{name: "STATE"},
	})
}

func (o *getOptions) resourceRows(quotas []*v1alpha1.FleetQuota) []row {
	parts := o.parts(quotas)
	rows := make([]row, 0, len(parts))
	for _, p := range parts {
		rows = append(rows, o.row(p.quota, string(p.resource), p.cells()))
	}
	return rows
}

func (p part) cells() []string {
	return []string{p.quota.Name, string(p.resource), p.usedText(), p.hard.String(), p.percent(), p.state()}
}

// csvColumns are the same in every call, for programs that read them.
func csvColumns() []column {
	return []column{
		{name: "namespace"},
		{name: "name"},
		{name: "resource"},
		{name: "used"},
		{name: "hard"},
		{name: "used_percent"},
		{name: "state"},
	}
}

func (o *getOptions) csvRows(quotas []*v1alpha1.FleetQuota) []row {
	parts := o.parts(quotas)
	rows := make([]row, 0, len(parts))
	for _, p := range parts {
		rows = append(rows, row{cells: append([]string{p.quota.Namespace}, p.cells()...)})
	}
	return rows
}
