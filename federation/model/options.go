package model

import (
	"fmt"
	"strings"
)

// Options say how large the world is and what may go wrong in it. Crashes,
// delays and lost writes are always allowed, as often as you like.
type Options struct {
	Members int // 1 to 3
	Keys    int // 1 or 2; each key has a limit of its own
	Leaders int // 1 or 2
	Writes  int // so many writes may be on their way at one time; 1 to 3
	Limit   int // the user's limit for every key, in units; 1 to 3

	UserChanges bool // the user lowers the limit by one unit and raises it again, any number of times
	Ready       bool // members begin with a row and a limit of 0, instead of nothing
	Existing    bool // members begin with a quota that somebody made, of hard Limit
	Busy        bool // what nothing bounds is used, up to Limit; so it is in any case where quotas are deleted

	Deletions int // a user deletes a quota so often, and may make it again from a copy; 0 to 2, or Forever, as the next two
	Edits     int // a user edits spec.hard so often
	Losses    int // the record is lost so often
	Restores  int // an older copy of the record is put back so often; 0 to 2

	// Revisions bounds how far revisions count; a new one is then one above
	// that of the record and the annotation that was read. 0: a new revision
	// differs from all that are still written anywhere, and counts on for ever.
	Revisions int

	// Fine takes every step of a leader by itself, and keeps what can have no
	// effect any more. It is the slow form that the fast one is checked against.
	Fine bool

	Variant Variant

	named bool // members and keys keep their names
}

// String says how large the world is and what goes wrong in it.
func (o *Options) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d members, %d keys, %d leaders, %d writes under way, limit %d", o.Members, o.Keys, o.Leaders, o.Writes, o.Limit)
	for _, f := range []struct {
		name  string
		times int
	}{{"deletions", o.Deletions}, {"edits", o.Edits}, {"losses of the record", o.Losses}, {"older copies put back", o.Restores}, {"revisions", o.Revisions}} {
		switch {
		case f.times == Forever && f.name != "revisions":
			fmt.Fprintf(&b, ", any number of %s", f.name)
		case f.times > 0:
			fmt.Fprintf(&b, ", at most %d %s", f.times, f.name)
		}
	}
	for _, f := range []struct {
		name string
		is   bool
	}{{"the limit changes", o.UserChanges}, {"members begin with a row", o.Ready}, {"members begin with a quota of others", o.Existing}, {"members begin busy", o.Busy}, {"step by step", o.Fine}} {
		if f.is {
			fmt.Fprintf(&b, ", %s", f.name)
		}
	}
	return b.String()
}

// Forever is a number of faults without end. Other numbers are below it.
const Forever = 3

// Variant says what is done otherwise than the protocol demands. The zero
// value is the protocol.
type Variant struct {
	NoTest              bool // patches do not test the annotation
	ReadAfterIntent     bool // the member is read after the record was written
	CreditOnSpec        bool // a credit does not look at status.hard
	CreditWithoutUsed   bool // a credit leaves nothing for what is in use
	CreditReread        bool // a credit reads the record again and does not look at the revision of the row
	ResourceVersionOnly bool // patches test the resourceVersion and leave the annotation; one that changes nothing changes no resourceVersion
	AdoptByReading      bool // what a member has is believed as it is read
	ReuseRevisions      bool // revisions begin again with a record that was lost; needs Revisions

	CreditWithoutAnnotation bool // a credit does not look at the annotation
	RaiseReplaces           bool // a raise above target sets granted to the new value even if granted is larger
	RaiseUnadopted          bool // raises go on although a member that had a row has none
	UnknownUID              bool // the row does not hold the UID of the quota, so a copy of it passes for it
	NoUID                   bool // patches do not test the UID
}

// monotone says that the annotation of one object only ever counts up, so that
// a patch whose test fails once fails for ever.
func (v Variant) monotone() bool {
	return !v.NoTest && !v.ResourceVersionOnly && !v.ReadAfterIntent && !v.ReuseRevisions && !v.NoUID
}
