package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fleetquota/fleetquota/hack/e2e/bench/curve"
)

func TestEveryDrawingInTheDocumentationIsOfItsMeasurements(t *testing.T) {
	const dir = "../../../docs/growth"
	for _, c := range charts() {
		t.Run(c.name, func(t *testing.T) {
			want, err := c.draw(dir)
			if err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(dir, c.name+".svg"))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != string(want) {
				t.Errorf("%s.svg is not what %s gives: run make generate", c.name, c.table)
			}
		})
	}
}

func TestAChartSaysWhatItShows(t *testing.T) {
	dir := t.TempDir()
	table := curve.Table{Machine: "2 cores, a CPU", Size: "pods", Figures: []string{"a", "b"}}
	table.Add(10, 1500, 1e6)
	table.Add(1000, 1600)
	if err := table.Write(filepath.Join(dir, "t.csv")); err != nil {
		t.Fatal(err)
	}
	c := chart{
		name: "t", table: "t.csv", title: "How it grows", x: "pods", y: "time", label: duration, logX: true, logY: true,
		lines: []line{{"a", "one side", ours}, {"b", "the other side", theirs}},
	}
	drawn, err := c.draw(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"How it grows", "pods", "time", "one side", "the other side", "1,000", "1 µs", "10 ms", "2 cores, a CPU", "stroke-dasharray"} {
		if !strings.Contains(string(drawn), text) {
			t.Errorf("it does not show %q", text)
		}
	}
	c.lines[0].figure = "c"
	if _, err := c.draw(dir); err == nil {
		t.Error("a figure that is not in the table has been drawn")
	}
}

func TestNumbersAtTicks(t *testing.T) {
	for want, got := range map[string]string{
		"0": count(0), "100": count(100), "1,000": count(1000), "1,000,000": count(1e6), "2.5 KB": kilobytes(2500), "0.1 MB": megabytes(1e5),
		"10 µs": duration(1e4), "1 ms": duration(1e6), "7.5 s": seconds(7.5),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
