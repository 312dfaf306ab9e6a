// Command bench measures the hub with a fleet of synthetic members, up to a
// million pods on one machine, and prints one row per figure.
//
// A MISS is a result like any other: the exit code is 1 only when something could
// not be measured, or a total was wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/fleetquota/fleetquota/hack/bench/scenario"
	"github.com/fleetquota/fleetquota/hack/e2e/bench/figure"
)

// options says what to measure.
type options struct {
	short   bool
	only    string
	members int // in place of those of the fleet; 0: no
	pods    int // in each of its members; 0: as written

	after  string // file of figures of another program, to be printed before ours; empty: none
	growth string // folder for curves; empty: measure figures
	output figure.Output
}

func main() {
	var o options
	flag.BoolVar(&o.short, "short", false, "fewer members and pods, for a quick look")
	flag.StringVar(&o.only, "only", "", "measure one of: fleet, gzip, plain, quotas")
	flag.IntVar(&o.members, "members", 0, "members of the fleet, in place of 100")
	flag.IntVar(&o.pods, "pods", 0, "pods in each, in place of 10000")
	flag.StringVar(&o.after, "after", "", "print the figures in this file first, in the same table")
	flag.StringVar(&o.growth, "growth", "", "measure how the time to sync grows, and nothing else, into this folder")
	o.output.Flags()
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// run measures what is asked for.
func run(ctx context.Context, o options) error {
	if o.growth != "" {
		return growth(ctx, o)
	}
	var before []figure.Row
	if o.after != "" {
		var err error
		if before, err = figure.Load(o.after); err != nil {
			return err
		}
	}
	rows, err := measure(ctx, o)
	if len(before)+len(rows) == 0 {
		return err
	}
	if err != nil || o.only != "" {
		o.output.Document = "" // they are not all
	}
	return errors.Join(err, show(context.WithoutCancel(ctx), o, before, rows))
}

// show writes the figures, those too that came before trouble, in one table with
// those of the other program.
func show(ctx context.Context, o options, before, rows []figure.Row) error {
	var errs []error
	if o.output.Benchmark != "" {
		errs = append(errs, figure.Append(o.output.Benchmark, rows))
	}
	rows = append(before, rows...)
	return errors.Join(append(errs, o.output.Print(ctx, kubernetesVersion, rows), o.output.Publish(ctx, kubernetesVersion, rows))...)
}

// kubernetesVersion is that of the hub's API server, and of upstream's code where
// there is any.
const kubernetesVersion = "v1.37.2"

// measure returns also what came before trouble.
func measure(ctx context.Context, o options) (rows []figure.Row, err error) {
	bin, err := os.MkdirTemp("", "fleetquota-bench-bin-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(bin)) }()
	var errs []error
	for _, f := range figures(o) {
		if ctx.Err() != nil || o.only != "" && o.only != f.name {
			continue
		}
		if f.name == "fleet" {
			o.resize(&f.options)
		}
		f.options.Out, f.options.Bin = os.Stderr, bin
		result, err := scenario.Run(ctx, f.options)
		if err != nil {
			errs = append(errs, fmt.Errorf("measure %s: %w", f.name, err))
			continue
		}
		fmt.Fprintf(os.Stderr, "bench: the synthetic fleet used %s of CPU and %d MiB itself\n", result.Fleet.CPU, result.Fleet.Peak>>20)
		rows = append(rows, f.rows(f.what(), &result)...)
	}
	if len(rows) == 0 && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("there is nothing named %q to measure", o.only))
	}
	return rows, errors.Join(errs...)
}

// measurement is one scenario and what is told of it.
type measurement struct {
	name    string
	options scenario.Options
	rows    func(what string, r *scenario.Result) []figure.Row
}

func (m *measurement) what() string {
	plural := "members"
	if m.options.Members == 1 {
		plural = "member"
	}
	return fmt.Sprintf("%d pods in %d %s", m.options.Members*m.options.Pods, m.options.Members, plural)
}

// figures are all that is measured.
func figures(o options) []measurement {
	const rate, burst = 500, 5000
	if o.short {
		const churn, rest = 5 * time.Second, time.Second
		return []measurement{
			{"fleet", scenario.Options{Members: 10, Pods: 2000, Rates: []int{rate, burst}, Churn: churn, Rest: churn}, ofFleet},
			{"gzip", scenario.Options{Members: 1, Pods: 20_000, Rest: rest}, ofOne("gzip")},
			{"plain", scenario.Options{Members: 1, Pods: 20_000, Plain: true, Rest: rest}, ofOne("no gzip")},
			{"quotas", scenario.Options{Members: 10, Pods: 2000, Namespaces: 100, Rates: []int{rate}, Churn: churn, Rest: rest}, ofQuotas},
		}
	}
	const rest, little = 150 * time.Second, 5 * time.Second // the first longer than between two collections of garbage
	return []measurement{
		{"fleet", scenario.Options{Members: 100, Pods: 10_000, Rates: []int{rate, burst}, Rest: rest}, ofFleet},
		{"gzip", scenario.Options{Members: 1, Pods: 200_000, Rest: rest}, ofOne("gzip")},
		{"plain", scenario.Options{Members: 1, Pods: 200_000, Plain: true, Rest: rest}, ofOne("no gzip")},
		{"quotas", scenario.Options{Members: 10, Pods: 10_000, Namespaces: 1000, Rates: []int{rate}, Rest: little}, ofQuotas},
	}
}

const mebi = 1 << 20

// ofFleet are the rows of many members.
func ofFleet(what string, r *scenario.Result) []figure.Row {
	const large, within, most = 600 * mebi, 90 * time.Second, 1
	rows := []figure.Row{
		{Name: what + ": from start to right totals", Ours: float64(r.Synced), In: figure.Nanoseconds, Target: figure.Within(within)},
		{Name: what + ": CPU until then", Ours: float64(r.SyncCPU), In: figure.Nanoseconds},
		{Name: what + ": RSS at rest", Ours: float64(r.RSS), In: figure.Mebibytes, Target: figure.AtMost(large)},
		{Name: what + ": largest RSS", Ours: float64(r.Peak), In: figure.Mebibytes, Target: figure.AtMost(large)},
	}
	for i, rate := range r.Rates {
		name := fmt.Sprintf("%s, %d changes/s: ", what, rate.Asked)
		if i == 0 {
			rows = append(rows, figure.Row{Name: name + "CPU, of one core", Ours: rate.CPU, In: figure.Percent})
		}
		rows = append(rows,
			figure.Row{Name: name + "that were made", Ours: rate.Made, In: figure.PerSecond},
			figure.Row{Name: name + "right after the last within", Ours: float64(rate.Settled), In: figure.Nanoseconds},
			figure.Row{Name: name + "status writes, the busiest FleetQuota", Ours: rate.Busiest, In: figure.PerSecond, Target: figure.AtMost(most)},
		)
	}
	return rows
}

// ofOne are the rows of one large member.
func ofOne(how string) func(what string, r *scenario.Result) []figure.Row {
	return func(what string, r *scenario.Result) []figure.Row {
		const most = 2
		return []figure.Row{
			{Name: fmt.Sprintf("%s, %s: from start to right totals", what, how), Ours: float64(r.Synced), In: figure.Nanoseconds, Target: figure.Within(90 * time.Second)},
			{Name: fmt.Sprintf("%s, %s: largest RSS against RSS at rest", what, how), Ours: float64(r.SyncPeak) / float64(r.RSS), In: figure.Factor, Target: figure.AtMost(most)},
		}
	}
}

// ofQuotas are the rows of many FleetQuotas.
func ofQuotas(what string, r *scenario.Result) []figure.Row {
	var rows []figure.Row
	for _, rate := range r.Rates {
		name := fmt.Sprintf("%s, %d FleetQuotas, %d changes/s: ", what, r.Quotas, rate.Asked)
		rows = append(rows,
			figure.Row{Name: name + "CPU, of one core", Ours: rate.CPU, In: figure.Percent},
			figure.Row{Name: name + "status writes", Ours: rate.Writes, In: figure.PerSecond, Target: figure.AtMost(rate.Made)},
			figure.Row{Name: name + "status writes, the busiest FleetQuota", Ours: rate.Busiest, In: figure.PerSecond, Target: figure.AtMost(1)},
			figure.Row{Name: name + "right after the last within", Ours: float64(rate.Settled), In: figure.Nanoseconds},
		)
	}
	return rows
}

// resize changes how large a fleet is.
func (o options) resize(fleet *scenario.Options) {
	if o.members > 0 {
		fleet.Members = o.members
	}
	if o.pods > 0 {
		fleet.Pods = o.pods
	}
}
