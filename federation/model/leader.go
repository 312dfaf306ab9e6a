package model

// leader lets leader l do its next step, in any of the ways that it may choose.
func (n *steps) leader(l int) {
	h := n.from.leaders[l]
	if h.op != opIdle {
		s := n.from
		s.leaders[l] = leader{}
		n.add(step{kind: stepCrash, leader: l, member: int(h.member)}, s)
	}
	switch h.op {
	case opIdle:
		n.begin(l)
	case opRecord:
		for i := range n.Members {
			n.read(l, i)
		}
	case opSeen:
		n.seen(l)
	case opBelieve:
		n.believe(l)
	case opCredit:
		n.credit(l)
	case opSend:
		n.send(l)
	}
}

// begin makes a record if there is none, and else begins a pass over one member.
func (n *steps) begin(l int) {
	s := n.from
	switch {
	case !s.record.made:
		s.record = record{made: true, hard: s.user}
		n.add(step{kind: stepMakeRecord, leader: l}, s)
		return
	case n.Fine:
		s.leaders[l] = leader{op: opRecord}
		n.add(step{kind: stepReadRecord, leader: l}, s)
	default:
		for i := range n.Members {
			n.read(l, i)
		}
	}
	if n.Variant.ReadAfterIntent {
		for i := range n.Members {
			if n.from.record.rows[i].state == rowFull {
				n.intend(l, leader{op: opSeen, member: uint8(i)})
			}
		}
	}
}

// read is step 2, and the choice of what to do with what was read.
func (n *steps) read(l, i int) {
	row, q := n.from.record.rows[i], n.from.quotas[i]
	seen := leader{op: opSeen, member: uint8(i), absent: !q.present, stale: n.from.leaders[l].stale}
	if q.present {
		seen.grant = q.grant
	}
	n.hold(l, seen)
	if !q.present || !q.synced {
		return
	}
	switch {
	case n.fenced(row, q):
		granted := q.hard.most(q.limit).most(q.used)
		n.hold(l, leader{op: opBelieve, member: seen.member, grant: q.grant, granted: granted, target: q.hard, late: q.doubted, stale: seen.stale})
	case n.confirmed(row, q):
		granted := row.target
		if !n.Variant.CreditWithoutUsed {
			granted = granted.most(q.used)
		}
		if granted != row.granted || !n.from.covered[i] {
			n.hold(l, leader{op: opCredit, member: seen.member, grant: row.revision, granted: granted, late: q.doubted})
		}
	}
}

func (n *steps) hold(l int, h leader) {
	s := n.from
	s.leaders[l] = h
	n.add(step{kind: stepRead, leader: l, member: int(h.member)}, s)
}

// fenced says that the quota shows the fence that the record asks for.
func (n *steps) fenced(row row, q quota) bool {
	if n.Variant.AdoptByReading {
		return row.state != rowFull || q.grant > row.revision
	}
	return (row.state == rowAdopting || row.state == rowRepairing) && q.grant == row.revision && n.knows(row)
}

// confirmed says that the quota shows the last intent in force.
func (n *steps) confirmed(row row, q quota) bool {
	v := n.Variant
	return row.state == rowFull && n.knows(row) &&
		(q.grant == row.revision || v.ResourceVersionOnly || v.CreditWithoutAnnotation) &&
		q.hard == row.target &&
		(v.CreditOnSpec || q.limit.within(row.target))
}

// knows says whether the member's quota is the one that the row is about.
func (n *steps) knows(row row) bool { return row.own || row.open || n.Variant.UnknownUID }

// seen is step 3 of a leader that has read the record and a member.
func (n *steps) seen(l int) {
	h := n.from.leaders[l]
	if h.stale {
		n.conflict(l)
		return
	}
	row := n.from.record.rows[h.member]
	plain := row.state == rowFull && !h.absent && h.grant <= row.revision
	if plain && (n.knows(row) || h.late) && !n.Variant.ReadAfterIntent {
		n.intend(l, h)
	}
	if !plain || !n.knows(row) {
		n.fence(l, h)
	}
}

// conflict is a compare-and-swap that fails.
func (n *steps) conflict(l int) {
	s := n.from
	s.leaders[l] = leader{}
	n.add(step{kind: stepConflict, leader: l}, s)
}

// intend records a new target and sends it.
func (n *steps) intend(l int, h leader) {
	for _, target := range n.vectors() {
		s := n.from
		r, ok := n.revise(&s, h)
		if !ok || !n.plan(&s, int(h.member), target) {
			continue
		}
		s.record.rows[h.member].revision = r
		s.record.rows[h.member].open = false
		s.leaders[l] = leader{op: opSend, member: h.member, grant: h.grant, next: r, granted: target, sets: true, late: h.late}
		if n.Variant.ResourceVersionOnly {
			s.leaders[l].grant, s.leaders[l].next = 0, 0
		}
		n.outdate(&s, l)
		n.sent(step{kind: stepIntent, leader: l, member: int(h.member)}, s)
	}
}

// plan sets a target in the record, unless that would pass the limit.
func (n *steps) plan(s *state, i int, target amounts) bool {
	row := &s.record.rows[i]
	rises := !target.within(row.granted)
	if n.Variant.RaiseReplaces {
		n.forget(row, target)
	}
	row.granted = row.granted.most(target)
	row.target = target
	if rises && n.recovering(s) && !n.Variant.RaiseUnadopted {
		return false
	}
	return n.account(s)
}

// forget lowers granted where the target rises, though more may be in force.
func (n *steps) forget(row *row, target amounts) {
	for k := range n.Keys {
		if target[k] > row.target[k] {
			row.granted[k] = target[k]
		}
	}
}

// account lets the limit on record follow the user's: up at once, down as far
// as what is granted allows. It says false if more is granted than that.
func (n *steps) account(s *state) bool {
	fits := true
	for k := range n.Keys {
		var sum uint8
		for i := range n.Members {
			sum += s.record.rows[i].granted[k]
		}
		fits = fits && sum <= max(s.record.hard[k], s.user[k])
		s.record.hard[k] = max(s.user[k], sum)
	}
	return fits
}

// recovering says that a member which has had a row has none that is believed.
func (n *steps) recovering(s *state) bool {
	for i := range n.Members {
		if s.known[i] && s.record.rows[i].state != rowFull {
			return true
		}
	}
	return false
}

// fence records that a member is to be adopted or repaired, and sends a write
// that ends all that is on its way there.
func (n *steps) fence(l int, h leader) {
	if n.Variant.AdoptByReading && !h.absent {
		return
	}
	s := n.from
	r, ok := n.revise(&s, h)
	if !ok {
		return
	}
	row := &s.record.rows[h.member]
	switch row.state {
	case rowNone:
		row.state = rowAdopting
	case rowFull:
		row.state = rowRepairing
	case rowAdopting, rowRepairing:
	}
	row.revision, row.target, row.open = r, amounts{}, h.absent
	row.own = !h.absent && !h.late
	n.account(&s)
	n.outdate(&s, l)
	s.leaders[l] = leader{op: opSend, member: h.member, grant: h.grant, next: r, absent: h.absent, late: h.late}
	what := step{kind: stepFence, leader: l, member: int(h.member)}
	n.sent(what, s)
	if !h.absent {
		s.leaders[l].sets = true // or the fence lowers, too
		n.sent(what, s)
	}
}

// believe completes the row of a member whose fence was confirmed.
func (n *steps) believe(l int) {
	h := n.from.leaders[l]
	if h.stale {
		n.conflict(l)
		return
	}
	s := n.from
	recovering := n.recovering(&s)
	was := s.record.rows[h.member].state
	s.record.rows[h.member] = row{state: rowFull, revision: h.grant, granted: h.granted, target: h.target, own: !h.late}
	fits := n.account(&s)
	switch {
	case was == rowRepairing && !fits, !s.known[h.member] && (recovering || !fits):
		return // it waits until use has fallen, or others have given back
	}
	s.known[h.member] = true
	s.cover(h, n.recovering(&s))
	s.leaders[l] = leader{}
	n.outdate(&s, l)
	n.add(step{kind: stepBelieve, leader: l, member: int(h.member)}, s)
}

// cover notes that the promise covers the member of h again, if what h has
// confirmed is still so, and the record is whole.
func (s *state) cover(h leader, recovering bool) {
	s.covered[h.member] = s.covered[h.member] || !h.late && !recovering && !s.quotas[h.member].doubted
}

// credit lowers granted to what was confirmed.
func (n *steps) credit(l int) {
	h := n.from.leaders[l]
	s := n.from
	row := &s.record.rows[h.member]
	if row.state != rowFull || row.revision != h.grant && !n.Variant.CreditReread {
		n.conflict(l)
		return
	}
	row.granted = h.granted
	if !n.account(&s) {
		return
	}
	if row.open {
		row.open, row.own = false, !h.late
	}
	s.cover(h, n.recovering(&s))
	s.leaders[l] = leader{}
	if s.record != n.from.record {
		n.outdate(&s, l)
	}
	n.add(step{kind: stepCredit, leader: l, member: int(h.member)}, s)
}

// revise says which revision comes next for the member of h.
func (n *steps) revise(s *state, h leader) (revision, bool) {
	if n.Revisions == 0 {
		var last revision
		s.revisions(int(h.member), func(r *revision) { last = max(last, *r) })
		return last + 1, true
	}
	last := s.record.revision
	if !n.Variant.ReuseRevisions {
		last = max(last, h.grant)
	}
	s.record.revision = last + 1
	return last + 1, int(last) < n.Revisions
}

// outdate notes that the record has changed: the next compare-and-swap of
// every leader but l, which rests on what it read before, will fail. Credits
// look at the row alone.
func (n *steps) outdate(s *state, l int) {
	for other := range n.Leaders {
		h := &s.leaders[other]
		if other == l || h.op != opRecord && h.op != opSeen && h.op != opBelieve {
			continue
		}
		if n.Fine {
			h.stale = true
		} else {
			*h = leader{}
		}
	}
}

// sent adds a step of a leader that has a write to send: in one with the
// sending, for a leader that stops in between is the same as a write that is
// lost, and one that waits the same as a write that is late.
func (n *steps) sent(what step, s state) {
	if n.Fine || n.Variant.ReadAfterIntent || n.put(&s, what.leader) {
		n.add(what, s)
	}
}

// send is step 4.
func (n *steps) send(l int) {
	s := n.from
	member := int(s.leaders[l].member)
	if n.put(&s, l) {
		n.add(step{kind: stepSend, leader: l, member: member}, s)
	}
}

// put sends what leader l has to send, and says false if there is no room.
func (n *steps) put(s *state, l int) bool {
	h := s.leaders[l]
	s.leaders[l] = leader{}
	w := write{kind: writePatch, member: h.member, test: h.grant, grant: h.next, hard: h.granted, sets: h.sets}
	q := s.quotas[h.member]
	switch {
	case h.absent:
		w.kind, w.test = writeCreate, 0
	case h.late:
		return true // for a quota that is no more: it is refused whenever it comes
	case n.Variant.ReadAfterIntent && !q.present:
		return true
	case n.Variant.ReadAfterIntent:
		w.test = q.grant
	}
	for i := range n.Writes {
		if s.writes[i].kind == writeNone {
			s.writes[i] = w
			return true
		}
	}
	return false
}

func (a amounts) most(b amounts) amounts {
	for k := range a {
		a[k] = max(a[k], b[k])
	}
	return a
}

func (a amounts) within(b amounts) bool { return a.most(b) == b }
