package main

import (
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"
)

// row is one figure.
type row struct {
	name     string
	ours     float64
	upstream float64 // 0: there is nothing comparable
	in       unit
	target   target
}

// target is what a figure should be at most.
type target struct {
	most  float64
	ratio bool // it is a bound on ours / upstream, not on ours
}

// atMost bounds ours.
func atMost(most float64) target { return target{most: most} }

// within bounds ours by a duration.
func within(most time.Duration) target { return atMost(float64(most)) }

// ratioAtMost bounds ours / upstream.
func ratioAtMost(most float64) target { return target{most: most, ratio: true} }

// passes says whether the target is reached.
func (r row) passes() bool {
	if r.target.ratio {
		return r.ours <= r.target.most*r.upstream
	}
	return r.ours <= r.target.most
}

// cells is the row as text.
func (r row) cells() [6]string {
	verdict, upstream, ratio := "MISS", "-", "-"
	if r.passes() {
		verdict = "PASS"
	}
	if r.upstream != 0 {
		upstream, ratio = r.in(r.upstream), digits(r.ours/r.upstream)
	}
	bound := "<= " + r.in(r.target.most)
	if r.target.ratio {
		bound = "ratio <= " + digits(r.target.most)
	}
	return [6]string{verdict, r.name, r.in(r.ours), upstream, ratio, bound}
}

// printTable writes the rows as a table.
func printTable(w io.Writer, rows []row) error {
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

// unit writes a value for people.
type unit func(float64) string

// nanoseconds is a unit: the value is in them, the text is in what suits.
func nanoseconds(value float64) string {
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

// bytes is a unit.
func bytes(value float64) string {
	const kilo = 1000
	if value >= kilo {
		return digits(value/kilo) + " KB"
	}
	return digits(value) + " B"
}

// factor is a unit: so many times as much.
func factor(value float64) string { return digits(value) + "x" }

// perMinute is a unit.
func perMinute(value float64) string { return digits(value) + "/min" }

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
