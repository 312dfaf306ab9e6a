package federation

import (
	"cmp"
	"slices"
	"time"
)

// The numbers of Balanced.
const (
	// lowShare: a member is low when less than a tenth of its target is free. It
	// can grow by as much between two steps, and load that is steady but for a
	// noise of a tenth stays clear of it.
	lowShare = 10
	// stepShare: for a member that is low, but not at its limit, less than a
	// hundredth of its target is not worth the two writes of a move.
	stepShare = 100
	// dwell is how long headroom stays where it was brought. Controllers wait ever
	// longer after a creation that was denied, so it must be there for a while. A
	// minute is two writes a minute for what takes turns and nobody uses.
	dwell = time.Minute
)

// Memory is what a balanced division must remember of a member from step to
// step. If it is lost, the next step starts from the targets in force.
type Memory struct {
	Target int64     // as divided last; members may not have been told yet
	Gained time.Time // when it last became more
	Gave   time.Time // when it last became less
}

// Balanced lets headroom, which is the part of a target that is not in use,
// follow demand. It takes the memories of the last step, and returns those for
// the next, by cluster. Step at least once a second.
//
// Targets stay as they are, as long as nobody is low: limits, bounds, and
// members that come and go are followed, and what is free goes to those with the
// least headroom. A member is low if less than a tenth of its target is free, and
// at its limit if its largest recent charge, or one step of the unit, is not
// free. (Creations that were denied are visible nowhere.) If somebody is low, the
// headroom of all that have more is levelled with it, by weight, and at once, so
// that who is low again and again gets its part of all that is free each time.
// In this, each first keeps or gets headroom for its largest recent charge.
//
//   - Headroom moves only if that leaves the one who gives no less than it brings
//     the other, by weight. So a second step with the same use changes nothing.
//   - For a member that is at its limit, any step of the unit is moved; for one
//     that is only low, no less than a hundredth of its target.
//   - Who has gained within a minute gives only to members at their limit.
//   - Where fewer objects are free than there are members, the rest cannot be
//     levelled. Then they take turns: who has kept one for a minute without using
//     it gives it to the member at its limit that has waited longest, and is not
//     given to for a minute.
//
// In the beginning all are at their limit, and the headroom is divided by weight.
// Later a change of weights shows as soon as somebody is low.
func (d Division) Balanced(memories map[string]Memory, now time.Time) (Targets, map[string]Memory) {
	b := balance{d.open(), d.Unit.step, now}
	b.recall(memories)
	b.follow()
	b.relevel(b.low, b.settling, b.worthwhile)
	b.relevel(b.atLimit, nobody, b.least)
	b.takeTurns()
	return b.targets(d), b.memories()
}

// balance is a balanced division under way.
type balance struct {
	*split
	step int64 // the least that is worth a move
	now  time.Time
}

func (b balance) recall(memories map[string]Memory) {
	for i := range b.parties {
		p := &b.parties[i]
		memory, known := memories[p.claim.Cluster]
		if !known {
			memory = Memory{Target: max(p.claim.Target, 0), Gained: b.now}
		}
		p.memory = memory
	}
}

// follow keeps targets as far as limits and bounds allow, and gives out what is
// free.
func (b balance) follow() {
	b.reserve()
	b.pour((*party).inUse, func(p *party) int64 { return min(p.memory.Target, p.ceiling()) })
	b.pour((*party).inUse, (*party).ceiling)
}

func (b balance) memories() map[string]Memory {
	next := make(map[string]Memory, len(b.parties))
	for i := range b.parties {
		p := &b.parties[i]
		memory := p.memory
		if p.amount > memory.Target {
			memory.Gained = b.now
		}
		if p.amount < memory.Target {
			memory.Gave = b.now
		}
		memory.Target = p.amount
		next[p.claim.Cluster] = memory
	}
	return next
}

func (p *party) headroom() int64 { return max(p.amount-p.use, 0) }

// canTake says whether it is known to need headroom if it has little.
func (p *party) canTake() bool { return p.claim.Known && p.amount < p.ceiling() }

// low says whether it may soon be at its limit, or is.
func (b balance) low(p *party) bool {
	return p.canTake() && p.headroom() < max(p.room, p.amount/lowShare, b.step)
}

// atLimit says whether its next creation may be denied.
func (b balance) atLimit(p *party) bool { return p.canTake() && p.headroom() < max(p.room, b.step) }

// settling says whether it has gained so lately that it should be left alone.
func (b balance) settling(p *party) bool {
	return p.amount > p.memory.Target || b.recent(p.memory.Gained)
}

func nobody(*party) bool { return false }

func (b balance) recent(at time.Time) bool { return b.now.Before(at.Add(dwell)) }

// least and worthwhile are how much a member must gain.
func (b balance) least(*party) int64        { return b.step }
func (b balance) worthwhile(p *party) int64 { return max(b.step, p.amount/stepShare) }

// relevel levels the headroom of all that are low with that of all who have more
// and do not keep theirs, if it is unfair to one of those who need it.
func (b balance) relevel(needs, keeps func(*party) bool, gain func(*party) int64) {
	if !b.unfair(needs, keeps, gain) {
		return
	}
	for i := range b.parties {
		p := &b.parties[i]
		p.high = p.amount
		if b.low(p) {
			p.high = p.ceiling()
		}
		if !keeps(p) {
			p.amount = p.floor()
		}
	}
	b.pour((*party).inUse, func(p *party) int64 { return min(plus(p.use, p.room), p.ceiling()) })
	b.pour((*party).inUse, func(p *party) int64 { return p.high })
}

// unfair says whether one that needs it could be given its gain by one that would
// still have no less than it, by rank.
func (b balance) unfair(needs, keeps func(*party) bool, gain func(*party) int64) bool {
	poorest, richest := rank{tier: afterAll}, rank{tier: beforeAll}
	for i := range b.parties {
		p := &b.parties[i]
		if needs(p) {
			poorest = slices.MinFunc([]rank{poorest, p.rank(plus(p.headroom(), gain(p)))}, rank.compare)
		}
		if !keeps(p) && b.canGive(p) {
			richest = slices.MaxFunc([]rank{richest, p.rankOfRest(p.headroom() - b.step)}, rank.compare)
		}
	}
	return poorest.compare(richest) <= 0
}

func (b balance) canGive(p *party) bool { return p.amount-b.step >= p.floor() }

// takeTurns moves single objects to members that are at their limit and that no
// level can help.
func (b balance) takeTurns() {
	if b.step > 1 {
		return // parts of a core and bytes can be levelled among any number of members
	}
	for _, taker := range b.waiting() {
		giver := b.richest()
		if giver == nil || b.settling(giver) {
			return
		}
		if giver.rank(giver.headroom()).tier >= taker.rank(1).tier { // else the giver needs it more
			giver.amount--
			taker.amount++
		}
	}
}

// waiting are the members that have no headroom, by how long ago they gave some.
func (b balance) waiting() []*party {
	var waiting []*party
	for i := range b.parties {
		p := &b.parties[i]
		if p.canTake() && p.headroom() == 0 && p.amount >= p.memory.Target && !b.recent(p.memory.Gave) {
			waiting = append(waiting, p)
		}
	}
	slices.SortStableFunc(waiting, func(a, b *party) int { return a.memory.Gave.Compare(b.memory.Gave) })
	return waiting
}

// richest is the member with most headroom that it can give, by rank: the one to
// give it, unless it is settling.
func (b balance) richest() *party {
	var richest *party
	for i := range b.parties {
		if p := &b.parties[i]; b.canGive(p) && (richest == nil || b.richer(p, richest)) {
			richest = p
		}
	}
	return richest
}

func (b balance) richer(p, than *party) bool {
	order := p.rank(p.headroom()).compare(than.rank(than.headroom()))
	return order > 0 || order == 0 && b.settling(than) && !b.settling(p)
}

// rank orders headroom by who should have it first: up to the largest recent
// charge before all beyond, and then by weight.
type rank struct {
	tier int
	perWeight
}

// The tiers of a rank. The first and the last are of nobody.
const (
	beforeAll = iota
	ofCharge
	beyondCharge
	afterAll
)

// rank is that of so much headroom of a member.
func (p *party) rank(headroom int64) rank {
	tier := ofCharge
	if headroom > p.room {
		tier = beyondCharge
	}
	return rank{tier, perWeight{headroom, p.weight}}
}

// rankOfRest is that of what a member keeps when it gives something: it gives
// what is beyond its largest recent charge as long as it keeps that.
func (p *party) rankOfRest(headroom int64) rank {
	r := p.rank(headroom)
	if headroom == p.room {
		r.tier = beyondCharge
	}
	return r
}

func (r rank) compare(o rank) int {
	return cmp.Or(cmp.Compare(r.tier, o.tier), r.perWeight.compare(o.perWeight))
}
