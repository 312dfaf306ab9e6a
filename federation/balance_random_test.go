package federation_test

import (
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fleetquota/fleetquota/federation"
)

func drawMemories(t *rapid.T, d federation.Division) map[string]federation.Memory {
	ago := rapid.SampledFrom([]time.Duration{1000 * time.Hour, time.Minute, 59 * time.Second, time.Second})
	memories := map[string]federation.Memory{}
	for _, c := range d.Claims {
		if rapid.Bool().Draw(t, "remembered") {
			memories[c.Cluster] = federation.Memory{
				Target: c.Target,
				Gained: noon.Add(-ago.Draw(t, "gained")),
				Gave:   noon.Add(-ago.Draw(t, "gave")),
			}
		}
	}
	return memories
}

// told is the division after the members were told their targets, and every
// shrink was credited.
func told(d federation.Division, targets federation.Targets) federation.Division {
	next := d
	next.Claims = nil
	for _, c := range d.Claims {
		if !c.Fixed {
			c.Target = targets[c.Cluster]
			c.Granted = max(c.Target, useOf(c))
		}
		next.Claims = append(next.Claims, c)
	}
	return next
}

func TestBalancedKeepsTheLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDivision(t)
		targets, _ := d.Balanced(drawMemories(t, d), noon)
		checkBounds(t, d, targets)
		checkLimit(t, d, targets)
		checkFloors(t, d, targets, minOf, minAndUseOf)
	})
}

func TestBalancedDoesNotDependOnTheOrderOfClaims(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDivision(t)
		memories := drawMemories(t, d)
		targets, next := d.Balanced(memories, noon)
		again, nextAgain := shuffled(t, d).Balanced(memories, noon)
		if diff := gocmp.Diff(targets, again) + gocmp.Diff(next, nextAgain); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestASecondStepChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDivision(t)
		targets, memories := d.Balanced(drawMemories(t, d), noon)
		d = told(d, targets)
		again, same := d.Balanced(memories, noon)
		if diff := gocmp.Diff(targets, again) + gocmp.Diff(memories, same); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestGrowthThatWaitsForACreditIsNotDividedAnew is a step while the members that shrink were told,
// and those that grow were not yet.
func TestGrowthThatWaitsForACreditIsNotDividedAnew(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDivision(t)
		targets, memories := d.Balanced(drawMemories(t, d), noon)
		waiting := told(d, targets)
		for i, c := range d.Claims {
			if targets[c.Cluster] > c.Target {
				waiting.Claims[i] = c
			}
		}
		again, _ := waiting.Balanced(memories, noon)
		if diff := gocmp.Diff(targets, again); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestAStepAfterARestartChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDivision(t)
		targets, _ := d.Balanced(nil, noon)
		d = told(d, targets)
		again, _ := d.Balanced(nil, noon)
		if diff := gocmp.Diff(targets, again); diff != "" {
			t.Fatal(diff)
		}
	})
}

// TestNoMemberThatIsAtItsLimitIsLessWellOff is max-min fairness: after a step
// nothing could be taken for a member that is at its limit but from one that would
// then have less, by weight.
func TestNoMemberThatIsAtItsLimitIsLessWellOff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDivision(t)
		targets, _ := d.Balanced(drawMemories(t, d), noon)
		step := stepOf(d.Unit)
		for _, poor := range d.Claims {
			free := targets[poor.Cluster] - useOf(poor)
			if poor.Fixed || !poor.Known || weightOf(poor) == 0 || targets[poor.Cluster] >= maxOf(poor) || free >= max(poor.Room, step) {
				continue
			}
			for _, rich := range d.Claims {
				target := targets[rich.Cluster]
				floor := min(max(rich.Min, useOf(rich)), maxOf(rich))
				if rich.Fixed || target-step < floor {
					continue
				}
				left := target - useOf(rich) - step
				if betterOff(rich, left, poor, free+step) {
					t.Fatalf("%s has %d free, and %s %d", poor.Cluster, free, rich.Cluster, target-useOf(rich))
				}
			}
		}
	})
}

func stepOf(u federation.Unit) int64 {
	switch u {
	case countOfPods:
		return 1
	case milliCores:
		return 10
	}
	return 1 << 20
}

// betterOff says whether a, with that much left, has at least as much by weight as
// b would have, or still its largest charge where b would not have more.
func betterOff(a federation.Claim, left int64, b federation.Claim, has int64) bool {
	givesSpare, needs := left >= roomOf(a), has <= roomOf(b)
	if givesSpare == needs {
		return givesSpare
	}
	perWeight := func(c federation.Claim, n int64) float64 { return float64(n) / float64(weightOf(c)) }
	return perWeight(a, left) > perWeight(b, has)*(1+1e-9) // a little more: these are no exact fractions
}

func roomOf(c federation.Claim) int64 {
	if c.Known {
		return c.Room
	}
	return 0
}
