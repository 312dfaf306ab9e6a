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
	Some  bool
	Most  float64
	Ratio bool // it is a bound on ours / upstream, not on ours
}

// AtMost bounds ours.
func AtMost(most float64) Target { return Target{Some: true, Most: most} }

// Within bounds ours by a duration.
func Within(most time.Duration) Target { return AtMost(float64(most)) }

// RatioAtMost bounds ours / upstream.
func RatioAtMost(most float64) Target { return Target{Some: true, Most: most, Ratio: true} }

// passes says whether the target is reached.
func (r Row) passes() bool {
	if r.Target.Ratio {
		return r.Ours <= r.Target.Most*r.Upstream
	}
	return r.Ours <= r.Target.Most
}

// cells is the row as text.
func (r Row) cells() [6]string {
	verdict, upstream, ratio, bound := "-", "-", "-", "-"
	if r.Target.Some {
		verdict = "MISS"
		bound = "<= " + r.In.Text(r.Target.Most)
	}
	if r.Target.Some && r.passes() {
		verdict = "PASS"
	}
	if r.Upstream != 0 {
		upstream, ratio = r.In.Text(r.Upstream), digits(r.Ours/r.Upstream)
	}
	if r.Target.Ratio {
		bound = "ratio <= " + digits(r.Target.Most)
	}
	return [6]string{verdict, r.Name, r.In.Text(r.Ours), upstream, ratio, bound}
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
