package curve_test

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/fleetquota/fleetquota/hack/e2e/bench/curve"
)

func TestAFileReadsBackAsItWasWritten(t *testing.T) {
	table := curve.Table{Machine: "2 cores, a CPU", Size: "pods", Figures: []string{"ours, ns", "upstream, ns"}}
	table.Add(100, 4123.456, 1e6)
	table.Add(100_000, 0.25)
	path := filepath.Join(t.TempDir(), "change.csv")
	if err := table.Write(path); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if want := "# 2 cores, a CPU\npods,\"ours, ns\",\"upstream, ns\"\n100,4123,1000000\n100000,0.25,\n"; err != nil || string(text) != want {
		t.Errorf("got  %q, %v\nwant %q", text, err, want)
	}
	got, err := curve.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	if got.Machine != "2 cores, a CPU" || len(got.Rows) != 2 || got.Rows[0].Values[0] != 4123 || got.Rows[1].Size != 100_000 || !math.IsNaN(got.Rows[1].Values[1]) {
		t.Errorf("got %+v", got)
	}
}

func TestAFileThatIsNoTableIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"empty":             "",
		"a word as size":    "pods,ours\nmany,1\n",
		"a word as figure":  "pods,ours\n1,many\n",
		"a row that is cut": "pods,ours\n1\n",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "t.csv")
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			if table, err := curve.Read(path); err == nil {
				t.Errorf("got %+v, want an error", table)
			}
		})
	}
}
