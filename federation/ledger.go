package federation

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// Namespaces is the kind under which a Book notes which namespaces its member
// has: see [Book.Replace].
var Namespaces = schema.GroupResource{Resource: "namespaces"} //nolint:gochecknoglobals // a constant that Go cannot write as one

// Move says whose usage may have moved.
type Move struct {
	Member    string
	Namespace string               // empty: any
	Kind      schema.GroupResource // empty: any
	Added     bool                 // an object was added and nothing else: admission has charged for it already
	Deleted   bool                 // an object was deleted
}

// Change is what an object cost before and what it costs now. That a kind is
// counted for the first time, or no longer, is none.
type Change struct {
	Namespace string
	Kind      schema.GroupResource
	Created   time.Time // the object's creationTimestamp; zero: it is gone, or only time has passed
	Version   string    // the resourceVersion that the kind's observer has reached; empty: not known
	Was       *Cost     // nil: the object is new
	Is        *Cost     // nil: the object is gone
}

// Reach is what the connection says of a member as a whole.
type Reach struct {
	Phase       v1alpha1.Phase // Live, Stale, Unreachable or NeverSynced
	LastContact time.Time      // when the member last answered; zero: never
	Reason      string         // why it is not live, in one word
}

// same says whether two reaches say the same of a member's numbers.
func (r Reach) same(o Reach) bool {
	return r.Phase == o.Phase && r.Reason == o.Reason && (r.Phase == v1alpha1.Live || r.LastContact.Equal(o.LastContact))
}

// Ledger holds every charge of every member. It is safe for concurrent use.
type Ledger struct {
	moved func(Move)

	mu      sync.RWMutex       // guards members and what hangs on them, books' pages aside
	members map[string]*member // name -> member
}

// member is one member's account.
type member struct {
	reach Reach
	books []*Book // oldest first; all but the last are closed and only fill gaps of their successors
}

// NewLedger makes an empty Ledger. It calls moved, which must not block and
// may be nil, after each change that can move a sum.
func NewLedger(moved func(Move)) *Ledger {
	if moved == nil {
		moved = func(Move) {}
	}
	return &Ledger{moved: moved, members: map[string]*member{}}
}

// Mark notes how far the connection to a member can be relied on. That a live
// member has answered again moves nothing.
func (l *Ledger) Mark(name string, reach Reach) {
	l.mu.Lock()
	m := l.account(name)
	changed := !m.reach.same(reach)
	m.reach = reach
	l.mu.Unlock()
	if changed {
		l.moved(Move{Member: name})
	}
}

// Open begins the page of a new engagement with a member. The numbers of the
// one before stay in use, as stale, for every kind that the new one has not
// yet counted; the Book before is closed if it was not. The new one calls moved,
// which must not block and may be nil, beside that of the Ledger.
func (l *Ledger) Open(name string, set *evaluator.Set, moved func(Move)) *Book {
	book := newBook(l, name, set, moved)
	l.mu.Lock()
	m := l.account(name)
	m.books = append(slices.DeleteFunc(m.books, (*Book).retire), book)
	l.mu.Unlock()
	l.moved(Move{Member: name})
	return book
}

// Erase forgets a member and all its numbers.
func (l *Ledger) Erase(name string) {
	l.mu.Lock()
	_, found := l.members[name]
	delete(l.members, name)
	l.mu.Unlock()
	if found {
		l.moved(Move{Member: name})
	}
}

// account finds or makes a member's account. The caller holds the lock.
func (l *Ledger) account(name string) *member {
	m := l.members[name]
	if m == nil {
		m = &member{reach: Reach{Phase: v1alpha1.NeverSynced}}
		l.members[name] = m
	}
	return m
}

// counted is every kind that a book of the member has a page of.
func (l *Ledger) counted(name string) []schema.GroupResource {
	l.mu.RLock()
	defer l.mu.RUnlock()
	m := l.members[name]
	if m == nil {
		return nil
	}
	var kinds []schema.GroupResource
	for _, book := range m.books {
		book.mu.Lock()
		kinds = slices.AppendSeq(kinds, maps.Keys(book.kinds))
		book.mu.Unlock()
	}
	return kinds
}

// supersede drops a kind from the books before one that has now counted it, or
// that nobody asks for it any more.
func (l *Ledger) supersede(by *Book, kind schema.GroupResource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.members[by.member]
	if m == nil {
		return
	}
	place := slices.Index(m.books, by)
	if place <= 0 {
		return
	}
	before := slices.Clone(m.books[:place])
	before = slices.DeleteFunc(before, func(old *Book) bool { return old.forget(kind) })
	m.books = append(before, m.books[place:]...)
}
