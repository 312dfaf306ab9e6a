package synthetic

import (
	"errors"
	"sync"

	"k8s.io/utils/third_party/forked/golang/btree"
)

// store is what all kinds of one member share: the lock and the revision that
// each change raises, as in etcd.
type store struct {
	mu       sync.Mutex // guards revision and everything in the kinds
	revision uint64
}

// firstRevision leaves the versions of all objects ten digits for ever.
const firstRevision = 1_000_000_000

// change is what happened to an object.
type change byte

const (
	added change = iota
	modified
	deleted
)

// String is the change as a watch event names it.
func (c change) String() string { return [...]string{"ADDED", "MODIFIED", "DELETED"}[c] }

// event is one change of one object. The object that a deletion leaves has the
// version of the deletion.
type event[T any] struct {
	revision    uint64
	what        change
	before, now T
}

// history is the objects of one kind, in the order of their keys, and the latest
// changes: what the watch cache of an API server keeps. The lock of its store
// guards it.
type history[T any] struct {
	store   *store
	objects *btree.BTree[T]
	events  []event[T] // a ring of at most room
	room    int
	first   uint64 // the number of the oldest event in the ring
	next    uint64 // the number of the event to come
	known   uint64 // changes after this revision are in the ring
	changed chan struct{}
}

func newHistory[T any](s *store, room int, less func(a, b T) bool) *history[T] {
	const degree = 32
	return &history[T]{store: s, objects: btree.New(degree, less), room: room, known: s.revision, changed: make(chan struct{})}
}

// note applies a change that has raised the revision. The caller holds the lock.
func (h *history[T]) note(e event[T]) {
	if e.what == deleted {
		h.objects.Delete(e.before)
	} else {
		h.objects.ReplaceOrInsert(e.now)
	}
	if len(h.events) < h.room {
		h.events = append(h.events, e)
	} else {
		h.known = h.events[h.next%uint64(h.room)].revision
		h.events[h.next%uint64(h.room)] = e
		h.first++
	}
	h.next++
	close(h.changed)
	h.changed = make(chan struct{})
}

// forget drops all events, as if they had been long ago.
func (h *history[T]) forget() {
	h.events, h.first, h.next, h.known = nil, 0, 0, h.store.revision
}

var (
	errTooOld = errors.New("the version is older than what is kept")
	errSlow   = errors.New("the reader is slower than what happens")
)

// snapshot is the objects at one revision. It stays as it is.
type snapshot[T any] struct {
	objects  *btree.BTree[T]
	revision uint64
}

// now is the present, and the number of the event that comes next.
func (h *history[T]) now() (snapshot[T], uint64) {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	return snapshot[T]{h.objects.Clone(), h.store.revision}, h.next
}

// revision is the present one.
func (h *history[T]) revision() uint64 {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	return h.store.revision
}

// at is the objects as they were: those of now, with what happened since undone.
func (h *history[T]) at(revision uint64) (snapshot[T], error) {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	if revision < h.known {
		return snapshot[T]{}, errTooOld
	}
	past := h.objects.Clone()
	for n := h.next; n > h.first; n-- {
		e := h.events[(n-1)%uint64(h.room)]
		if e.revision <= revision {
			break
		}
		if e.what == added {
			past.Delete(e.now)
		} else {
			past.ReplaceOrInsert(e.before)
		}
	}
	return snapshot[T]{past, revision}, nil
}

// after is the number of the first event after a revision. If that is not kept
// any more, known is the oldest revision that would do.
func (h *history[T]) after(revision uint64) (number, known uint64, err error) {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	if revision < h.known {
		return 0, h.known, errTooOld
	}
	number = h.next
	for number > h.first && h.events[(number-1)%uint64(h.room)].revision > revision {
		number--
	}
	return number, h.known, nil
}

// read appends the events from a number on, at most as many as there is room
// for in the slice. Where there are none, more is closed once there are.
func (h *history[T]) read(from uint64, into []event[T]) (events []event[T], more <-chan struct{}, err error) {
	h.store.mu.Lock()
	defer h.store.mu.Unlock()
	if from < h.first {
		return nil, nil, errSlow
	}
	events = into
	for n := from; n < h.next && len(events) < cap(events); n++ {
		events = append(events, h.events[n%uint64(h.room)])
	}
	return events, h.changed, nil
}
