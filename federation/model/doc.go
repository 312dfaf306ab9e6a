// Package model searches the grant protocol for a way to break its promise.
//
// The promise: for every key, what the members with a grant may use, including
// any write still on its way that could still take effect, never adds up to
// more than the limit on record. What member i may use is
//
//	B(i) = max(spec.hard, status.hard, status.used, the hard of writes under way)
//
// The package is a small copy of the world: the record, the quota of each
// member, leaders, and the writes between them. [Search] looks at every state
// that can be reached, nearest first, and returns the shortest way to one that
// breaks the promise. Each [Variant] is the protocol with one mistake in it;
// the search finds all that are mistakes. Nothing but tests imports the package.
//
// # What happens in the world
//
// Leaders do not know of each other, nor of any election. One may stop between
// any two steps, for ever or for a while. The record changes by
// compare-and-swap. A write to a member arrives late, or never, and at most
// once; no leader waits for its answer, which covers lost answers. Reads come
// from etcd, and are used later. The native controller sets status.hard to
// spec.hard of the same object version, some time later. Admission raises used
// up to status.hard; used falls at any time. A leader may choose any target at
// any time, so that every mode of distribution is covered.
//
// # Whom the promise covers
//
// A member, once a leader has confirmed its first write there and completed
// its row. Not from the moment that somebody else deletes its quota or edits
// spec.hard: until a write of ours was confirmed there again, the member may
// use what it likes, and counts with what the record keeps for it, so that the
// harm does not spread. A record that was lost takes nobody out: until all
// rows are made again, the limit on record is the one that was lost. A record
// that was replaced by an older copy takes everybody out, since nothing tells
// the hub of it; the same as after a restore of the hub's etcd.
//
// # What is left out, and why that loses nothing
//
// Two states are one if they differ only in the names of members, keys and
// leaders, or in the distance between revisions, since the protocol only asks
// which of two is larger. Revisions of different members are never compared.
// A leader that reads the record reads a member at the same moment: had the
// record changed in between, the compare-and-swap would fail. For the same
// reason a leader forgets what it has read when the record changes, credits
// aside. A leader that records an intent sends it at the same moment: to stop
// in between is to lose the write, and to wait is to delay it. A patch whose
// test fails is dropped, since the annotation of one object never comes back.
// [Options.Fine] does without all but the first; tests compare the two.
//
// States are kept as exact keys of 256 bits, not as hashes: no state is taken
// for another.
package model
