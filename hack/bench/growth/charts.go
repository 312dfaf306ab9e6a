package main

import (
	"strconv"
	"strings"

	"github.com/fleetquota/fleetquota/hack/e2e/bench/figure"
)

// chart is how some figures of a table look.
type chart struct {
	name  string // of the SVG
	table string // the file of measurements
	title string
	x, y  string // what the axes say
	label func(y float64) string
	logX  bool // by powers of ten
	logY  bool // else it begins at 0
	lines []line
}

// line is one figure of a table.
type line struct {
	figure string // as the table names it
	says   string // in the legend
	style  style
}

// style is how a line looks; no two are told apart by their colour alone.
type style int

const (
	ours   style = iota // solid, with discs
	more                // dashed, with squares: ours too
	theirs              // dotted, with triangles: upstream's
)

func charts() []chart {
	const status, body = "a change and its status, ns", "body of the write, bytes"
	return []chart{
		{
			name: "change", table: "change.csv", title: "Time for one change of a pod", x: "pods in the namespace", y: "CPU time per change",
			label: duration, logX: true, logY: true, lines: []line{
				{"a change, ns", "fleetquota: decode, charge, note", ours},
				{"a change and a quota's new sum, ns", "fleetquota: and a quota's new sum", more},
				{"upstream: a change and a recount, ns", "Kubernetes: decode, cache, recount", theirs},
			},
		},
		{
			name: "memory", table: "memory.csv", title: "Memory for watched pods", x: "pods", y: "live heap",
			label: megabytes, logX: true, logY: true, lines: []line{
				{"live heap, bytes", "fleetquota: ledger and charges", ours},
				{"upstream: live heap, bytes", "Kubernetes: informer cache", theirs},
			},
		},
		{
			name: "sync", table: "sync.csv", title: "Time to sync, 2,000 pods in each member", x: "members", y: "time",
			label: seconds, lines: []line{
				{"from start to right totals, s", "from the hub's start to right totals", ours},
				{"CPU of the hub until then, s", "CPU of the hub until then", more},
			},
		},
		{
			name: "members-time", table: "members.csv", title: "Time for one global status", x: "members", y: "CPU time per change",
			label: duration, logX: true, logY: true, lines: []line{{status, "change, sum, status, JSON", ours}},
		},
		{
			name: "members-size", table: "members.csv", title: "Size of one global status", x: "members", y: "body of the write",
			label: kilobytes, logX: true, logY: true, lines: []line{{body, "FleetQuota with 10 keys, JSON", ours}},
		},
		{
			name: "quotas", table: "quotas.csv", title: "Time for one global status, 10 members", x: "FleetQuotas, each of a namespace of its own",
			y: "CPU time per change", label: duration, logX: true, lines: []line{{status, "change, sum, status, JSON", ours}},
		},
	}
}

func duration(nanoseconds float64) string {
	if nanoseconds == 0 {
		return "0"
	}
	return strings.Replace(figure.Nanoseconds.Text(nanoseconds), "us", "µs", 1)
}

func kilobytes(value float64) string {
	const kilo = 1e3
	return count(value/kilo) + " KB"
}

func megabytes(value float64) string {
	const mega = 1e6
	return count(value/mega) + " MB"
}

func seconds(value float64) string { return plain(value) + " s" }

// plain writes a number that is shown at a tick.
func plain(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }
