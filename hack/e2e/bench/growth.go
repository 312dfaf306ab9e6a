package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"github.com/fleetquota/fleetquota/hack/e2e/bench/curve"
	"github.com/fleetquota/fleetquota/hack/e2e/bench/figure"
)

// growth measures how cost grows with sizes, one file for each curve. hack/bench
// measures those that take a whole fleet, and draws all.
func growth(ctx context.Context, o options) error {
	for _, c := range []struct {
		name    string
		measure func(context.Context, options) (curve.Table, error)
	}{
		{"change", changeGrows},
		{"members", membersGrow},
		{"quotas", quotasGrow},
		{"memory", memoryGrows},
	} {
		if o.only != "" && o.only != c.name {
			continue
		}
		table, err := c.measure(ctx, o)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return fmt.Errorf("measure the curve %s: %w", c.name, err)
		}
		table.Machine = figure.Machine(kubernetesVersion())
		if err := table.Write(filepath.Join(o.growth, c.name+".csv")); err != nil {
			return err
		}
	}
	return nil
}

// changeGrows measures one change of a pod among ever more pods of its namespace.
// Upstream's recount is measured as far as it ends while somebody waits.
func changeGrows(ctx context.Context, o options) (curve.Table, error) {
	table := curve.Table{Size: "pods in the namespace", Figures: []string{
		"a change, ns", "a change and a quota's new sum, ns", "upstream: a change and a recount, ns",
	}}
	most := pick(o, 3000, 30_000)
	var all []costs
	for _, n := range pick(o, []int{100, 1000, 3000, 10_000}, []int{100, 300, 1000, 3000, 10_000, 30_000, 100_000}) {
		all = append(all, costs{pods: n})
	}
	if err := measureOurs(all, o); err != nil {
		return table, err
	}
	for _, c := range all {
		if ctx.Err() != nil {
			return table, ctx.Err()
		}
		c.upstream = math.NaN()
		if c.pods <= most {
			progress("one change among %d pods, upstream", c.pods)
			if err := c.measureUpstream(o); err != nil {
				return table, err
			}
		}
		table.Add(c.pods, c.change, c.change+c.ask, c.upstream)
	}
	return table, nil
}

// memoryGrows measures what is reachable of ever more pods.
func memoryGrows(ctx context.Context, o options) (curve.Table, error) {
	table := curve.Table{Size: "pods", Figures: []string{"live heap, bytes", "upstream: live heap, bytes"}}
	most := pick(o, 10_000, 30_000)
	for _, n := range pick(o, []int{3000, 10_000, 30_000}, []int{10_000, 30_000, 100_000, 300_000, 1_000_000}) {
		if ctx.Err() != nil {
			return table, ctx.Err()
		}
		ours, err := keptByOurs(n)
		if err != nil {
			return table, err
		}
		theirs := math.NaN()
		if n <= most {
			if theirs, err = keptByUpstream(n); err != nil {
				return table, err
			}
		}
		table.Add(n, ours, theirs)
	}
	return table, nil
}

const lasts, sent = "a change and its status, ns", "body of the write, bytes"

// membersGrow measures one global status over ever more members.
func membersGrow(_ context.Context, o options) (curve.Table, error) {
	members := pick(o, []int{1, 10, 100}, []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000})
	table := curve.Table{Size: "members", Figures: []string{lasts, sent}}
	var sizes [][2]int
	for _, n := range members {
		sizes = append(sizes, [2]int{n, 1})
	}
	results, err := reports(o, sizes)
	for i, r := range results {
		table.Add(members[i], r.time, r.bytes)
	}
	return table, err
}

// quotasGrow measures one global status beside ever more others.
func quotasGrow(_ context.Context, o options) (curve.Table, error) {
	const members = 10
	quotas := pick(o, []int{1, 10, 100}, []int{1, 3, 10, 30, 100, 300, 1000, 2000})
	table := curve.Table{Size: "FleetQuotas", Figures: []string{lasts, sent}}
	var sizes [][2]int
	for _, n := range quotas {
		sizes = append(sizes, [2]int{members, n})
	}
	results, err := reports(o, sizes)
	for i, r := range results {
		table.Add(quotas[i], r.time, r.bytes)
	}
	return table, err
}
