package federation_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A mutant is the code with one mistake in it.
type mutant struct {
	file     string
	old, new string
}

const (
	inGrants = "grants.go"
	inWrites = "grantwrites.go"
	inPlan   = "plan.go"
	inMember = "grants_sim_member_test.go" // where what is a mistake of controller is
	inWorld  = "grants_sim_test.go"
)

// mutants are the mistakes that TestGrantsUnderFaults must find.
var mutants = map[string]mutant{
	"a patch does not test the annotation": {inMember, "q.mark == l.Test && ", ""},
	"a deletion does not test the version": {inMember, "q.version == l.read.version", "true"},
	"the record is written without a comparison": {
		inWorld,
		"w.record.version != c.record.version",
		"false",
	},
	"the annotation does not tell one record from another": {inGrants, `string(r.ID) + "." +`, `"r." +`},
	"a credit does not ask for the last revision": {
		inGrants,
		"revision == row.Revision &&",
		"revision <= row.Revision &&",
	},
	"a credit looks at spec.hard alone": {
		inGrants,
		"compare(most.limit, target) > 0",
		"false",
	},
	"a credit leaves nothing for what is used": {
		inGrants,
		"larger(target, most.used), target",
		"target, target",
	},
	"a credit goes to another quota than the row's": {
		inGrants,
		`&& (row.QuotaUID == seen.UID || row.QuotaUID == "")`,
		"",
	},
	"what has no status is believed": {
		inGrants,
		"set && limited && counted",
		"set || limited || counted",
	},
	"a row is whole before all of it is recovered": {
		inGrants,
		"row.State == v1alpha1.Recovering && !Unbounded(*row, p.o.Limit)",
		"row.State == v1alpha1.Recovering",
	},
	"what is repaired need not fit under the limit": {
		inGrants,
		"compare(sum, larger(p.Spec.Hard[key], p.o.Limit[key])) > 0",
		"false",
	},
	"raises go on while a record is recovered": {
		inGrants,
		"row.State == v1alpha1.Recovering && !bounded || ",
		"",
	},
	"raises go on while a quota is repaired": {
		inGrants,
		" || row.State == v1alpha1.Repairing && bounded",
		"",
	},
	"members rise before others have shrunk": {
		inGrants,
		"sum.Add(p.Spec.Members[i].Granted[key])",
		"sum.Add(p.Spec.Members[i].Target[key])",
	},
	"the limit on record falls at once": {
		inGrants,
		"larger(limit, p.granted(key, nil))",
		"limit",
	},
	"the row of a member that is released goes at once": {
		inGrants,
		"return p.o.Seen[row.Cluster].NoNamespace ||",
		"return row.State == v1alpha1.Releasing || p.o.Seen[row.Cluster].NoNamespace ||",
	},
	"a row goes with its quota": {
		inGrants,
		"p.o.Seen[row.Cluster].NoNamespace ||",
		`p.o.Seen[row.Cluster].UID == "" ||`,
	},
	"what others have changed is believed at once": {
		inWrites,
		"row.State = v1alpha1.Repairing\n",
		"row.State = \"\"\n",
	},
	"what others have edited is taken as it is": {inWrites, "|| !p.edited(row, seen)", "|| true"},
	"a quota is made with all that there is room for": {
		inWrites,
		"resource.Quantity{Format: resource.DecimalSI}",
		"p.room(key, row)",
	},
	"a fence raises": {inWrites, "smaller(seen.Hard[key], most)", "most"},
	"what exists is believed as it is read": {
		inWrites,
		"\t\tassign(&row.Target, key, smaller(seen.Hard[key], most))\n",
		"\t\tassign(&row.Target, key, smaller(seen.Hard[key], most))\n\t\tassign(&row.Granted, key, row.Target[key])\n",
	},
	"a revision comes twice": {
		inWrites,
		"max(p.Spec.Revision, borne) + 1",
		"max(1, borne)",
	},
	"revisions do not count on from the annotation": {
		inWrites,
		"max(p.Spec.Revision, borne) + 1",
		"max(p.Spec.Revision, 0*borne) + 1",
	},
	"a raise forgets the larger limit of before": {
		inWrites,
		"larger(row.Granted[key], target)",
		"target",
	},
	"a lowered share is free at once": {
		inWrites,
		"\tif compare(want, row.Target[key]) < 0 {\n",
		"\tif compare(want, row.Target[key]) < 0 {\n\t\tassign(&row.Granted, key, want)\n",
	},
	"a raise does not look at what is left": {
		inWrites,
		"smaller(want, larger(row.Granted[key], p.room(key, row)))",
		"want",
	},
	"the quotas of others are taken over": {
		inWrites,
		`return seen.Mark == "" &&`,
		`return false && seen.Mark == "" &&`,
	},
	"nobody asks those that are to be put right": {inPlan, "\t\tshares[party.Cluster] = nil\n", "\t\t_ = party\n"},
}

// TestGrantMutants shows that the stories of TestGrantsUnderFaults find what they
// are meant to find: each mistake, by itself, is noticed by them.
func TestGrantMutants(t *testing.T) {
	t.Parallel()
	if testing.Short() || raceEnabled() {
		t.Skip("builds the tests of this package once for each mutant")
	}
	for name, m := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			told := m.play(ctx, t)
			first, _, _ := strings.Cut(told[strings.Index(told, "GRANT_SEED=")+len("GRANT_SEED="):], "\n")
			t.Logf("%s: seed %.160s", name, first)
		})
	}
}

// play tells the stories of a mutant until one fails, and returns what that says.
func (m mutant) play(ctx context.Context, t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(m.file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		t.Fatalf("%s has %q %d times: the mutant is out of date", m.file, m.old, n)
	}
	dir := t.TempDir()
	mutated, overlay, binary := filepath.Join(dir, m.file), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "stories")
	original, err := filepath.Abs(m.file)
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Glob("grants_sim*_test.go") // no other test has to be built
	if err != nil {
		t.Fatal(err)
	}
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string]string{mutated: strings.Replace(string(source), m.old, m.new, 1), overlay: string(replace)} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"test", "-c", "-p=1", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", binary}
	build := exec.CommandContext(ctx, "go", append(args, sources...)...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("the mutant does not build: %v\n%s", err, out)
	}
	stories := exec.CommandContext(ctx, binary, "-test.run=^TestGrantsUnderFaults$")
	stories.Env = append(os.Environ(), "GOMAXPROCS=1") // as many mutants as there are processors are tried at one time
	told, err := stories.CombinedOutput()
	if err == nil || !strings.Contains(string(told), "GRANT_SEED=") {
		t.Fatalf("not found: %v\n%s", err, told)
	}
	return string(told)
}
