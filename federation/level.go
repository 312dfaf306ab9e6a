package federation

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// An extent is what one member may be given: base and a part by weight, but not
// less than low and not more than high. Where low is less than high, base is at
// most low.
type extent struct {
	weight, base, low, high int64
}

// level divides a total max-min fairly by weight: each extent gets base plus its
// weight times one number that is the same for all, within its bounds, and the
// sum is the total, or less if all are at their highs. Parts of units go to the
// largest remainders, the earlier extent first. One of weight 0 stays low. The
// lows must fit into the total.
func level(total int64, extents []extent) []int64 {
	amounts := make([]int64, len(extents))
	rest := total // what is left for the active extents above their bases
	for i, x := range extents {
		amounts[i] = x.low
		rest -= x.low
	}
	if rest == 0 {
		return amounts
	}
	active := make([]bool, len(extents))
	var weight int64 // of all active extents
	for _, e := range edges(extents) {
		if compareProducts(weight, e.above, rest, e.weight) >= 0 {
			break
		}
		x := extents[e.of]
		if active[e.of] {
			rest -= x.high - x.base
			weight -= x.weight
			amounts[e.of] = x.high
		} else {
			rest += x.low - x.base
			weight += x.weight
		}
		active[e.of] = !active[e.of]
	}
	if weight > 0 {
		apportion(amounts, extents, active, rest, weight)
	}
	return amounts
}

// An edge is where an extent begins to rise with the level, or stops.
type edge struct {
	perWeight // where, as a level

	of int // the extent
}

// edges are all edges in the order in which the level meets them.
func edges(extents []extent) []edge {
	all := make([]edge, 0, 2*len(extents))
	for i, x := range extents {
		if x.weight > 0 && x.low < x.high {
			all = append(all, edge{perWeight{x.low - x.base, x.weight}, i}, edge{perWeight{x.high - x.base, x.weight}, i})
		}
	}
	slices.SortFunc(all, func(a, b edge) int { return a.compare(b.perWeight) })
	return all
}

// apportion sets the amounts of the active extents: base and rest by weight.
func apportion(amounts []int64, extents []extent, active []bool, rest, weight int64) {
	type remainder struct {
		of   int
		part uint64
	}
	var remainders []remainder
	over := rest
	for i, x := range extents {
		if !active[i] {
			continue
		}
		whole, part := portion(rest, x.weight, weight)
		amounts[i] = x.base + whole
		over -= whole
		remainders = append(remainders, remainder{i, part})
	}
	slices.SortStableFunc(remainders, func(a, b remainder) int { return cmp.Compare(b.part, a.part) })
	for _, r := range remainders[:over] { // each remainder is less than 1: over is less than their number
		amounts[r.of]++
	}
}

// portion is the part of an amount for a weight of all weights, and what is left
// of a unit.
func portion(amount, weight, all int64) (whole int64, remainder uint64) {
	high, low := product(amount, weight)
	quotient, remainder := bits.Div64(high, low, uint64(all)) //nolint:gosec // weights are not negative
	return int64(quotient), remainder                         //nolint:gosec // at most the amount
}

// perWeight is an amount per weight. Neither is negative.
type perWeight struct {
	above, weight int64
}

func (r perWeight) compare(o perWeight) int {
	return compareProducts(r.above, o.weight, o.above, r.weight)
}

// compareProducts compares a*b with c*d, none of which is negative.
func compareProducts(a, b, c, d int64) int {
	high, low := product(a, b)
	otherHigh, otherLow := product(c, d)
	return cmp.Or(cmp.Compare(high, otherHigh), cmp.Compare(low, otherLow))
}

// product is that of two numbers that are not negative, in 128 bits.
func product(a, b int64) (high, low uint64) {
	return bits.Mul64(uint64(a), uint64(b)) //nolint:gosec // not negative
}

// plus adds amounts that are not negative; too much stays the largest.
func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
