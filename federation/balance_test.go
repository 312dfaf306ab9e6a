package federation_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fleetquota/fleetquota/federation"
)

func TestBalancedStep(t *testing.T) {
	cases := map[string]struct {
		division federation.Division
		want     federation.Targets
	}{
		"in the beginning headroom is divided by weight": {
			division(12, claim("a"), claim("b", weight(2)), claim("c", using(3))),
			federation.Targets{"a": 2, "b": 5, "c": 5}, // 2.25, 4.5 and 2.25 free
		},
		"while nobody is low nothing moves": {
			division(20, claim("a", using(7), granted(10)), claim("b", granted(10))),
			federation.Targets{"a": 10, "b": 10},
		},
		"who is at its limit is levelled with those who have more": {
			division(30, claim("a", using(10), granted(10)), claim("b", granted(10)), claim("c", using(8), granted(10))),
			federation.Targets{"a": 15, "b": 5, "c": 10},
		},
		"who is low is levelled too": {
			division(200, claim("a", using(91), granted(100)), claim("b", granted(100))),
			federation.Targets{"a": 146, "b": 54},
		},
		"the largest recent charge comes first": {
			division(20, claim("a", using(10), granted(10), room(4)), claim("b", using(2), granted(10), room(6))),
			federation.Targets{"a": 14, "b": 6}, // 8 are free: not enough for both
		},
		"headroom for the largest recent charge is kept": {
			division(20, claim("a", using(10), granted(10)), claim("b", using(2), granted(10), room(6))),
			federation.Targets{"a": 12, "b": 8},
		},
		"a member that joins gets its part": {
			division(20, claim("a", using(4), granted(20)), claim("new")),
			federation.Targets{"a": 12, "new": 8},
		},
		"what a member leaves behind goes to the least headroom": {
			division(20, claim("a", using(5), granted(7)), claim("b", granted(7))),
			federation.Targets{"a": 13, "b": 7},
		},
		"a higher limit is given out": {
			division(20, claim("a", using(5), granted(8)), claim("b", using(2), granted(8))),
			federation.Targets{"a": 12, "b": 8},
		},
		"a lower limit takes from the most headroom": {
			division(16, claim("a", using(9), granted(10)), claim("b", using(2), granted(10))),
			federation.Targets{"a": 10, "b": 6},
		},
		"a limit below use takes from those who use most": {
			division(8, claim("a", using(9), granted(10)), claim("b", using(2), granted(10))),
			federation.Targets{"a": 6, "b": 2},
		},
		"a min that rises is followed": {
			division(20, claim("a", granted(10)), claim("b", granted(10), atLeast(15))),
			federation.Targets{"a": 5, "b": 15},
		},
		"a max that falls is followed": {
			division(20, claim("a", granted(10)), claim("b", granted(10), atMost(5))),
			federation.Targets{"a": 15, "b": 5},
		},
		"whose weight becomes 0 keeps what it uses": {
			division(20, claim("a", granted(10)), claim("b", granted(10), using(6), weight(0))),
			federation.Targets{"a": 14, "b": 6},
		},
		"a min is not given away": {
			division(20, claim("a", using(10), granted(10)), claim("b", granted(10), atLeast(9))),
			federation.Targets{"a": 11, "b": 9},
		},
		"what a fixed member holds is not given away": {
			division(20, claim("a", using(10), granted(10)), claim("b", fixed(10))),
			federation.Targets{"a": 10, "b": 10},
		},
		"of whom nothing is known keeps what it has, and needs nothing": {
			division(20, claim("a", using(10), granted(10)), claim("b", granted(10), unknown)),
			federation.Targets{"a": 10, "b": 10},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			targets, _ := c.division.Balanced(settled(c.division), noon)
			if diff := cmp.Diff(c.want, targets); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// settled are memories of targets that have not changed for long.
func settled(d federation.Division) map[string]federation.Memory {
	memories := map[string]federation.Memory{}
	for _, c := range d.Claims {
		memories[c.Cluster] = federation.Memory{Target: c.Target}
	}
	return memories
}

func TestWhoHasJustGainedGivesLast(t *testing.T) {
	d := division(300, claim("a", using(91), granted(100)), claim("b", granted(100)), claim("c", granted(100)))
	memories := settled(d)
	memories["b"] = federation.Memory{Target: 100, Gained: noon.Add(-time.Second)}

	targets, _ := d.Balanced(memories, noon)
	if want := (federation.Targets{"a": 146, "b": 100, "c": 54}); cmp.Diff(want, targets) != "" {
		t.Errorf("a is low: %v", targets)
	}
	d = division(300, claim("a", using(100), granted(100)), claim("b", granted(100)), claim("c", using(100), granted(100)))
	targets, _ = d.Balanced(memories, noon)
	if want := (federation.Targets{"a": 134, "b": 33, "c": 133}); cmp.Diff(want, targets) != "" {
		t.Errorf("a and c are at their limits: %v", targets)
	}
}

func TestTooFewObjectsForAllTakeTurns(t *testing.T) {
	d := division(2, claim("a"), claim("b"), claim("c"), claim("d"), claim("e"))
	var memories map[string]federation.Memory
	served := map[string]int{}
	moves := 0
	var before federation.Targets
	for second := range 300 {
		var targets federation.Targets
		targets, memories = d.Balanced(memories, noon.Add(time.Duration(second)*time.Second))
		for name, target := range targets {
			served[name] += int(target)
			if before != nil && before[name] != target {
				moves++
			}
		}
		d, before = told(d, targets), targets
	}
	for _, c := range d.Claims {
		if got := served[c.Cluster]; got < 60 {
			t.Errorf("%s had an object for %d seconds", c.Cluster, got)
		}
	}
	if moves > 4*5 {
		t.Errorf("%d moves in 5 minutes", moves)
	}
}

// arena is a simulation of members with load under a balanced limit: each second
// use goes to what is wanted, as far as the target allows, and then the balance is
// stepped.
type arena struct {
	division federation.Division
	memories map[string]federation.Memory
	second   int
	denied   map[string]bool // in this second
	moves    int             // changes of targets
}

func newArena(limit int64, members int, options ...claimOption) *arena {
	w := &arena{division: division(limit)}
	for i := range members {
		w.division.Claims = append(w.division.Claims, claim(fmt.Sprintf("m%02d", i)))
		if i < len(options) {
			options[i](&w.division.Claims[i])
		}
	}
	w.step(func(int) int64 { return 0 })
	w.moves = 0
	return w
}

func (w *arena) step(wanted func(member int) int64) {
	w.denied = map[string]bool{}
	for i := range w.division.Claims {
		c := &w.division.Claims[i]
		want := wanted(i)
		c.Used = min(want, max(c.Target, c.Used))
		w.denied[c.Cluster] = c.Used < want
	}
	targets, memories := w.division.Balanced(w.memories, noon.Add(time.Duration(w.second)*time.Second))
	for _, c := range w.division.Claims {
		if targets[c.Cluster] != c.Target {
			w.moves++
		}
	}
	w.division, w.memories, w.second = told(w.division, targets), memories, w.second+1
}

func (w *arena) run(seconds int, wanted func(member int) int64) {
	for range seconds {
		w.step(wanted)
	}
}

func (w *arena) perMinute(seconds int) float64 { return float64(w.moves) / (float64(seconds) / 60) }

func (w *arena) used(member int) int64 { return w.division.Claims[member].Used }

func noise(r *rand.Rand, around int64, share float64) int64 {
	return around + int64(float64(around)*share*(2*r.Float64()-1))
}

func TestSteadyAndNoisyLoadFarFromTheLimitMovesNothing(t *testing.T) {
	for name, share := range map[string]float64{"steady": 0, "noisy": 0.1} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 1))
			w := newArena(1000, 5)
			wanted := func(member int) int64 { return noise(r, []int64{10, 50, 100, 150, 250}[member], share) }
			w.run(30, wanted)
			settling := w.moves
			w.moves = 0
			w.run(3600, wanted)
			t.Logf("%d moves to settle, then %.2f moves per minute", settling, w.perMinute(3600))
			if w.moves > 0 {
				t.Errorf("%d moves", w.moves)
			}
		})
	}
}

func TestDemandThatMovesIsFollowed(t *testing.T) {
	w := newArena(1000, 5)
	var slowest int
	for round := range 20 {
		busy := round % 5
		waited := 0
		for range 120 {
			before := w.division.Claims[busy].Target
			w.step(func(member int) int64 {
				if member == busy {
					return 600
				}
				return 20
			})
			if waited++; w.division.Claims[busy].Target > before || w.used(busy) == 600 {
				waited = 0
			}
			if waited >= 2 && w.used(busy) < 600 {
				t.Fatalf("member %d uses %d of the 600 that it wants, and did not gain for %d steps", busy, w.used(busy), waited)
			}
			if w.used(busy) < 600 {
				slowest = max(slowest, w.second%120)
			}
		}
		if w.used(busy) < 600 {
			t.Errorf("member %d has come to %d in two minutes", busy, w.used(busy))
		}
	}
	t.Logf("all there after at most %d seconds, %.1f moves per minute", slowest, w.perMinute(w.second))
}

func TestNobodyStarvesInBursts(t *testing.T) {
	const members, limit = 10, 200
	r := rand.New(rand.NewPCG(2, 2))
	w := newArena(limit, members)
	want := make([]int64, members)
	for range 3600 {
		for i := range want {
			if r.IntN(20) == 0 {
				want[i] = r.Int64N(60)
			}
		}
		before := w.division
		w.step(func(member int) int64 { return want[member] })
		free := int64(limit)
		for _, c := range w.division.Claims {
			free -= c.Used
		}
		for i, c := range w.division.Claims {
			if w.denied[c.Cluster] && free >= members && c.Target <= before.Claims[i].Target {
				t.Fatalf("%s is denied at %d, and does not gain though %d are free", c.Cluster, c.Used, free)
			}
		}
	}
	t.Logf("%.1f moves per minute of %d members that burst", w.perMinute(3600), members)
}

func TestAllHungryMembersGetTheSameByWeight(t *testing.T) {
	w := newArena(1000, 4, weight(1), weight(2), weight(3), weight(4))
	w.run(60, func(int) int64 { return 1000 })
	for i, c := range w.division.Claims {
		if want := int64(100 * (i + 1)); c.Used != want {
			t.Errorf("weight %d uses %d, want %d", i+1, c.Used, want)
		}
	}
	w.moves = 0
	w.run(600, func(int) int64 { return 1000 })
	t.Logf("%.1f moves per minute when all are at their limits", w.perMinute(600))
	if w.moves > 0 {
		t.Errorf("%d moves with nothing to move", w.moves)
	}
}

// TestScarceHeadroomIsLevelled has a member that wants all, and others whose use
// goes up and down below: what they leave is shared by headroom.
func TestScarceHeadroomIsLevelled(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	w := newArena(1000, 5)
	wanted := func(member int) int64 {
		if member == 0 {
			return 1000
		}
		return noise(r, 200, 0.1)
	}
	w.run(60, wanted)
	w.moves = 0
	w.run(600, wanted)
	t.Logf("%.1f moves per minute with one hungry member and noise", w.perMinute(600))
	for i, c := range w.division.Claims[1:] {
		if c.Used < 100 {
			t.Errorf("member %d of steady demand for 200 has come down to %d", i+1, c.Used)
		}
	}
}

func benchmarkBalanced(b *testing.B, used func(member int, target int64) int64) {
	b.Helper()
	const members = 500
	d := division(100_000)
	for i := range members {
		d.Claims = append(d.Claims, claim(fmt.Sprintf("member-%03d", i), weight(int32(i%7+1)), room(2)))
	}
	targets, memories := d.Balanced(nil, noon)
	d = told(d, targets)
	for i := range d.Claims {
		d.Claims[i].Used = used(i, d.Claims[i].Target)
	}
	b.ReportAllocs()
	for b.Loop() {
		d.Balanced(memories, noon)
	}
}

func BenchmarkBalancedAtRest500(b *testing.B) {
	benchmarkBalanced(b, func(_ int, target int64) int64 { return target / 2 })
}

func BenchmarkBalancedMoving500(b *testing.B) {
	benchmarkBalanced(b, func(member int, target int64) int64 {
		if member%2 == 0 {
			return target
		}
		return target / 2
	})
}
