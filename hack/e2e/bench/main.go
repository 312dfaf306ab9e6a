// Command bench measures fleetquota beside the code of Kubernetes itself, in
// one run on one machine, and prints one row per figure: PASS or MISS, ours,
// upstream's, their ratio, and the target.
//
// A MISS is a result like any other: the exit code is 1 only when something
// could not be measured.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/fleetquota/fleetquota/hack/e2e/bench/figure"
)

func main() {
	var o options
	flag.BoolVar(&o.short, "short", false, "measure fewer pods and deletions, for a quick look")
	flag.StringVar(&o.only, "only", "", "measure one of: decode, cost, memory, fleet")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// ballastSize is what a process of ordinary size keeps. With less the garbage
// collector would run all the time, and where few pods are kept most of all.
const ballastSize = 64 << 20

// run measures all figures and prints them, those too that came before trouble.
func run(ctx context.Context, o options) error {
	figures := []struct {
		name    string
		measure func(context.Context, options) ([]figure.Row, error)
	}{
		{"decode", decoding},
		{"cost", costOfChange},
		{"memory", memoryPerPod},
		{"fleet", onRealClusters},
	}
	ballast := make([]byte, ballastSize)
	defer runtime.KeepAlive(ballast)
	var rows []figure.Row
	var errs []error
	for _, figure := range figures {
		if ctx.Err() != nil || o.only != "" && o.only != figure.name {
			continue
		}
		more, err := figure.measure(ctx, o)
		rows = append(rows, more...)
		if err != nil {
			errs = append(errs, fmt.Errorf("measure %s: %w", figure.name, err))
		}
	}
	switch {
	case ctx.Err() != nil && len(errs) == 0:
		errs = append(errs, ctx.Err())
	case len(rows) == 0 && len(errs) == 0:
		errs = append(errs, fmt.Errorf("there is nothing named %q to measure", o.only))
	}
	if len(rows) > 0 {
		fmt.Println(figure.Machine(context.WithoutCancel(ctx), kubernetesVersion()))
		fmt.Println()
		errs = append(errs, figure.Print(os.Stdout, rows))
	}
	return errors.Join(errs...)
}
