package model

// step is one thing that happens.
type step struct {
	kind   stepKind
	leader int
	member int
	key    int
	write  write // that arrives or is lost
}

type stepKind uint8

const (
	stepUser stepKind = iota
	stepMakeRecord
	stepReadRecord
	stepRead
	stepCrash
	stepIntent
	stepFence
	stepBelieve
	stepCredit
	stepConflict
	stepSend
	stepDeliver
	stepRefused
	stepLose
	stepSync
	stepAdmit
	stepRelease
	stepDelete
	stepRecreate
	stepEdit
	stepLoseRecord
	stepSave
	stepRestore
	stepKinds
)

// stepNames are what a Result counts steps by.
//
//nolint:gochecknoglobals // a table that nobody writes
var stepNames = [stepKinds]string{
	stepUser: "limit changed", stepMakeRecord: "record made", stepReadRecord: "record read", stepRead: "member read",
	stepCrash: "crash", stepIntent: "intent", stepFence: "fence", stepBelieve: "adoption", stepCredit: "credit",
	stepConflict: "conflict", stepSend: "sent", stepDeliver: "taken", stepRefused: "refused", stepLose: "write lost",
	stepSync: "status follows", stepAdmit: "object admitted", stepRelease: "object ended", stepDelete: "quota deleted",
	stepRecreate: "quota made by user", stepEdit: "quota edited", stepLoseRecord: "record lost", stepSave: "record copied",
	stepRestore: "record restored",
}

// next is a step and what it leads to.
type next struct {
	step  step
	state state
}

// steps collects what can happen in a state.
type steps struct {
	*Options

	from state
	out  []next
}

// after lists all that can happen in s, in out.
func (o *Options) after(s state, out []next) []next {
	n := steps{Options: o, from: s, out: out[:0]}
	n.user()
	n.hub()
	for i := range o.Members {
		n.member(i)
		n.tamper(i)
	}
	n.network()
	for l := range o.Leaders {
		n.leader(l)
	}
	return n.out
}

// add adds a step that leads to s.
func (n *steps) add(what step, s state) {
	n.tidy(&s)
	n.out = append(n.out, next{what, s})
}

// user changes the limit that is asked for.
func (n *steps) user() {
	if !n.UserChanges {
		return
	}
	for k := range n.Keys {
		s := n.from
		s.user[k] = uint8(2*n.Limit-1) - s.user[k]
		n.add(step{kind: stepUser, key: k}, s)
	}
}

// hub loses the record, or has an older copy put back.
func (n *steps) hub() {
	if !n.from.record.made {
		return
	}
	if n.from.left.losses > 0 {
		s := n.from
		spend(&s.left.losses)
		for k := range n.Keys {
			s.lost[k] = max(s.lost[k], s.record.hard[k])
		}
		s.record = record{}
		n.outdate(&s, -1)
		n.add(step{kind: stepLoseRecord}, s)
	}
	n.restore()
}

// restore keeps a copy of the record, and puts it back. What members have is
// in doubt then, until a write of ours has come to them.
func (n *steps) restore() {
	if n.from.left.restores == 0 {
		return
	}
	s := n.from
	if !s.saved.made {
		s.saved = s.record
		n.add(step{kind: stepSave}, s)
		return
	}
	s.left.restores-- // never for ever: the copy would have to be kept
	s.record, s.saved = s.saved, record{}
	s.covered = [maxMembers]bool{}
	for i := range n.Members {
		s.quotas[i].doubted = s.quotas[i].present
	}
	for l := range s.leaders {
		s.leaders[l].late = s.leaders[l].late || s.leaders[l].op == opBelieve || s.leaders[l].op == opCredit
	}
	n.outdate(&s, -1)
	n.add(step{kind: stepRestore}, s)
}

func spend(left *uint8) {
	if *left < Forever {
		*left--
	}
}

// member lets admission and the native controller of a member work.
func (n *steps) member(i int) {
	q := n.from.quotas[i]
	if q.present && (!q.synced || q.limit != q.hard) {
		s := n.from
		s.quotas[i].synced, s.quotas[i].limit = true, q.hard
		n.touch(&s, i)
		n.add(step{kind: stepSync, member: i}, s)
	}
	for k := range n.Keys {
		most := q.limit[k]
		if !q.synced && (n.Busy || n.Deletions > 0) {
			most = uint8(n.Limit) // enough to break every limit
		}
		if q.used[k] < most {
			n.use(step{kind: stepAdmit, member: i, key: k}, q.used[k]+1)
		}
		if q.used[k] > 0 {
			n.use(step{kind: stepRelease, member: i, key: k}, q.used[k]-1)
		}
	}
}

func (n *steps) use(what step, used uint8) {
	s := n.from
	s.quotas[what.member].used[what.key] = used
	n.touch(&s, what.member)
	n.add(what, s)
}

// tamper is what users do to the quota of a member. From then on the promise
// does not cover the member.
func (n *steps) tamper(i int) {
	q := n.from.quotas[i]
	if q.present && n.from.left.deletions > 0 {
		s := n.from
		spend(&s.left.deletions)
		n.remove(&s, i)
		n.add(step{kind: stepDelete, member: i}, s)
	}
	if !q.present && n.Deletions > 0 {
		for _, hard := range []amounts{q.hard, n.full()} {
			for _, grant := range []revision{q.grant, 0} {
				s := n.from
				s.quotas[i] = quota{present: true, grant: grant, hard: hard, used: q.used}
				n.add(step{kind: stepRecreate, member: i}, s)
			}
		}
	}
	if q.present && n.from.left.edits > 0 {
		for _, hard := range n.vectors() {
			if hard != q.hard {
				s := n.from
				spend(&s.left.edits)
				s.quotas[i].hard, s.quotas[i].doubted = hard, true
				n.touch(&s, i)
				n.uncover(&s, i)
				n.add(step{kind: stepEdit, member: i}, s)
			}
		}
	}
}

func (n *steps) full() amounts {
	var a amounts
	for k := range n.Keys {
		a[k] = uint8(n.Limit)
	}
	return a
}

// vectors are all limits that a member can be given.
func (n *steps) vectors() []amounts {
	var all []amounts
	for a := range n.Limit + 1 {
		if n.Keys == 1 {
			all = append(all, amounts{uint8(a)})
			continue
		}
		for b := range n.Limit + 1 {
			all = append(all, amounts{uint8(a), uint8(b)})
		}
	}
	return all
}

// uncover notes that a user has touched the quota of member i. What leaders
// have confirmed there is of the past.
func (n *steps) uncover(s *state, i int) {
	s.covered[i] = false
	for l := range s.leaders {
		h := &s.leaders[l]
		if int(h.member) == i && (h.op == opBelieve || h.op == opCredit) {
			h.late = true
		}
	}
}

// remove deletes the quota of member i, and with it the UID that rows and
// patches know.
func (n *steps) remove(s *state, i int) {
	q := &s.quotas[i]
	q.present, q.synced, q.doubted, q.limit = false, false, false, amounts{}
	s.record.rows[i].own, s.saved.rows[i].own = false, false
	n.uncover(s, i)
	if n.Variant.NoUID {
		return
	}
	for l := range s.leaders {
		if h := &s.leaders[l]; int(h.member) == i && h.patches() {
			h.late = true
		}
	}
	for w := range s.writes {
		if s.writes[w].kind == writePatch && int(s.writes[w].member) == i {
			s.writes[w] = write{}
		}
	}
}

// patches says that h has read a quota which it may patch.
func (h *leader) patches() bool { return (h.op == opSeen || h.op == opSend) && !h.absent }

// touch notes that the object of member i has a new resourceVersion.
func (n *steps) touch(s *state, i int) {
	if !n.Variant.ResourceVersionOnly {
		return
	}
	for l := range s.leaders {
		if h := &s.leaders[l]; int(h.member) == i && h.patches() {
			h.late = true
		}
	}
	for w := range s.writes {
		if s.writes[w].kind == writePatch && int(s.writes[w].member) == i {
			s.writes[w].spent = true
		}
	}
}

// network delivers and loses writes.
func (n *steps) network() {
	for w, what := range n.from.writes[:n.Writes] {
		if what.kind == writeNone {
			continue
		}
		s := n.from
		s.writes[w] = write{}
		n.add(step{kind: stepLose, member: int(what.member), write: what}, s)
		if n.takes(&s, what) {
			n.apply(&s, what)
			n.add(step{kind: stepDeliver, member: int(what.member), write: what}, s)
		} else {
			n.add(step{kind: stepRefused, member: int(what.member), write: what}, s)
		}
	}
}

// takes says whether the member would do what w asks for.
func (n *steps) takes(s *state, w write) bool {
	q := s.quotas[w.member]
	switch {
	case w.kind == writeCreate:
		return !q.present
	case !q.present:
		return false
	case n.Variant.ResourceVersionOnly:
		return !w.spent
	}
	return n.Variant.NoTest || w.test == q.grant
}

func (n *steps) apply(s *state, w write) {
	q := &s.quotas[w.member]
	before := *q
	if w.kind == writeCreate {
		*q = quota{present: true, grant: w.grant, used: q.used}
		return
	}
	if w.grant != 0 {
		q.grant = w.grant
	}
	if w.sets {
		q.hard = w.hard
	}
	q.doubted = false
	if *q != before {
		n.touch(s, int(w.member))
	}
}

// tidy drops what can have no effect any more, so that states which differ
// only there become one.
func (n *steps) tidy(s *state) {
	if s.lost != (amounts{}) && s.record.made && !n.recovering(s) {
		s.lost = amounts{}
	}
	for w, what := range s.writes {
		if what.kind == writePatch && n.dead(what, s.quotas[what.member]) {
			s.writes[w] = write{}
		}
	}
	for l := range n.Leaders {
		if h := &s.leaders[l]; h.op == opCredit && n.hopeless(h, s.record.rows[h.member]) {
			*h = leader{}
		}
	}
}

// dead says that a patch can have no effect any more.
func (n *steps) dead(w write, q quota) bool {
	return w.spent || n.Variant.monotone() && !n.Fine && w.test != q.grant
}

// hopeless says that a credit will fail: the revision that it rests on is past.
func (n *steps) hopeless(h *leader, row row) bool {
	comesBack := n.Restores > 0 || n.Revisions > 0
	return !comesBack && !n.Fine && !n.Variant.CreditReread && row.revision != h.grant
}
