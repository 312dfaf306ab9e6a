package federation

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Division is one limit and the members among which it is to be divided. All
// amounts are in whole units, see [Unit].
//
// Its methods are the modes. What they give depends neither on the order of the
// claims nor on anything but the arguments, and keeps these laws, the last three
// of them in Weighted and Balanced:
//
//   - What fixed members are granted and the targets of all others are together
//     at most the limit, if the fixed leave anything at all. (Not in Shared,
//     which is why it is no guarantee.)
//   - No target is negative, or above the member's Max.
//   - First each gets its Min, in Balanced then what it uses, then the rest is
//     divided. Where one of these steps does not fit, all get the same by weight,
//     but none more than it would have if it did fit (max-min fair).
//   - All of the limit is given out or kept in use, unless every member with a
//     weight has its Max.
//   - Who has weight 0 gets its Min, in Balanced also what it uses, and nothing
//     beyond. Where these do not fit, it is served last.
//
// A target may be below use. Nothing ends for that: the member keeps what it uses
// until that falls.
type Division struct {
	Unit   Unit // made by UnitOf
	Limit  int64
	Claims []Claim // one for each cluster
}

// Claim is what one member brings to a division.
type Claim struct {
	Cluster string
	Weight  *int32 // nil: 1
	Min     int64  // no more than Max counts
	Max     *int64 // nil: no bound
	Hard    int64  // its share in Static, as written

	Granted int64 // what the record holds for it: it covers all that is in force
	Target  int64 // what it was told last
	Fixed   bool  // Granted cannot change now, whatever the reason

	Known bool
	Used  int64 // if Known; else all of Granted may be in use, and cannot be credited
	Room  int64 // its largest recent charge: the headroom that Balanced keeps for it
}

// use is what a member uses, for all that is known.
func (c Claim) use() int64 {
	if c.Known {
		return c.Used
	}
	return c.Granted
}

// Targets are what members may use: cluster -> units. A fixed member keeps the
// target that it has.
type Targets map[string]int64

// SharesExceedError says that the shares of Static, as written, are more than
// the limit.
type SharesExceedError struct {
	Resource   corev1.ResourceName
	Sum, Limit resource.Quantity
}

// Error names the resource, the sum and the limit.
func (e *SharesExceedError) Error() string {
	return fmt.Sprintf("the shares of %s add up to %s, more than the limit of %s", e.Resource, e.Sum.String(), e.Limit.String())
}

// Static gives each member its share as written, and nothing where none is.
// Where fixed members leave too little, it is divided by weight. There are no
// targets if the shares exceed the limit: then the error is a [SharesExceedError].
func (d Division) Static() (Targets, error) {
	var sum int64
	for _, c := range d.Claims {
		sum = plus(sum, max(c.Hard, 0))
	}
	if sum > d.Limit {
		return nil, &SharesExceedError{d.Unit.name, d.Unit.Quantity(sum), d.Unit.Quantity(d.Limit)}
	}
	s := d.open()
	s.pour(fromZero, func(p *party) int64 { return min(max(p.claim.Hard, 0), p.max) })
	return s.targets(d), nil
}

// Weighted divides the limit by weight. Who uses more than its share keeps that
// until it ends; meanwhile the others divide what that leaves.
func (d Division) Weighted() Targets {
	s := d.open()
	s.byWeight()
	targets := s.targets(d)
	for s.leave(func(p *party) bool { return p.use > p.amount }) {
		s.byWeight()
		for i := range s.parties {
			targets[s.parties[i].claim.Cluster] = s.parties[i].amount
		}
	}
	return targets
}

func (s *split) byWeight() {
	s.pour(fromZero, (*party).least)
	s.pour(fromZero, (*party).most)
}

// leave lets some parties keep what they use, and begins anew with the others. It
// says whether there were any.
func (s *split) leave(who func(*party) bool) bool {
	before := len(s.parties)
	s.parties = slices.DeleteFunc(s.parties, func(p party) bool {
		leaves := who(&p)
		if leaves {
			s.total = max(s.total-p.use, 0)
		}
		return leaves
	})
	for i := range s.parties {
		s.parties[i].amount = 0
	}
	return len(s.parties) < before
}

// Shared lets each member use all that nobody uses. Here a fixed member counts
// with its use, since what it is granted would leave nothing to the others.
func (d Division) Shared() Targets {
	rest := max(d.Limit, 0)
	for _, c := range d.Claims {
		rest = max(rest-c.use(), 0)
	}
	s := d.open()
	for i := range s.parties {
		p := &s.parties[i]
		p.amount = min(plus(p.use, rest), p.max)
	}
	return s.targets(d)
}

// party is a member that something can be given to.
type party struct {
	claim         *Claim
	weight        int64
	min, max, use int64
	amount        int64 // what it is given, so far

	// Of Balanced alone.
	room   int64
	high   int64  // what a level may raise it to
	memory Memory // of the last step
}

// least and most are what it asks for, whatever it uses.
func (p *party) least() int64 { return p.min }

func (p *party) most() int64 {
	if p.weight == 0 {
		return p.min
	}
	return p.max
}

// floor is what only a shortage may take in Balanced.
func (p *party) floor() int64 { return min(max(p.min, p.use), p.max) }

// ceiling is what it can be given at most.
func (p *party) ceiling() int64 {
	if p.weight == 0 {
		return p.floor()
	}
	return p.max
}

// inUse is the base of headroom, fromZero that of whole shares.
func (p *party) inUse() int64 { return p.use }

func fromZero(*party) int64 { return 0 }

// split is a division under way: what fixed members leave, and the others by
// name.
type split struct {
	total   int64
	parties []party
}

func (d Division) open() *split {
	s := &split{max(d.Limit, 0), make([]party, 0, len(d.Claims))}
	for i := range d.Claims {
		c := &d.Claims[i]
		if c.Fixed {
			s.total = max(s.total-c.Granted, 0)
			continue
		}
		s.parties = append(s.parties, newParty(c))
	}
	slices.SortFunc(s.parties, func(a, b party) int { return cmp.Compare(a.claim.Cluster, b.claim.Cluster) })
	return s
}

// newParty replaces what a user or a count may have got wrong by what is meant.
func newParty(c *Claim) party {
	p := party{claim: c, weight: 1, max: math.MaxInt64, use: max(c.use(), 0)}
	if c.Weight != nil {
		p.weight = max(int64(*c.Weight), 0)
	}
	if c.Max != nil {
		p.max = max(*c.Max, 0)
	}
	p.min = min(max(c.Min, 0), p.max)
	if c.Known {
		p.room = max(c.Room, 0)
	}
	return p
}

// reserve gives each member its Min, and then what it uses.
func (s *split) reserve() {
	s.pour(fromZero, (*party).least)
	s.pour(fromZero, (*party).floor)
}

// pour raises all amounts up to their highs, or as far as the total allows: all
// to the same level above their bases, by weight.
func (s *split) pour(base, high func(*party) int64) {
	extents := make([]extent, len(s.parties))
	for i := range s.parties {
		p := &s.parties[i]
		extents[i] = extent{p.weight, base(p), p.amount, max(p.amount, high(p))}
	}
	s.set(fill(s.total, extents))
}

func (s *split) set(amounts []int64) {
	for i, amount := range amounts {
		s.parties[i].amount = amount
	}
}

// fill is level for extents of any weight: those of weight 0 come last.
func fill(total int64, extents []extent) []int64 {
	if highs, ok := allHigh(total, extents); ok {
		return highs
	}
	amounts := level(total, extents)
	for i := range extents {
		s := &extents[i]
		if s.weight == 0 {
			s.weight = 1
		} else {
			s.low, s.high = amounts[i], amounts[i]
		}
	}
	return level(total, extents)
}

// allHigh are the highs, if they fit.
func allHigh(total int64, extents []extent) ([]int64, bool) {
	highs := make([]int64, len(extents))
	for i, s := range extents {
		if s.high > total {
			return nil, false
		}
		highs[i] = s.high
		total -= s.high
	}
	return highs, true
}

func (s *split) targets(d Division) Targets {
	targets := make(Targets, len(d.Claims))
	for _, c := range d.Claims {
		targets[c.Cluster] = c.Target
	}
	for i := range s.parties {
		targets[s.parties[i].claim.Cluster] = s.parties[i].amount
	}
	return targets
}
