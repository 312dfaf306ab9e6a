package main

import (
	"strings"
	"testing"
	"time"
)

func TestRows(t *testing.T) {
	cases := map[string]struct {
		row  row
		want string
	}{
		"a bound on ours that is reached": {
			row{name: "cost", ours: 8200, upstream: 3.1e9, in: nanoseconds, target: within(10 * time.Microsecond)},
			"PASS  cost  8.2 us  3.1 s  0.0000026  <= 10 us",
		},
		"a bound on ours that is not": {
			row{name: "cost", ours: 10001, upstream: 3.1e9, in: nanoseconds, target: within(10 * time.Microsecond)},
			"MISS  cost  10 us  3.1 s  0.0000032  <= 10 us",
		},
		"nothing comparable upstream": {
			row{name: "latency", ours: 43.21e6, in: nanoseconds, target: within(150 * time.Millisecond)},
			"PASS  latency  43.2 ms  -  -  <= 150 ms",
		},
		"a bound on the ratio that is reached exactly": {
			row{name: "local", ours: 320e6, upstream: 320e6, in: nanoseconds, target: ratioAtMost(1)},
			"PASS  local  320 ms  320 ms  1  ratio <= 1",
		},
		"a bound on the ratio that is not reached": {
			row{name: "local", ours: 640e6, upstream: 320e6, in: nanoseconds, target: ratioAtMost(1)},
			"MISS  local  640 ms  320 ms  2  ratio <= 1",
		},
		"bytes": {
			row{name: "memory", ours: 187.4, upstream: 10444, in: bytes, target: atMost(200)},
			"PASS  memory  187 B  10.4 KB  0.018  <= 200 B",
		},
		"nothing at all": {
			row{name: "idle", ours: 0, in: perMinute, target: atMost(0)},
			"PASS  idle  0/min  -  -  <= 0/min",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			cells := c.row.cells()
			if got := strings.Join(cells[:], "  "); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestTableAlignsColumns(t *testing.T) {
	var out strings.Builder
	err := printTable(&out, []row{
		{name: "a", ours: 1, upstream: 1000, in: bytes, target: atMost(2)},
		{name: "longer", ours: 3, in: bytes, target: atMost(2)},
	})
	want := strings.Join([]string{
		"      figure  ours  upstream  ratio  target",
		"PASS  a       1 B   1 KB      0.001  <= 2 B",
		"MISS  longer  3 B   -         -      <= 2 B",
		"",
	}, "\n")
	if err != nil || out.String() != want {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, out.String(), want)
	}
}

func TestDigits(t *testing.T) {
	for value, want := range map[float64]string{
		0: "0", 0.00031234: "0.00031", 0.5: "0.5", 1: "1", 1.236: "1.24", 43.21: "43.2", 99.96: "100", 100.4: "100", 123456: "123456",
	} {
		if got := digits(value); got != want {
			t.Errorf("digits(%v) = %s, want %s", value, got, want)
		}
	}
}

func TestQuantiles(t *testing.T) {
	sample := []time.Duration{5, 1, 4, 2, 3}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := quantile(sample, q); got != want {
			t.Errorf("quantile %v = %d, want %d", q, got, want)
		}
	}
}
