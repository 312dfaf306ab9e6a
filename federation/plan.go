package federation

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// MaxMembers is how many members can share a limit: as many rows as a FleetGrant
// holds.
const MaxMembers = 512

// Party is a member that takes part in a distribution.
type Party struct {
	Cluster string
	Silent  bool                // it cannot be told anything now
	Absent  bool                // it has nothing that a share could be given to
	Used    corev1.ResourceList // what admission has charged; a resource that is absent is not known
	Room    corev1.ResourceList // its largest recent charge
}

// Plan is what each member shall have.
type Plan struct {
	Shares   []Share // those who use most of what they have come first
	Memories Memories
}

// Memories are what Balanced remembers of each member, by resource.
type Memories map[corev1.ResourceName]map[string]Memory

// Governed is hard by the names that are divided: of two names of one amount, the
// canonical one with the smaller limit.
func Governed(hard corev1.ResourceList) corev1.ResourceList {
	governed := hard.DeepCopy()
	for name, limit := range hard {
		canonical := evaluator.Canonical(name)
		if other, both := governed[canonical]; both && canonical != name {
			governed[canonical] = smaller(other, limit)
			delete(governed, name)
		}
	}
	return governed
}

// Divide plans what the members of a FleetQuota shall have, by its mode and by
// what the record says that they hold. A member whose share cannot be told now is
// in the plan, with nothing planned. The error names the resource that cannot be
// divided as the spec asks; then nothing is planned for those who hold something.
func Divide(spec v1alpha1.FleetQuotaSpec, record Record, parties []Party, memories Memories, now time.Time) (Plan, error) {
	if len(parties) > MaxMembers {
		return unplanned(record, parties), fmt.Errorf("spec.clusterSelector: %d members are selected, and at most %d can share a limit", len(parties), MaxMembers)
	}
	plan := Plan{Memories: Memories{}}
	shares := map[string]corev1.ResourceList{}
	for _, party := range parties {
		shares[party.Cluster] = nil
	}
	limit := Governed(spec.Hard)
	for _, name := range slices.Sorted(maps.Keys(limit)) {
		division, err := divisionOf(name, limit, spec.Distribution, record, parties)
		if err != nil {
			return unplanned(record, parties), err
		}
		targets, err := plan.divide(spec.Distribution.Mode, division, memories, now)
		if err != nil {
			return unplanned(record, parties), err
		}
		for _, c := range division.Claims {
			if c.Fixed {
				continue
			}
			if shares[c.Cluster] == nil {
				shares[c.Cluster] = corev1.ResourceList{}
			}
			shares[c.Cluster][name] = division.Unit.Quantity(targets[c.Cluster])
		}
	}
	plan.order(shares, parties)
	return plan, nil
}

// unplanned is a plan that leaves everything as it is.
func unplanned(record Record, parties []Party) Plan {
	var plan Plan
	for _, party := range parties {
		if record.Row(party.Cluster) != nil {
			plan.Shares = append(plan.Shares, Share{Cluster: party.Cluster})
		}
	}
	return plan
}

// divide is one resource's part of a plan.
func (p *Plan) divide(mode v1alpha1.DistributionMode, d Division, memories Memories, now time.Time) (Targets, error) {
	switch mode {
	case v1alpha1.Static:
		return d.Static()
	case v1alpha1.Weighted:
		return d.Weighted(), nil
	case v1alpha1.Shared:
		return d.Shared(), nil
	case v1alpha1.Balanced:
		targets, next := d.Balanced(memories[d.Unit.name], now)
		p.Memories[d.Unit.name] = next
		return targets, nil
	}
	return nil, fmt.Errorf("spec.distribution.mode: %q is not Static, Weighted, Balanced or Shared", mode)
}

// order puts the members first that use most of what they shall have: what there
// is room for is raised in this order.
func (p *Plan) order(shares map[string]corev1.ResourceList, parties []Party) {
	fill := map[string]int64{}
	for _, party := range parties {
		if hard, ok := shares[party.Cluster]; ok {
			fill[party.Cluster] = highest(party.Used, hard)
		}
	}
	for cluster, hard := range shares {
		p.Shares = append(p.Shares, Share{Cluster: cluster, Hard: hard})
	}
	slices.SortFunc(p.Shares, func(a, b Share) int {
		return cmp.Or(cmp.Compare(fill[b.Cluster], fill[a.Cluster]), strings.Compare(a.Cluster, b.Cluster))
	})
}

// divisionOf is one resource and the members among which it is divided: those
// that can be told, beside all that hold something.
func divisionOf(name corev1.ResourceName, limit corev1.ResourceList, d *v1alpha1.Distribution, record Record, parties []Party) (Division, error) {
	unit := UnitOf(name, limit[name])
	whole, err := unit.Down(limit[name])
	if err != nil {
		return Division{}, err
	}
	division := Division{Unit: unit, Limit: whole}
	asked := map[string]v1alpha1.MemberShare{}
	for _, share := range d.Members {
		asked[share.Cluster] = share
	}
	taking := map[string]bool{}
	for _, party := range parties {
		row := record.Row(party.Cluster)
		if row == nil && (party.Silent || party.Absent) {
			continue
		}
		taking[party.Cluster] = true
		claim, err := claimOf(unit, row, party, asked[party.Cluster])
		if err != nil {
			return Division{}, fmt.Errorf("member %s: %w", party.Cluster, err)
		}
		division.Claims = append(division.Claims, claim)
	}
	for i := range record.Spec.Members {
		row := &record.Spec.Members[i]
		if taking[row.Cluster] {
			continue
		}
		division.Claims = append(division.Claims, Claim{Cluster: row.Cluster, Granted: saturated(unit, row.Granted), Fixed: true})
	}
	return division, nil
}

// claimOf is what a member that takes part brings to the division of a resource.
func claimOf(unit Unit, row *v1alpha1.Grant, party Party, asked v1alpha1.MemberShare) (Claim, error) {
	c := Claim{Cluster: party.Cluster, Weight: asked.Weight, Fixed: party.Silent || party.Absent || row != nil && row.State != ""}
	if row == nil {
		row = &v1alpha1.Grant{}
	}
	name := unit.name
	var failed error
	in := func(round func(resource.Quantity) (int64, error), list corev1.ResourceList) int64 {
		units, err := round(valueOf(list, name))
		failed = cmp.Or(failed, err)
		return units
	}
	c.Granted, c.Target = saturated(unit, row.Granted), saturated(unit, row.Target)
	c.Used, c.Room = saturated(unit, party.Used), saturated(unit, party.Room)
	c.Min, c.Hard = in(unit.Up, asked.Min), in(unit.Down, asked.Hard)
	_, c.Known = party.Used[name]
	if _, bounded := find(asked.Max, name); bounded {
		most := in(unit.Down, asked.Max)
		c.Max = &most
	}
	return c, failed
}

// saturated is how many units a list has, at most what an int64 holds: it is not
// what a user asks for, and must not keep what is from being done.
func saturated(unit Unit, list corev1.ResourceList) int64 {
	units, err := unit.Up(list[unit.name])
	if err != nil {
		return math.MaxInt64
	}
	return units
}

// called is the name under which a list has a resource.
func called(list corev1.ResourceList, name corev1.ResourceName) (corev1.ResourceName, bool) {
	if _, ok := list[name]; ok {
		return name, true
	}
	for other := range list {
		if evaluator.Canonical(other) == evaluator.Canonical(name) {
			return other, true
		}
	}
	return name, false
}

// find finds a resource in what a user wrote, under any of its names.
func find(list corev1.ResourceList, name corev1.ResourceName) (resource.Quantity, bool) {
	have, ok := called(list, name)
	return list[have], ok
}

func valueOf(list corev1.ResourceList, name corev1.ResourceName) resource.Quantity {
	q, _ := find(list, name)
	return q
}
