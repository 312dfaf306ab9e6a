package model

import "slices"

// canonical is the key that all states share which differ only in the names of
// members, keys and leaders, in the order of what is on its way, and in the
// size of the gaps between revisions.
func (o *Options) canonical(s state) key {
	if o.Revisions == 0 {
		s.rank(o.Members)
	}
	var least key
	for n := range o.Keys {
		if n > 0 {
			s.swapKeys()
		}
		var own [maxMembers]uint64
		for i := range o.Members {
			var c coder
			c.member(&s, i, o.Keys)
			own[i] = c.key[0]
		}
		if o.named {
			return o.pack(s)
		}
		for _, order := range orders[o.Members] {
			if !ascends(own, order, o.Members) {
				continue // mostly one order is left
			}
			if k := o.pack(s.ordered(order, o.Members)); least == (key{}) || k.less(least) {
				least = k
			}
		}
	}
	return least
}

func ascends(own [maxMembers]uint64, order [maxMembers]int, members int) bool {
	for n := 1; n < members; n++ {
		if own[order[n-1]] > own[order[n]] {
			return false
		}
	}
	return true
}

// pack is the key of s, with leaders and writes sorted.
func (o *Options) pack(s state) key {
	var leaders [maxLeaders]uint64
	var c coder
	for l := range o.Leaders {
		c = coder{}
		c.leader(&s.leaders[l], o.Keys)
		leaders[l] = c.key[0]
	}
	leaderSize := c.at
	var writes [maxWrites]uint64
	for w := range o.Writes {
		c = coder{}
		c.write(&s.writes[w], o.Keys)
		writes[w] = c.key[0]
	}
	writeSize := c.at
	slices.Sort(leaders[:o.Leaders])
	slices.Sort(writes[:o.Writes])
	c = coder{}
	c.fixed(&s, o)
	for _, v := range leaders[:o.Leaders] {
		c.bits(v, leaderSize)
	}
	for _, v := range writes[:o.Writes] {
		c.bits(v, writeSize)
	}
	if c.at > 64*uint(len(c.key)) {
		panic("model: a state does not fit its key")
	}
	return c.key
}

func (k key) less(other key) bool {
	for n := range k {
		if k[n] != other[n] {
			return k[n] < other[n]
		}
	}
	return false
}

// orders are the ways to name so many members.
//
//nolint:gochecknoglobals // a table that nobody writes
var orders = [maxMembers + 1][][maxMembers]int{
	1: {{0, 1, 2}},
	2: {{0, 1, 2}, {1, 0, 2}},
	3: {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}},
}

// ordered is s with member order[n] in the place of n.
func (s *state) ordered(order [maxMembers]int, members int) state {
	t := *s
	var place [maxMembers]uint8
	for n, i := range order[:members] {
		place[i] = uint8(n)
		t.record.rows[n], t.saved.rows[n] = s.record.rows[i], s.saved.rows[i]
		t.known[n], t.covered[n], t.quotas[n] = s.known[i], s.covered[i], s.quotas[i]
	}
	for l := range t.leaders {
		if t.leaders[l].op > opRecord {
			t.leaders[l].member = place[t.leaders[l].member]
		}
	}
	for w := range t.writes {
		if t.writes[w].kind != writeNone {
			t.writes[w].member = place[t.writes[w].member]
		}
	}
	return t
}

func swap(a *amounts) { a[0], a[1] = a[1], a[0] }

// swapKeys is for two keys.
func (s *state) swapKeys() {
	swap(&s.user)
	swap(&s.lost)
	s.record.swapKeys()
	s.saved.swapKeys()
	for i := range s.quotas {
		swap(&s.quotas[i].hard)
		swap(&s.quotas[i].limit)
		swap(&s.quotas[i].used)
	}
	for l := range s.leaders {
		swap(&s.leaders[l].granted)
		swap(&s.leaders[l].target)
	}
	for w := range s.writes {
		swap(&s.writes[w].hard)
	}
}

func (r *record) swapKeys() {
	swap(&r.hard)
	for i := range r.rows {
		swap(&r.rows[i].granted)
		swap(&r.rows[i].target)
	}
}
