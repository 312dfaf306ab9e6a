package figure

import (
	"strings"
	"testing"
	"time"
)

func TestRows(t *testing.T) {
	cases := map[string]struct {
		row  Row
		want string
	}{
		"a bound on ours that is reached": {
			Row{Name: "cost", Ours: 8200, Upstream: 3.1e9, In: Nanoseconds, Target: Within(10 * time.Microsecond)},
			"PASS  cost  8.2 us  3.1 s  0.0000026  <= 10 us",
		},
		"a bound on ours that is not": {
			Row{Name: "cost", Ours: 10001, Upstream: 3.1e9, In: Nanoseconds, Target: Within(10 * time.Microsecond)},
			"MISS  cost  10 us  3.1 s  0.0000032  <= 10 us",
		},
		"nothing comparable upstream": {
			Row{Name: "latency", Ours: 43.21e6, In: Nanoseconds, Target: Within(150 * time.Millisecond)},
			"PASS  latency  43.2 ms  -  -  <= 150 ms",
		},
		"a bound on the ratio that is reached exactly": {
			Row{Name: "local", Ours: 320e6, Upstream: 320e6, In: Nanoseconds, Target: RatioAtMost(1)},
			"PASS  local  320 ms  320 ms  1  ratio <= 1",
		},
		"a bound on the ratio that is not reached": {
			Row{Name: "local", Ours: 640e6, Upstream: 320e6, In: Nanoseconds, Target: RatioAtMost(1)},
			"MISS  local  640 ms  320 ms  2  ratio <= 1",
		},
		"bytes": {
			Row{Name: "memory", Ours: 187.4, Upstream: 10444, In: Bytes, Target: AtMost(200)},
			"PASS  memory  187 B  10.4 KB  0.018  <= 200 B",
		},
		"no target": {
			Row{Name: "cpu", Ours: 0.53, In: Percent},
			"-  cpu  53%  -  -  -",
		},
		"nothing at all": {
			Row{Name: "idle", Ours: 0, In: PerMinute, Target: AtMost(0)},
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
	err := Print(&out, []Row{
		{Name: "a", Ours: 1, Upstream: 1000, In: Bytes, Target: AtMost(2)},
		{Name: "longer", Ours: 3, In: Bytes, Target: AtMost(2)},
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

func TestBenchmarkFormat(t *testing.T) {
	var out strings.Builder
	err := benchmarks(&out, []Row{
		{Name: "one pod change, 100 pods", Ours: 5.5, Upstream: 1e6, In: Nanoseconds},
		{Name: "idle, Lease aside", In: PerMinute},
	})
	_, lines, _ := strings.Cut(out.String(), "cpu: "+cpu()+"\n")
	want := strings.Join([]string{
		"BenchmarkOnePodChange100Pods/side=ours 1 5.5 ns/op",
		"BenchmarkOnePodChange100Pods/side=upstream 1 1e+06 ns/op",
		"BenchmarkIdleLeaseAside/side=ours 1 0 per-minute",
		"",
	}, "\n")
	if err != nil || lines != want {
		t.Errorf("%v\ngot\n%s\nwant\n%s", err, lines, want)
	}
}

func TestRowsThatWereSavedPrintTheSame(t *testing.T) {
	path := t.TempDir() + "/rows"
	rows := []Row{
		{Name: "a", Ours: 1, Upstream: 1000, In: Bytes, Target: RatioAtMost(2)},
		{Name: "b", Ours: 3, In: PerSecond},
	}
	if err := Save(path, rows); err != nil {
		t.Fatal(err)
	}
	loaded, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if loaded[i].cells() != rows[i].cells() {
			t.Errorf("got %v, want %v", loaded[i].cells(), rows[i].cells())
		}
	}
}
