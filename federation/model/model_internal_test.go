package model

import (
	"strings"
	"testing"
)

func two(change func(*Options)) Options {
	o := Options{Members: 2, Keys: 1, Leaders: 2, Writes: 2, Limit: 1, Ready: true}
	change(&o)
	return o
}

// find is the shortest way from a state to one that fits.
func find(t *testing.T, o Options, from state, fits func(*state) bool) ([]string, state) {
	t.Helper()
	x := newExplorer(o, from, fits)
	at := x.run(t.Context(), 10_000_000)
	if at < 0 {
		t.Fatalf("there is no such state: %v", x.result)
	}
	return o.transcript(from, x.table.way(at))
}

// A model in which nothing can happen is safe as well. This one lives: from
// wherever faults have led to, one leader brings every member to its share.
func TestFromEverywhereTheSharesAreReached(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"two leaders, late and lost writes": func(o *Options) { o.Ready = false },
		"quotas of others":                  func(o *Options) { o.Ready, o.Existing, o.Busy = false, true, true },
		"a lost record":                     func(o *Options) { o.Losses = Forever },
		"a deleted quota":                   func(o *Options) { o.Deletions, o.Writes = 1, 1 },
		"edits":                             func(o *Options) { o.Edits = Forever },
		"an older record":                   func(o *Options) { o.Restores, o.Writes = 1, 1 },
	} {
		t.Run(name, func(t *testing.T) {
			o := two(change)
			x := newExplorer(o, o.first(), func(*state) bool { return false })
			x.run(t.Context(), 1_000_000)
			rounds, apart := 0, max(1, len(x.table.keys)/1000)
			for at := 0; at < len(x.table.keys); at += apart {
				s := x.table.keys[at].state(&o)
				n := o.settle(s)
				if n < 0 {
					t.Fatalf("no way on from state %d: %+v", at, s)
				}
				rounds = max(rounds, n)
			}
			t.Logf("every %dth of %d states tried, at most %d rounds", apart, len(x.table.keys), rounds)
		})
	}
}

func TestAGrantMovesFromOneMemberToAnother(t *testing.T) {
	o := two(func(o *Options) { o.Limit, o.named = 2, true })
	holds := func(i int) func(*state) bool {
		return func(s *state) bool { return s.quotas[i].limit[0] == 2 && s.quotas[i].used[0] == 2 }
	}
	first, s := find(t, o, o.first(), holds(0))
	then, _ := find(t, o, s, holds(1))
	t.Logf("%s\n\nand then\n%s", strings.Join(first, "\n"), strings.Join(then, "\n"))
	for _, needed := range []string{"the target is in force", "credits", "an object in"} {
		if !strings.Contains(strings.Join(then, "\n"), needed) {
			t.Errorf("the grant moved without %q", needed)
		}
	}
}

// An adoption that may not lower what it finds can wait for ever.
func TestAdoptionMustBeAbleToLower(t *testing.T) {
	o := two(func(o *Options) { o.Ready, o.Existing = false, true })
	s := o.first()
	for range 10 {
		s = o.round(s, false)
	}
	if s.record.rows[0].state == rowFull && s.record.rows[1].state == rowFull {
		t.Error("both limits of 1 were adopted under a limit of 1")
	}
	if o.settle(s) < 0 {
		t.Error("lowering does not help either")
	}
}

// A revision that is one above the record's and the annotation's is not new
// when the record was lost and the quota deleted. A credit that was confirmed
// before, and looks at the revision of the row alone, then hits another intent.
func TestARevisionIsNewOnlyIfTheLifeOfTheRecordIsPartOfIt(t *testing.T) {
	o := two(func(o *Options) { o.Losses, o.Deletions, o.Revisions, o.Writes = 1, 1, 4, 1 })
	first, s := find(t, o, o.first(), func(s *state) bool {
		l := s.leaders[1]
		row, q := s.record.rows[l.member], s.quotas[l.member]
		return l.op == opCredit && l.granted[0] < row.granted[0] && row.revision == l.grant &&
			q.present && q.grant == l.grant && s.leaders[0].op == opIdle && s.left.deletions == 1
	})
	then, _ := find(t, o, s, o.broken)
	t.Logf("%s\n\nand then\n%s", strings.Join(first, "\n"), strings.Join(then, "\n"))
}

func TestAKeyHoldsTheWholeState(t *testing.T) {
	for _, change := range []func(*Options){
		func(o *Options) { o.Members, o.Keys, o.Writes, o.Deletions, o.Losses = 3, 2, 3, 1, 1 },
		func(o *Options) { o.Restores, o.Edits, o.Writes = 1, 1, 3 },
	} {
		o := two(change)
		s := o.first()
		for n := range 2000 {
			out := o.after(s, nil)
			s = out[n*n%len(out)].state
			s.rank(o.Members)
			k := o.pack(s)
			if again := k.state(&o); o.pack(again) != k || o.canonical(again) != o.canonical(s) {
				t.Fatalf("%+v became %+v", s, again)
			}
		}
	}
}

func TestNamesDoNotMatter(t *testing.T) {
	o := two(func(o *Options) { o.Members, o.Keys, o.Limit = 3, 2, 1 })
	s := o.first()
	for n := range 2000 {
		out := o.after(s, nil)
		s = out[n*n%len(out)].state
		s.rank(o.Members)
		other := s.ordered([maxMembers]int{2, 0, 1}, 3)
		other.swapKeys()
		other.leaders[0], other.leaders[1] = other.leaders[1], other.leaders[0]
		if o.canonical(other) != o.canonical(s) {
			t.Fatalf("%+v and %+v differ", s, other)
		}
	}
}
