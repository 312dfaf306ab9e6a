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
	PodsPart float64         // the part of it that pods took: the rest of what was used was charged for none that is there
	Met      []time.Duration // from when a member wanted more than it may use until it could use that
	Unmet    int             // times that it could not until it wanted something else
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
	for _, s := range h.samples() {
		if s.at.After(until) {
			break
		}
		m.pass(s.at)
		m.apply(s)
		m.judge(s.at)
	}
	m.pass(until)
	for _, g := range m.members {
		m.end(g, until)
	}
	m.Took = until.Sub(from)
	m.Usable, m.UsedPart, m.PodsPart = m.usable/m.whole, m.used/m.whole, m.pods/m.whole
	return m.Measures
}

// MeasureBetween measures from one time until another, but for the outages, which
// are in order of their beginning: what lasts into one ends with it, and what lasts
// longer begins anew after it.
func (h History) MeasureBetween(from, until time.Time, outages []Outage) Measures {
	var all Measures
	for _, o := range append(slices.Clone(outages), Outage{From: until, To: until}) {
		if o.From.After(from) {
			all.add(h.Measure(from, o.From))
		}
		if o.To.After(from) {
			from = o.To
		}
	}
	return all
}

// add adds what was measured in another time.
func (m *Measures) add(o Measures) {
	part := o.Took.Seconds() / (m.Took + o.Took).Seconds()
	m.Usable += (o.Usable - m.Usable) * part
	m.UsedPart += (o.UsedPart - m.UsedPart) * part
	m.PodsPart += (o.PodsPart - m.PodsPart) * part
	m.Took += o.Took
	m.Limits += o.Limits
	m.Units += o.Units
	m.Unmet += o.Unmet
	m.Stuck, m.Moves, m.Met = append(m.Stuck, o.Stuck...), append(m.Moves, o.Moves...), append(m.Met, o.Met...)
}

// sample is something that has changed; one of its last five fields is set.
type sample struct {
	at     time.Time
	member string
	quota  *Quota
	try    *Try
	want   *Want
	hard   *Hard
	pods   *Pods
}

func (h History) samples() []sample {
	var all []sample
	for i := range h.Hard {
		all = append(all, sample{at: h.Hard[i].At, hard: &h.Hard[i]})
	}
	for member, quotas := range h.Quotas {
		for i := range quotas {
			all = append(all, sample{at: quotas[i].At, member: member, quota: &quotas[i]})
		}
	}
	for member, pods := range h.Pods {
		for i := range pods {
			all = append(all, sample{at: pods[i].At, member: member, pods: &pods[i]})
		}
	}
	for i := range h.Tries {
		all = append(all, sample{at: h.Tries[i].At, member: h.Tries[i].Member, try: &h.Tries[i]})
	}
	for i := range h.Wants {
		all = append(all, sample{at: h.Wants[i].At, member: h.Wants[i].Member, want: &h.Wants[i]})
	}
	slices.SortStableFunc(all, func(a, b sample) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.member, b.member)) })
	return all
}

// gauge is what is known of a member.
type gauge struct {
	limit, used int64
	pods        int64
	refused     time.Time // its last denial; zero: a creation has gone through since
	stuck       time.Time // since when; zero: it is not
	want        *Want     // what it wants and may not use yet; nil: nothing
}

func (g *gauge) free() int64 { return max(g.limit-g.used, 0) }

type meter struct {
	Measures

	hard                      int64
	from, last                time.Time
	usable, used, pods, whole float64 // summed over time
	members                   map[string]*gauge
}

// pass lets time pass: it ends what nobody wants any more.
func (m *meter) pass(now time.Time) {
	if now.After(m.last) {
		seconds := now.Sub(m.last).Seconds()
		m.whole += float64(m.hard) * seconds
		for _, g := range m.members {
			m.usable += float64(g.limit) * seconds
			m.used += float64(g.used) * seconds
			m.pods += float64(g.pods) * seconds
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
	case s.hard != nil:
		m.hard = s.hard.Hard
	case g == nil:
	case s.try != nil && s.try.Denied:
		g.refused = s.at
	case s.try != nil:
		g.refused = time.Time{}
	case s.want != nil:
		m.wants(g, s.want)
	case s.pods != nil:
		g.pods = max(s.pods.Count, 0)
	default:
		m.quota(g, s.at, s.quota)
	}
}

// quota notes a version of a member's quota.
func (m *meter) quota(g *gauge, at time.Time, q *Quota) {
	limit := max(q.Limit, 0)
	if limit != g.limit && !at.Before(m.from) {
		m.Limits++
		m.Units += max(limit-g.limit, 0)
	}
	if !g.stuck.IsZero() && limit > g.limit && q.Used < limit && at.After(m.from) {
		m.Moves = append(m.Moves, at.Sub(m.since(g.stuck)))
	}
	g.limit, g.used = limit, max(q.Used, 0)
	if g.want != nil && g.limit >= g.want.Amount {
		m.Met = append(m.Met, at.Sub(g.want.At))
		g.want = nil
	}
}

// wants notes that a member wants another amount.
func (m *meter) wants(g *gauge, w *Want) {
	if g.want != nil {
		m.Unmet++
	}
	g.want = nil
	if w.Amount > g.limit && !w.At.Before(m.from) {
		g.want = w
	}
}

// judge finds who is stuck.
func (m *meter) judge(at time.Time) {
	for name, g := range m.members {
		stuck := !g.refused.IsZero() && g.free() == 0 && m.others(name)
		switch {
		case !stuck:
			m.end(g, at)
		case g.stuck.IsZero():
			g.stuck = at
		}
	}
}

func (m *meter) end(g *gauge, at time.Time) {
	if !g.stuck.IsZero() && at.After(m.from) {
		m.Stuck = append(m.Stuck, max(at.Sub(m.since(g.stuck)), 0))
	}
	g.stuck = time.Time{}
}

// since is a time, but not before the measuring began.
func (m *meter) since(at time.Time) time.Time {
	if at.Before(m.from) {
		return m.from
	}
	return at
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
