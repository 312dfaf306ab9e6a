package main

import (
	"cmp"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// What a person reads stays short in a large fleet: at most so many rows of
// members, and so many names in a sentence.
const (
	maxMemberRows = 50
	fewNames      = 5
)

// few joins the first few names and says how many more there are.
func few(names []string) string {
	if len(names) <= fewNames {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:fewNames], ", "), len(names)-fewNames)
}

// worstMembers are the rows of a quota's members by name, and what to say of
// those that are left out: at most maxMemberRows rows, or one member's, of those
// that are not live and then of those that use most.
func worstMembers[R any](quota *v1alpha1.FleetQuota, rowsOf func(*v1alpha1.ClusterUsage) []R) (rows []R, more []string) {
	members := make([]*v1alpha1.ClusterUsage, 0, len(quota.Status.Clusters))
	for i := range quota.Status.Clusters {
		members = append(members, &quota.Status.Clusters[i])
	}
	each := max(1, len(amounts(quota)))
	if most := max(1, maxMemberRows/each); len(members) > most {
		slices.SortStableFunc(members, worstFirst(quota))
		more = append(more, fmt.Sprintf("... and %d more; kubectl fleetquota get %s -n %s -o yaml shows all.",
			len(members)-most, quota.Name, quota.Namespace))
		members = members[:most]
		slices.SortFunc(members, func(a, b *v1alpha1.ClusterUsage) int { return cmp.Compare(a.Name, b.Name) })
	}
	for _, member := range members {
		rows = append(rows, rowsOf(member)...)
	}
	if summary := quota.Status.Summary; summary != nil && summary.Omitted > 0 {
		more = append(more, fmt.Sprintf("%d more members are live and left out.", summary.Omitted))
	}
	return rows, more
}

// worstFirst sorts the members that are not live first, and then those that use
// most of any limit.
func worstFirst(quota *v1alpha1.FleetQuota) func(a, b *v1alpha1.ClusterUsage) int {
	all := amounts(quota)
	shares := map[string]*big.Rat{}
	for i := range quota.Status.Clusters {
		member := &quota.Status.Clusters[i]
		most := new(big.Rat)
		for _, a := range all {
			if used, known := member.Used[a.resource]; known {
				a.used = &used
				if share := a.share(); share.Cmp(most) > 0 {
					most = share
				}
			}
		}
		shares[member.Name] = most
	}
	live := func(m *v1alpha1.ClusterUsage) int {
		if m.Phase == v1alpha1.Live {
			return 1
		}
		return 0
	}
	return func(a, b *v1alpha1.ClusterUsage) int {
		return cmp.Or(cmp.Compare(live(a), live(b)), shares[b.Name].Cmp(shares[a.Name]), cmp.Compare(a.Name, b.Name))
	}
}
