package model

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// Result is what a search has found.
type Result struct {
	States   int              // different ones, up to names
	Steps    int64            // between them
	Depth    int              // of the deepest level that was looked at
	Complete bool             // every state that can be reached was looked at
	Both     int              // states in which two leaders are in the middle of a pass
	Counts   map[string]int64 // steps, by what they are
	Broken   []string         // the shortest way to break the promise, in words
}

// String is for the log of a test.
func (r Result) String() string {
	return fmt.Sprintf("%d states, %d steps between them, depth %d, complete: %t; two leaders at work in %d of them; %v",
		r.States, r.Steps, r.Depth, r.Complete, r.Both, r.Counts)
}

// Search looks at every state that can be reached, nearest first, until the
// promise is broken, ctx ends, or limit states are known.
func Search(ctx context.Context, o Options, limit int) Result {
	x := newExplorer(o, o.first(), o.broken)
	bad := x.run(ctx, limit)
	if bad >= 0 {
		lines, last := o.transcript(o.first(), x.table.way(bad))
		x.result.Broken = append(lines, "now "+o.sum(last))
	}
	return x.result
}

// first is the state in which the world begins.
func (o *Options) first() state {
	s := state{left: budget{uint8(o.Deletions), uint8(o.Edits), uint8(o.Losses), uint8(o.Restores)}}
	for k := range o.Keys {
		s.user[k] = uint8(o.Limit)
	}
	for i := range o.Members {
		if o.Existing {
			s.quotas[i] = quota{present: true, synced: true, hard: s.user, limit: s.user}
		}
		if o.Ready {
			s.record.made, s.record.hard, s.record.revision = true, s.user, 1
			s.record.rows[i] = row{state: rowFull, revision: 1, own: true}
			s.quotas[i] = quota{present: true, synced: true, grant: 1}
			s.known[i], s.covered[i] = true, true
		}
	}
	return s
}

// batch is the number of states that are expanded at a time.
const batch = 1 << 15

// explorer expands states with all processors, until it has found what it looks for.
type explorer struct {
	Options

	goal   func(*state) bool
	table  table
	result Result
}

func newExplorer(o Options, from state, goal func(*state) bool) *explorer {
	x := &explorer{Options: o, goal: goal, result: Result{Counts: map[string]int64{}}}
	x.table.add(o.canonical(from), 0)
	return x
}

// found is a state that was reached.
type found struct {
	key    key
	parent uint32
	goal   bool
}

// work is what one goroutine has found in its part of a batch.
type work struct {
	found []found
	steps int64
	taken [stepKinds]int64
	both  int
}

// run returns the index of the first state that is looked for, or -1.
func (x *explorer) run(ctx context.Context, limit int) int {
	for from := 0; from < len(x.table.keys); x.result.Depth++ {
		level := len(x.table.keys)
		for ; from < level; from = min(from+batch, level) {
			if ctx.Err() != nil || x.result.States >= limit {
				return -1
			}
			at := x.expand(from, min(from+batch, level))
			x.result.States = len(x.table.keys)
			if at >= 0 {
				return at
			}
		}
	}
	x.result.Complete = true
	return -1
}

// expand looks at what follows the states from up to to, and adds what is new.
// It returns the first state that is looked for, or -1.
func (x *explorer) expand(from, to int) int {
	parts := make([]work, runtime.GOMAXPROCS(0))
	var all sync.WaitGroup
	share := (to - from + len(parts) - 1) / len(parts)
	for p := range parts {
		all.Go(func() {
			x.look(&parts[p], min(from+p*share, to), min(from+(p+1)*share, to))
		})
	}
	all.Wait()
	for _, part := range parts {
		x.result.Steps += part.steps
		x.result.Both += part.both
		for kind, times := range part.taken {
			if times > 0 {
				x.result.Counts[stepNames[kind]] += times
			}
		}
	}
	for _, part := range parts {
		for _, f := range part.found {
			if x.table.add(f.key, f.parent) && f.goal {
				return len(x.table.keys) - 1
			}
		}
	}
	return -1
}

// look collects what follows the states from up to to. The table is only read.
func (x *explorer) look(w *work, from, to int) {
	var list []next
	for at := from; at < to; at++ {
		s := x.table.keys[at].state(&x.Options)
		if s.leaders[0].op != opIdle && s.leaders[1].op != opIdle {
			w.both++
		}
		list = x.after(s, list)
		for n := range list {
			w.steps++
			w.taken[list[n].step.kind]++
			if k := x.canonical(list[n].state); !x.table.has(k) {
				w.found = append(w.found, found{k, uint32(at), x.goal(&list[n].state)})
			}
		}
	}
}

// table is the set of states that are known, by their exact keys, with the
// state that each was reached from first.
type table struct {
	keys    []key
	parents []uint32
	slots   []uint32 // index of a key plus one, found by its hash; 0: free
}

func (t *table) has(k key) bool { return len(t.slots) > 0 && t.slots[t.slot(k)] != 0 }

// add says whether k was new.
func (t *table) add(k key, parent uint32) bool {
	if len(t.keys)*2 >= len(t.slots) {
		t.grow()
	}
	slot := t.slot(k)
	if t.slots[slot] != 0 {
		return false
	}
	t.keys = append(t.keys, k)
	t.parents = append(t.parents, parent)
	t.slots[slot] = uint32(len(t.keys))
	return true
}

// slot is where k is, or where it belongs.
func (t *table) slot(k key) int {
	mask := len(t.slots) - 1
	for slot := int(k.hash()) & mask; ; slot = (slot + 1) & mask {
		if at := t.slots[slot]; at == 0 || t.keys[at-1] == k {
			return slot
		}
	}
}

func (t *table) grow() {
	t.slots = make([]uint32, max(1<<16, 2*len(t.slots)))
	for at, k := range t.keys {
		t.slots[t.slot(k)] = uint32(at + 1)
	}
}

func (k key) hash() uint64 {
	var h uint64
	for _, word := range k {
		h = (h ^ word) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

// way is how state at was reached first.
func (t *table) way(at int) []key {
	var back []key
	for ; at > 0; at = int(t.parents[at]) {
		back = append(back, t.keys[at])
	}
	back = append(back, t.keys[0])
	slices.Reverse(back)
	return back
}
