package model_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fleetquota/fleetquota/federation/model"
)

// most is the number of states at which a search gives up; one takes about 55 bytes.
const most = 10_000_000

// world has two members and two leaders, which is enough for every mistake.
func world(change func(*model.Options)) model.Options {
	o := model.Options{Members: 2, Keys: 1, Leaders: 2, Writes: 2, Limit: 1, Ready: true}
	if change != nil {
		change(&o)
	}
	return o
}

func search(t *testing.T, o model.Options) model.Result {
	t.Helper()
	start := time.Now()
	r := model.Search(t.Context(), o, most)
	t.Logf("%v\n%v\n%.1f s", &o, r, time.Since(start).Seconds())
	return r
}

// Every search is complete: there is no state that it has not seen.
func TestThePromiseHolds(t *testing.T) {
	for name, change := range map[string]func(*model.Options){
		"from nothing, while the limit changes":          func(o *model.Options) { o.Ready, o.UserChanges, o.Limit = false, true, 2 },
		"with three writes on their way":                 func(o *model.Options) { o.Ready, o.Writes = false, 3 },
		"when members use much before they join":         func(o *model.Options) { o.Ready, o.Busy, o.Limit = false, true, 2 },
		"when quotas are there before":                   func(o *model.Options) { o.Ready, o.Busy, o.Existing = false, true, true },
		"when the record is lost again and again":        func(o *model.Options) { o.Losses, o.Limit, o.UserChanges = model.Forever, 2, true },
		"when a quota is deleted":                        func(o *model.Options) { o.Deletions, o.UserChanges = 1, true },
		"when a quota is edited again and again":         func(o *model.Options) { o.Edits = model.Forever },
		"when a quota is deleted and the record is lost": func(o *model.Options) { o.Losses, o.Deletions = 1, 1 },
		"when an older record is put back":               func(o *model.Options) { o.Restores, o.Writes = 1, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			r := search(t, world(change))
			if r.Broken != nil {
				t.Errorf("it is broken:\n%s", strings.Join(r.Broken, "\n"))
			}
			if !r.Complete {
				t.Error("the search is not complete")
			}
		})
	}
}

// A mistake is found, by a shortest way of so many steps.
var mistakes = map[string]struct {
	change func(*model.Options)
	steps  int
}{
	"patches do not test the annotation":                 {func(o *model.Options) { o.Variant.NoTest = true }, 9},
	"the member is read after the record was written":    {func(o *model.Options) { o.Variant.ReadAfterIntent = true }, 9},
	"a credit looks at spec.hard alone":                  {func(o *model.Options) { o.Variant.CreditOnSpec = true }, 11},
	"a credit does not look at used":                     {func(o *model.Options) { o.Variant.CreditWithoutUsed = true }, 13},
	"a credit does not look at the annotation":           {func(o *model.Options) { o.Variant.CreditWithoutAnnotation = true }, 9},
	"a credit reads the record again and trusts it":      {func(o *model.Options) { o.Variant.CreditReread = true }, 11},
	"resourceVersion alone, and lowering may be no-op":   {func(o *model.Options) { o.Variant.ResourceVersionOnly = true }, 9},
	"adoption only reads":                                {func(o *model.Options) { o.Variant.AdoptByReading, o.Losses = true, 1 }, 10},
	"an annotation comes twice":                          {func(o *model.Options) { o.Variant.ReuseRevisions, o.Losses, o.Revisions = true, 1, 4 }, 14},
	"a raise replaces what is granted":                   {func(o *model.Options) { o.Variant.RaiseReplaces, o.Limit = true, 2 }, 9},
	"raises go on before all are adopted again":          {func(o *model.Options) { o.Variant.RaiseUnadopted, o.Losses = true, 1 }, 11},
	"a copy of a quota passes for the one that we wrote": {func(o *model.Options) { o.Variant.UnknownUID, o.Deletions = true, 1 }, 15},
}

func TestEveryMistakeIsFound(t *testing.T) {
	for name, mistake := range mistakes {
		t.Run(name, func(t *testing.T) {
			r := search(t, world(mistake.change))
			if len(r.Broken)-1 != mistake.steps {
				t.Errorf("broken by %d steps, want %d", len(r.Broken)-1, mistake.steps)
			}
			t.Logf("it is broken so:\n%s", strings.Join(r.Broken, "\n"))
		})
	}
}

func TestPatchesNeedNoUIDWhenNoAnnotationComesTwice(t *testing.T) {
	r := search(t, world(func(o *model.Options) { o.Variant.NoUID, o.Deletions, o.Writes = true, 1, 1 }))
	if r.Broken != nil || !r.Complete {
		t.Errorf("complete: %t, broken:\n%s", r.Complete, strings.Join(r.Broken, "\n"))
	}
}

// The fast form of the search leaves steps out. The slow form takes them all,
// and finds the same.
func TestStepByStepTheAnswerIsTheSame(t *testing.T) {
	t.Run("the protocol holds", func(t *testing.T) {
		r := search(t, world(func(o *model.Options) { o.Fine, o.Writes, o.Losses = true, 1, 1 }))
		if r.Broken != nil || !r.Complete {
			t.Errorf("complete: %t, broken:\n%s", r.Complete, strings.Join(r.Broken, "\n"))
		}
		for _, what := range []string{"refused", "conflict", "crash", "sent", "write lost"} {
			if r.Counts[what] == 0 {
				t.Errorf("never %s", what)
			}
		}
	})
	for name, mistake := range mistakes {
		t.Run(name, func(t *testing.T) {
			r := search(t, world(func(o *model.Options) {
				mistake.change(o)
				o.Fine = true
				if o.Deletions > 0 {
					o.Writes = 1
				}
			}))
			if r.Broken == nil {
				t.Error("it is not found")
			}
			t.Logf("it is broken by %d steps:\n%s", len(r.Broken)-1, strings.Join(r.Broken, "\n"))
		})
	}
}

// TestLongSearch is `make model`.
func TestLongSearch(t *testing.T) {
	if os.Getenv("MODEL_LONG") == "" {
		t.Skip("takes long: make model")
	}
	for name, world := range map[string]struct {
		model.Options

		time time.Duration
	}{
		"three members with a row each, two keys": {model.Options{Members: 3, Keys: 2, Leaders: 2, Writes: 2, Limit: 1, Ready: true}, time.Minute},
		"three members from nothing, two keys":    {model.Options{Members: 3, Keys: 2, Leaders: 2, Writes: 2, Limit: 1}, 6 * time.Minute},
		"deletions and losses without end": {world(func(o *model.Options) {
			o.Deletions, o.Losses = model.Forever, model.Forever
		}), 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), world.time)
			defer cancel()
			o := world.Options
			start := time.Now()
			r := model.Search(ctx, o, 4*most)
			t.Logf("%v\n%v\n%.1f s", &o, r, time.Since(start).Seconds())
			if r.Broken != nil {
				t.Errorf("it is broken:\n%s", strings.Join(r.Broken, "\n"))
			}
			if !r.Complete {
				t.Logf("NOT COMPLETE: all states within %d steps were looked at, and some of those further away", r.Depth)
			}
		})
	}
}
