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
	flag.StringVar(&o.only, "only", "", "measure one of: decode, cost, quotas, memory, fleet")
	flag.StringVar(&o.rows, "rows", "", "keep the figures in this file and print no table: another program prints them with its own")
	flag.StringVar(&o.growth, "growth", "", "measure how cost grows, and nothing else, into this folder")
	o.output.Flags()
	o.profiles.Flags()
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := o.profiles.Of(func() error { return run(ctx, o) })
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// ballastSize is what a process of ordinary size keeps. With less the garbage
// collector would run all the time, and where few pods are kept most of all.
const ballastSize = 64 << 20

// run measures what is asked for.
func run(ctx context.Context, o options) error {
	ballast := make([]byte, ballastSize)
	defer runtime.KeepAlive(ballast)
	if o.growth != "" {
		return growth(ctx, o)
	}
	rows, err := measure(ctx, o)
	if len(rows) == 0 {
		return err
	}
	if err != nil {
		o.rows = "" // the other program will not run
	}
	if err != nil || o.only != "" {
		o.output.Document = "" // they are not all
	}
	return errors.Join(err, show(context.WithoutCancel(ctx), o, rows))
}

// show writes the figures, those too that came before trouble.
func show(ctx context.Context, o options, rows []figure.Row) error {
	var errs []error
	if o.output.Benchmark != "" {
		errs = append(errs, figure.Append(o.output.Benchmark, rows))
	}
	if o.rows != "" {
		return errors.Join(append(errs, figure.Save(o.rows, rows))...)
	}
	return errors.Join(append(errs, o.output.Print(ctx, kubernetesVersion(), rows), o.output.Publish(ctx, kubernetesVersion(), rows))...)
}

// measure measures all figures.
func measure(ctx context.Context, o options) ([]figure.Row, error) {
	figures := []struct {
		name    string
		measure func(context.Context, options) ([]figure.Row, error)
	}{
		{"decode", decoding},
		{"cost", costOfChange},
		{"quotas", manyQuotas},
		{"memory", memoryPerPod},
		{"fleet", onRealClusters},
	}
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
	return rows, errors.Join(errs...)
}
