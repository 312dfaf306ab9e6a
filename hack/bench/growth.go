package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/fleetquota/fleetquota/hack/bench/scenario"
	"github.com/fleetquota/fleetquota/hack/e2e/bench/curve"
	"github.com/fleetquota/fleetquota/hack/e2e/bench/figure"
)

// growth measures the time from the hub's start to right totals over ever more
// members, each with as many pods. The other curves are those of hack/e2e/bench.
func growth(ctx context.Context, o options) error {
	members, pods := []int{1, 2, 5, 10, 20, 50, 100}, 2000
	if o.short {
		members, pods = []int{1, 3, 10}, 500
	}
	table := curve.Table{Machine: figure.Machine(kubernetesVersion), Size: "members", Figures: []string{"from start to right totals, s", "CPU of the hub until then, s"}}
	for _, n := range members {
		result, err := scenario.Run(ctx, scenario.Options{Members: n, Pods: pods, Rest: time.Second, Out: os.Stderr})
		if err != nil {
			return fmt.Errorf("measure the curve sync, %d members: %w", n, err)
		}
		table.Add(n, result.Synced.Seconds(), result.SyncCPU.Seconds())
	}
	return table.Write(filepath.Join(o.growth, "sync.csv"))
}
