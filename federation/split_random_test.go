package federation_test

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/fleetquota/fleetquota/federation"
)

// The plain version of a division tries every edge of every member with exact
// fractions.

type plainParty struct {
	name           string
	weight         int64
	low, high, now *big.Rat
}

func rat(n int64) *big.Rat { return new(big.Rat).SetInt64(n) }

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// at is what a party has at a level.
func (p plainParty) at(level *big.Rat) *big.Rat {
	share := new(big.Rat).Mul(level, rat(p.weight))
	if share.Cmp(p.low) < 0 {
		return p.low
	}
	return least(share, p.high)
}

func sumAt(parties []*plainParty, level *big.Rat) *big.Rat {
	sum := rat(0)
	for _, p := range parties {
		sum.Add(sum, p.at(level))
	}
	return sum
}

// plainLevel is where the sum is the total, or above all edges.
func plainLevel(total *big.Rat, parties []*plainParty) *big.Rat {
	levels := []*big.Rat{rat(0)}
	for _, p := range parties {
		if p.weight > 0 {
			levels = append(levels, new(big.Rat).Quo(p.low, rat(p.weight)), new(big.Rat).Quo(p.high, rat(p.weight)))
		}
	}
	slices.SortFunc(levels, (*big.Rat).Cmp)
	for i, level := range levels[1:] {
		before, there := sumAt(parties, levels[i]), sumAt(parties, level)
		if there.Cmp(total) < 0 || before.Cmp(there) == 0 {
			continue
		}
		part := new(big.Rat).Quo(new(big.Rat).Sub(total, before), new(big.Rat).Sub(there, before))
		way := new(big.Rat).Sub(level, levels[i])
		return way.Add(levels[i], way.Mul(way, part))
	}
	return levels[len(levels)-1]
}

func plainRaise(total *big.Rat, parties []*plainParty) {
	level := plainLevel(total, parties)
	parts := map[string]*big.Rat{}
	left := rat(0)
	for _, p := range parties {
		exact := p.at(level)
		whole := new(big.Rat).SetInt(new(big.Int).Quo(exact.Num(), exact.Denom()))
		parts[p.name] = new(big.Rat).Sub(exact, whole)
		left.Add(left, parts[p.name])
		p.now = whole
	}
	byPart := slices.Clone(parties)
	slices.SortFunc(byPart, func(a, b *plainParty) int {
		return cmp.Or(parts[b.name].Cmp(parts[a.name]), cmp.Compare(a.name, b.name))
	})
	for _, p := range byPart[:left.Num().Int64()] {
		p.now.Add(p.now, rat(1))
	}
}

// plainWeighted follows the laws one by one.
func plainWeighted(d federation.Division) federation.Targets {
	targets := federation.Targets{}
	left := rat(d.Limit)
	var parties []*plainParty
	for _, c := range d.Claims {
		targets[c.Cluster] = c.Target
		if c.Fixed {
			left.Sub(left, rat(c.Granted))
			continue
		}
		parties = append(parties, &plainParty{name: c.Cluster, weight: weightOf(c), now: rat(0)})
	}
	if left.Sign() < 0 {
		left = rat(0)
	}
	for {
		plainShares(d, left, parties)
		over := map[string]bool{}
		for _, p := range parties {
			targets[p.name] = p.now.Num().Int64()
			if use := rat(useOf(claimOf(d, p.name))); use.Cmp(p.now) > 0 {
				over[p.name] = true
				left = most(rat(0), new(big.Rat).Sub(left, use))
			}
			p.now = rat(0)
		}
		parties = slices.DeleteFunc(parties, func(p *plainParty) bool { return over[p.name] })
		if len(over) == 0 {
			return targets
		}
	}
}

// plainShares divides by weight, whatever is used.
func plainShares(d federation.Division, left *big.Rat, parties []*plainParty) {
	for _, last := range []bool{false, true} {
		for _, p := range parties {
			c := claimOf(d, p.name)
			p.low, p.high = p.now, rat(math.MaxInt64)
			if c.Max != nil {
				p.high = rat(*c.Max)
			}
			if !last || p.weight == 0 {
				p.high = least(p.high, rat(c.Min))
			}
			if p.high.Cmp(p.now) < 0 {
				p.high = p.now
			}
		}
		plainRaise(left, parties)
		// What is left is for those of weight 0.
		for _, p := range parties {
			if p.weight > 0 {
				p.low, p.high = p.now, p.now
			} else {
				p.weight = 1
			}
		}
		plainRaise(left, parties)
		for _, p := range parties {
			p.weight = weightOf(claimOf(d, p.name))
		}
	}
}

func most(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

func claimOf(d federation.Division, name string) federation.Claim {
	return d.Claims[slices.IndexFunc(d.Claims, func(c federation.Claim) bool { return c.Cluster == name })]
}

func weightOf(c federation.Claim) int64 {
	if c.Weight == nil {
		return 1
	}
	return int64(*c.Weight)
}

func useOf(c federation.Claim) int64 {
	if c.Known {
		return c.Used
	}
	return c.Granted
}

func maxOf(c federation.Claim) int64 {
	if c.Max == nil {
		return math.MaxInt64
	}
	return *c.Max
}

// drawDivision draws one with small numbers, where rounding is what matters, or
// with the largest.
func drawDivision(t *rapid.T) federation.Division {
	largest := rapid.SampledFrom([]int64{3, 20, 1000, 1 << 40, math.MaxInt64}).Draw(t, "largest")
	amount := rapid.Int64Range(0, largest)
	weights := rapid.Ptr(rapid.SampledFrom([]int32{0, 1, 1, 2, 3, 7, 100, 1_000_000}), true)
	d := federation.Division{
		Unit:  rapid.SampledFrom([]federation.Unit{countOfPods, countOfPods, milliCores, bytes}).Draw(t, "unit"),
		Limit: amount.Draw(t, "limit"),
	}
	for i := range rapid.IntRange(0, 8).Draw(t, "members") {
		c := federation.Claim{
			Cluster: fmt.Sprint("m", i),
			Weight:  weights.Draw(t, "weight"),
			Target:  amount.Draw(t, "target"),
			Fixed:   rapid.IntRange(0, 5).Draw(t, "fixed") == 0,
			Known:   rapid.IntRange(0, 5).Draw(t, "unknown") > 0,
			Used:    amount.Draw(t, "used") / rapid.SampledFrom([]int64{1, 4, 10}).Draw(t, "usedOf"),
			Room:    amount.Draw(t, "room") / 10,
			Min:     max(amount.Draw(t, "min")-largest/2, 0) / 4,
		}
		c.Granted = c.Target + rapid.Int64Range(0, largest-c.Target).Draw(t, "more")
		if rapid.Bool().Draw(t, "bounded") {
			c.Max = new(amount.Draw(t, "max"))
		}
		d.Claims = append(d.Claims, c)
	}
	return d
}

func shuffled(t *rapid.T, d federation.Division) federation.Division {
	d.Claims = rapid.Permutation(d.Claims).Draw(t, "order")
	return d
}

func bigSum(d federation.Division, amount func(federation.Claim) int64) *big.Int {
	sum := new(big.Int)
	for _, c := range d.Claims {
		sum.Add(sum, big.NewInt(amount(c)))
	}
	return sum
}

// held is what is not free with these targets, and what of it is fixed.
func held(d federation.Division, targets federation.Targets) (all, fixed *big.Int) {
	fixed = bigSum(d, func(c federation.Claim) int64 {
		if c.Fixed {
			return c.Granted
		}
		return 0
	})
	all = bigSum(d, func(c federation.Claim) int64 {
		if c.Fixed {
			return 0
		}
		return targets[c.Cluster]
	})
	return all.Add(all, fixed), fixed
}

// checkBounds checks the laws that every mode keeps.
func checkBounds(t *rapid.T, d federation.Division, targets federation.Targets) {
	if len(targets) != len(d.Claims) {
		t.Fatalf("%d targets for %d claims", len(targets), len(d.Claims))
	}
	for _, c := range d.Claims {
		target := targets[c.Cluster]
		if c.Fixed && target != c.Target || !c.Fixed && (target < 0 || target > maxOf(c)) {
			t.Fatalf("%s: target %d", c.Cluster, target)
		}
	}
}

func checkLimit(t *rapid.T, d federation.Division, targets federation.Targets) {
	all, fixed := held(d, targets)
	limit := big.NewInt(d.Limit)
	if fixed.Cmp(limit) > 0 {
		limit = fixed
	}
	if all.Cmp(limit) > 0 {
		t.Fatalf("%d held, limit %d", all, limit)
	}
}

// The floors of members: in Weighted and Balanced, and in Balanced alone.
func minOf(c federation.Claim) int64       { return c.Min }
func minAndUseOf(c federation.Claim) int64 { return max(c.Min, useOf(c)) }

// checkFloors checks what Weighted and Balanced say of floors and of the whole.
func checkFloors(t *rapid.T, d federation.Division, targets federation.Targets, floors ...func(federation.Claim) int64) {
	_, fixed := held(d, targets)
	free := new(big.Int).Sub(big.NewInt(d.Limit), fixed)
	all := bigSum(d, func(c federation.Claim) int64 {
		if c.Fixed {
			return c.Granted
		}
		return max(targets[c.Cluster], useOf(c))
	})
	for _, of := range floors {
		floor := func(c federation.Claim) int64 {
			if c.Fixed {
				return 0
			}
			return min(of(c), maxOf(c))
		}
		if bigSum(d, floor).Cmp(free) > 0 {
			continue
		}
		for _, c := range d.Claims {
			if targets[c.Cluster] < floor(c) {
				t.Fatalf("the floor %d of %s fits, and it gets %d", floor(c), c.Cluster, targets[c.Cluster])
			}
		}
	}
	for _, c := range d.Claims {
		if !c.Fixed && weightOf(c) > 0 && targets[c.Cluster] < maxOf(c) && all.Cmp(big.NewInt(d.Limit)) < 0 {
			t.Fatalf("%d of %d are given out, and %s gets %d", all, d.Limit, c.Cluster, targets[c.Cluster])
		}
	}
}

func TestWeightedIsWhatThePlainVersionSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDivision(t)
		targets := shuffled(t, d).Weighted()
		checkBounds(t, d, targets)
		checkLimit(t, d, targets)
		checkFloors(t, d, targets)
		if diff := gocmp.Diff(plainWeighted(d), targets); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestStaticGivesWhatIsWrittenOrLess(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDivision(t)
		left := d.Limit
		for i := range d.Claims {
			d.Claims[i].Hard = rapid.Int64Range(0, left).Draw(t, "hard")
			left -= d.Claims[i].Hard
		}
		targets, err := shuffled(t, d).Static()
		if err != nil {
			t.Fatal(err)
		}
		checkBounds(t, d, targets)
		checkLimit(t, d, targets)
		_, fixed := held(d, targets)
		for _, c := range d.Claims {
			written := min(c.Hard, maxOf(c))
			if target := targets[c.Cluster]; !c.Fixed && (target > written || target < written && fixed.Sign() == 0) {
				t.Fatalf("%s: %d is written, and it gets %d", c.Cluster, written, target)
			}
		}
	})
}

func TestSharedGivesAllThatIsLeft(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDivision(t)
		targets := shuffled(t, d).Shared()
		checkBounds(t, d, targets)
		rest := new(big.Int).Sub(big.NewInt(d.Limit), bigSum(d, useOf))
		if rest.Sign() < 0 {
			rest.SetInt64(0)
		}
		for _, c := range d.Claims {
			want := rest.Int64() + min(useOf(c), math.MaxInt64-rest.Int64())
			if target := targets[c.Cluster]; !c.Fixed && target != min(want, maxOf(c)) {
				t.Fatalf("%s: %d, want %d", c.Cluster, target, want)
			}
		}
	})
}
