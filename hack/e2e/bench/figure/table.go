// Package figure prints what a benchmark has measured: one row per figure, PASS
// or MISS, ours, upstream's, their ratio, and the target.
package figure

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"
)

// Row is one figure.
type Row struct {
	Name     string
	Ours     float64
	Upstream float64 // 0: there is nothing comparable
	In       Unit
	Target   Target
}

// Target is what a figure should be at most. The zero value is none: the figure
// is told, and not judged.
type Target struct {
	some  bool
	most  float64
	ratio bool // it is a bound on ours / upstream, not on ours
}

// AtMost bounds ours.
func AtMost(most float64) Target { return Target{some: true, most: most} }

// Within bounds ours by a duration.
func Within(most time.Duration) Target { return AtMost(float64(most)) }

// RatioAtMost bounds ours / upstream.
func RatioAtMost(most float64) Target { return Target{some: true, most: most, ratio: true} }

// passes says whether the target is reached.
func (r Row) passes() bool {
	if r.Target.ratio {
		return r.Ours <= r.Target.most*r.Upstream
	}
	return r.Ours <= r.Target.most
}

// cells is the row as text.
func (r Row) cells() [6]string {
	verdict, upstream, ratio, bound := "-", "-", "-", "-"
	if r.Target.some {
		verdict = "MISS"
		bound = "<= " + r.In(r.Target.most)
	}
	if r.Target.some && r.passes() {
		verdict = "PASS"
	}
	if r.Upstream != 0 {
		upstream, ratio = r.In(r.Upstream), digits(r.Ours/r.Upstream)
	}
	if r.Target.ratio {
		bound = "ratio <= " + digits(r.Target.most)
	}
	return [6]string{verdict, r.Name, r.In(r.Ours), upstream, ratio, bound}
}

// Print writes the rows as a table.
func Print(w io.Writer, rows []Row) error {
	const gap = 2
	table := tabwriter.NewWriter(w, 0, 0, gap, ' ', 0)
	write := func(c [6]string) {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", c[0], c[1], c[2], c[3], c[4], c[5])
	}
	write([6]string{"", "figure", "ours", "upstream", "ratio", "target"})
	for _, r := range rows {
		write(r.cells())
	}
	return table.Flush()
}

// Unit writes a value for people.
type Unit func(float64) string

// Nanoseconds is a unit: the value is in them, the text is in what suits.
func Nanoseconds(value float64) string {
	for _, scale := range []struct {
		size   float64
		symbol string
	}{{1e9, " s"}, {1e6, " ms"}, {1e3, " us"}} {
		if value >= scale.size {
			return digits(value/scale.size) + scale.symbol
		}
	}
	return digits(value) + " ns"
}

// Bytes is a unit.
func Bytes(value float64) string {
	const kilo = 1000
	if value >= kilo {
		return digits(value/kilo) + " KB"
	}
	return digits(value) + " B"
}

// Mebibytes is a unit of values that are in bytes.
func Mebibytes(value float64) string {
	const mebi = 1 << 20
	return digits(value/mebi) + " MiB"
}

// Percent is a unit of values that are parts of one.
func Percent(value float64) string {
	const whole = 100
	return digits(value*whole) + "%"
}

// PerSecond is a unit.
func PerSecond(value float64) string { return digits(value) + "/s" }

// Factor is a unit: so many times as much.
func Factor(value float64) string { return digits(value) + "x" }

// PerMinute is a unit.
func PerMinute(value float64) string { return digits(value) + "/min" }

// digits writes three digits that tell, and no exponent.
func digits(value float64) string {
	const small, large = 1, 100
	switch {
	case value == 0 || value >= large:
		return strconv.FormatFloat(value, 'f', 0, 64)
	case value >= small:
		return strconv.FormatFloat(round(value), 'f', -1, 64)
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 2, 64), 64) //nolint:errcheck // it has just been written
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// round keeps three digits of a value from 1 to 100.
func round(value float64) float64 {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 3, 64), 64) //nolint:errcheck // it has just been written
	return rounded
}
