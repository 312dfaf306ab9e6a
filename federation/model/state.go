package model

import "math/bits"

// The sizes of the arrays of a state. How much of them is in use is said by
// [Options].
const (
	maxMembers = 3
	maxKeys    = 2
	maxLeaders = 2
	maxWrites  = 3
)

// amounts has one number per key of the quota.
type amounts [maxKeys]uint8

// revision is the number in an annotation or a row; 0 is none. Only revisions
// of one member are ever compared with each other.
type revision uint8

// state is all there is at one moment. It is a value: comparable, copied by
// assignment, and what is not in use in it is zero.
type state struct {
	user    amounts // the limit that the user asks for
	record  record
	saved   record             // an older copy of the record that somebody kept
	known   [maxMembers]bool   // the mark outside the record that the member has had a row
	quotas  [maxMembers]quota  // what is stored in each member
	leaders [maxLeaders]leader // what each leader remembers
	writes  [maxWrites]write   // what is on its way to members
	left    budget             // how often faults may still happen
	covered [maxMembers]bool   // only for the check: the promise covers the member
	lost    amounts            // only for the check: the limit on the record that was lost, until that is made good
}

// record is the spec of the FleetGrant.
type record struct {
	made     bool
	revision revision // only where revisions are counted; see Options.Revisions
	hard     amounts
	rows     [maxMembers]row
}

// row is what the record says of one member.
type row struct {
	state    rowState
	revision revision // of the last intent
	granted  amounts  // covers all that was sent or is in force
	target   amounts  // what the member shall have
	own      bool     // the UID in the row is that of the member's quota as it is now
	open     bool     // the row has no UID yet: it waits for a quota that was sent
}

type rowState uint8

const (
	rowNone      rowState = iota
	rowAdopting           // the first fence was written and is not confirmed
	rowFull               // granted and target are believed
	rowRepairing          // were believed, until the quota was found deleted, made by others, or ahead of the record
)

// quota is one member's ResourceQuota. While it is absent or has no status
// nothing is enforced, and used is what the member really uses.
type quota struct {
	present bool
	synced  bool     // status is set
	grant   revision // the annotation; after a deletion, that of a copy which a user may have kept
	hard    amounts  // spec.hard
	limit   amounts  // status.hard
	used    amounts  // status.used
	doubted bool     // only for the check: others have changed it, or the record, and no write of ours has come since
}

// leader is one process that believes it may act. It keeps nothing but this.
type leader struct {
	op      op
	member  uint8
	grant   revision // opSeen: the annotation that was read; opCredit: the revision that was confirmed
	next    revision // opSend: the revision to write
	granted amounts  // opBelieve, opCredit: what to record; opSend: the hard to write
	target  amounts  // opBelieve: what to record
	absent  bool     // opSeen, opSend: there was no quota
	sets    bool     // opSend: the write sets hard
	late    bool     // what was read of the member is of a quota that was deleted or edited since
	stale   bool     // the record has changed since it was read
}

type op uint8

const (
	opIdle    op = iota
	opRecord     // has read the record; only in fine steps
	opSeen       // has read the record and a member: may write an intent or a fence
	opBelieve    // has seen its fence in the member: may complete the row
	opCredit     // has seen a target in force: may lower granted
	opSend       // has written the intent; the write to the member is still to be sent
)

// write is one request to a member that was sent and has not arrived.
type write struct {
	kind   writeKind
	member uint8
	test   revision // the annotation that the patch tests
	grant  revision // the annotation that it sets
	hard   amounts
	sets   bool // it sets hard
	spent  bool // only with resourceVersions: the object has changed since it was read
}

type writeKind uint8

const (
	writeNone writeKind = iota
	writeCreate
	writePatch
)

// budget counts the faults that are left where they are limited.
type budget struct {
	deletions, edits, losses, restores uint8
}

// key is a state, packed. Two states are equal when their keys are.
type key [4]uint64

// coder packs and unpacks a state: one description of the layout serves both.
type coder struct {
	key     key
	at      uint
	unpacks bool
}

// bits puts or takes the next n bits.
func (c *coder) bits(v uint64, n uint) uint64 {
	word, shift := c.at/64&3, c.at%64
	c.at += n
	mask := uint64(1)<<n - 1
	if c.unpacks {
		v = c.key[word] >> shift
		if shift+n > 64 {
			v |= c.key[word+1] << (64 - shift)
		}
		return v & mask
	}
	if v > mask {
		panic("model: a number does not fit its place in the key")
	}
	c.key[word] |= v << shift
	if shift+n > 64 {
		c.key[word+1] |= v >> (64 - shift)
	}
	return v
}

func (c *coder) bool(v *bool) {
	var n uint64
	if *v {
		n = 1
	}
	*v = c.bits(n, 1) == 1
}

func (c *coder) byte(v *uint8, n uint) { *v = uint8(c.bits(uint64(*v), n)) }

func (c *coder) revision(v *revision) { *v = revision(c.bits(uint64(*v), 4)) }

func (c *coder) amounts(v *amounts, keys int) {
	for k := range keys {
		c.byte(&v[k], 2)
	}
}

// state packs or unpacks all of s.
func (c *coder) state(s *state, o *Options) {
	c.fixed(s, o)
	for l := range o.Leaders {
		c.leader(&s.leaders[l], o.Keys)
	}
	for w := range o.Writes {
		c.write(&s.writes[w], o.Keys)
	}
}

// fixed packs or unpacks what has a place of its own: all but leaders and writes.
func (c *coder) fixed(s *state, o *Options) {
	c.amounts(&s.user, o.Keys)
	c.amounts(&s.lost, o.Keys)
	c.byte(&s.left.deletions, 2)
	c.byte(&s.left.edits, 2)
	c.byte(&s.left.losses, 2)
	c.byte(&s.left.restores, 2)
	c.record(&s.record, o)
	for i := range o.Members {
		c.member(s, i, o.Keys)
	}
	if o.Restores > 0 {
		c.record(&s.saved, o)
		for i := range o.Members {
			c.row(&s.saved.rows[i], o.Keys)
		}
	}
}

func (c *coder) record(r *record, o *Options) {
	c.bool(&r.made)
	if o.Revisions > 0 {
		c.revision(&r.revision)
	}
	c.amounts(&r.hard, o.Keys)
}

// member packs all that belongs to one member, its row of the record too.
func (c *coder) member(s *state, i, keys int) {
	q := &s.quotas[i]
	c.row(&s.record.rows[i], keys)
	c.bool(&s.known[i])
	c.bool(&s.covered[i])
	c.bool(&q.present)
	c.bool(&q.synced)
	c.revision(&q.grant)
	c.amounts(&q.hard, keys)
	c.amounts(&q.limit, keys)
	c.amounts(&q.used, keys)
	c.bool(&q.doubted)
}

func (c *coder) row(r *row, keys int) {
	c.byte((*uint8)(&r.state), 2)
	c.revision(&r.revision)
	c.amounts(&r.granted, keys)
	c.amounts(&r.target, keys)
	c.bool(&r.own)
	c.bool(&r.open)
}

func (c *coder) leader(l *leader, keys int) {
	c.byte((*uint8)(&l.op), 3)
	c.byte(&l.member, 2)
	c.revision(&l.grant)
	c.revision(&l.next)
	c.amounts(&l.granted, keys)
	c.amounts(&l.target, keys)
	c.bool(&l.absent)
	c.bool(&l.sets)
	c.bool(&l.late)
	c.bool(&l.stale)
}

func (c *coder) write(w *write, keys int) {
	c.byte((*uint8)(&w.kind), 2)
	c.byte(&w.member, 2)
	c.revision(&w.test)
	c.revision(&w.grant)
	c.amounts(&w.hard, keys)
	c.bool(&w.sets)
	c.bool(&w.spent)
}

func (k key) state(o *Options) state {
	var s state
	(&coder{key: k, unpacks: true}).state(&s, o)
	return s
}

// revisions calls visit for every place of s that holds a revision of member i.
func (s *state) revisions(i int, visit func(*revision)) {
	visit(&s.record.rows[i].revision)
	visit(&s.saved.rows[i].revision)
	visit(&s.quotas[i].grant)
	for l := range s.leaders {
		if s.leaders[l].op != opIdle && int(s.leaders[l].member) == i {
			visit(&s.leaders[l].grant)
			visit(&s.leaders[l].next)
		}
	}
	for w := range s.writes {
		if s.writes[w].kind != writeNone && int(s.writes[w].member) == i {
			visit(&s.writes[w].test)
			visit(&s.writes[w].grant)
		}
	}
}

// rank renumbers the revisions of each member to 0, 1, 2, ... in their order,
// which is all that the protocol looks at.
func (s *state) rank(members int) {
	for i := range members {
		in := uint64(1) // none stays none
		s.revisions(i, func(r *revision) { in |= 1 << *r })
		if in&(in+1) == 0 {
			continue // without gaps already
		}
		s.revisions(i, func(r *revision) { *r = revision(bits.OnesCount64(in & (1<<*r - 1))) })
	}
}
