package recorder

import (
	"cmp"
	"slices"
	"time"
)

// Measures says how well headroom has followed demand.
type Measures struct {
	Took     time.Duration
	Limits   int             // versions of local quotas in which status.hard has changed
	Units    int64           // by how much it has risen, in all
	Stuck    []time.Duration // each time that a member was denied while it could have been given headroom, until it could not or had some
	Moves    []time.Duration // those of Stuck that ended with a larger limit
	Usable   float64         // the part of the global limit that was in force in some member, averaged over time
	UsedPart float64         // the part of it that was used
}

// Percentile is the least duration that at least this part of all does not exceed.
// It is 0 of none.
func Percentile(all []time.Duration, part float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	n := int(part * float64(len(sorted)))
	if float64(n) < part*float64(len(sorted)) {
		n++
	}
	return sorted[max(n, 1)-1]
}

// again is how soon a creation that was denied is tried again by who still wants
// it.
const again = time.Second

// Measure measures from one time until another, by arrival.
//
// A member is stuck from a denied creation on, for as long as it has no headroom
// and somebody wants it (a second after the last denial nobody does), while
// others could give it some. They can if a part of the limit is in force nowhere,
// or if one of them has two units or more free: of one, no member has to give the
// last free unit, since it needs that for its own next creation.
func (h History) Measure(from, until time.Time) Measures {
	m := &meter{from: from, last: from, members: map[string]*gauge{}}
	for member := range h.Quotas {
		m.members[member] = &gauge{}
	}
	m.hard = h.Hard[len(h.Hard)-1].Hard
	for _, s := range h.samples() {
		if s.at.After(until) {
			break
		}
		m.pass(s.at)
		m.apply(s)
		m.judge(s)
	}
	m.pass(until)
	m.Took = until.Sub(from)
	whole := float64(m.hard) * m.Took.Seconds()
	m.Usable, m.UsedPart = m.usable/whole, m.used/whole
	return m.Measures
}

// sample is a version of a quota, or a try.
type sample struct {
	at     time.Time
	member string
	quota  *Quota
	denied bool
}

func (h History) samples() []sample {
	var all []sample
	for member, quotas := range h.Quotas {
		for i := range quotas {
			all = append(all, sample{at: quotas[i].At, member: member, quota: &quotas[i]})
		}
	}
	for _, try := range h.Tries {
		all = append(all, sample{at: try.At, member: try.Member, denied: try.Denied})
	}
	slices.SortStableFunc(all, func(a, b sample) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.member, b.member)) })
	return all
}

// gauge is what is known of a member.
type gauge struct {
	limit, used int64
	refused     time.Time // its last denial; zero: a creation has gone through since
	stuck       time.Time // since when; zero: it is not
}

func (g *gauge) free() int64 { return max(g.limit-g.used, 0) }

type meter struct {
	Measures

	hard         int64
	from, last   time.Time
	usable, used float64 // summed over time
	members      map[string]*gauge
}

// pass lets time pass: it ends what nobody wants any more.
func (m *meter) pass(now time.Time) {
	if now.After(m.last) {
		seconds := now.Sub(m.last).Seconds()
		for _, g := range m.members {
			m.usable += float64(g.limit) * seconds
			m.used += float64(g.used) * seconds
		}
		m.last = now
	}
	for _, g := range m.members {
		if !g.refused.IsZero() && now.Sub(g.refused) > again {
			m.end(g, g.refused)
			g.refused = time.Time{}
		}
	}
}

func (m *meter) apply(s sample) {
	g := m.members[s.member]
	switch {
	case g == nil:
	case s.quota == nil && s.denied:
		g.refused = s.at
	case s.quota == nil:
		g.refused = time.Time{}
	default:
		limit := max(s.quota.Limit, 0)
		if limit != g.limit && !s.at.Before(m.from) {
			m.Limits++
			m.Units += max(limit-g.limit, 0)
		}
		if !g.stuck.IsZero() && limit > g.limit && s.quota.Used < limit && !g.stuck.Before(m.from) {
			m.Moves = append(m.Moves, s.at.Sub(g.stuck))
		}
		g.limit, g.used = limit, max(s.quota.Used, 0)
	}
}

// judge finds who is stuck.
func (m *meter) judge(s sample) {
	for name, g := range m.members {
		stuck := !g.refused.IsZero() && g.free() == 0 && m.others(name)
		switch {
		case !stuck:
			m.end(g, s.at)
		case g.stuck.IsZero():
			g.stuck = s.at
		}
	}
}

func (m *meter) end(g *gauge, at time.Time) {
	if g.stuck.IsZero() {
		return
	}
	if !g.stuck.Before(m.from) {
		m.Stuck = append(m.Stuck, max(at.Sub(g.stuck), 0))
	}
	g.stuck = time.Time{}
}

// others says whether there is headroom for a member elsewhere.
func (m *meter) others(but string) bool {
	const keeps = 2
	left := m.hard
	for name, g := range m.members {
		if name != but && g.free() >= keeps {
			return true
		}
		left -= max(g.limit, g.used)
	}
	return left > 0
}
