package federation

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/evaluator"
)

// Object is one object's charge, as an observer found it.
type Object struct {
	Namespace, Name string
	Created         time.Time // its creationTimestamp; may be zero where nobody asks for each Change
	Charge          evaluator.Charge
	// Record is what the charges of this and other objects depend on, as
	// [evaluator.Set.Record] finds it; for almost every object it is zero. Where
	// the object's own charge depends on others, Charge is not looked at.
	Record evaluator.Record
}

// Book is one engagement's page of a [Ledger]: what every object of one member
// costs. Its observers write it, one for each kind. It is safe for concurrent
// use.
type Book struct {
	ledger *Ledger
	member string
	moved  func(Move)
	change func(Change)

	mu     sync.Mutex // guards all below
	set    *evaluator.Set
	closed bool
	kinds  map[schema.GroupResource]*kind
	costs  interner
	timers timers
	links  links
	moves  []Move    // that a change of another object has caused, to be told
	now    time.Time // the member's, as last heard
}

// kind is what a Book knows of one kind of object.
type kind struct {
	synced     bool                  // a first list was complete
	version    string                // the resourceVersion that its observer has reached
	trouble    string                // why the numbers are not current, in one word; empty: they are
	namespaces map[string]*namespace // name -> objects and sums
}

// names is every object of now: namespace -> names.
func (k *kind) names() map[string]map[string]struct{} {
	names := make(map[string]map[string]struct{}, len(k.namespaces))
	for ns, page := range k.namespaces {
		names[ns] = make(map[string]struct{}, len(page.objects))
		for name := range page.objects {
			names[ns][name] = struct{}{}
		}
	}
	return names
}

// namespace is the objects of one kind in one namespace, and their sums.
type namespace struct {
	objects map[string]*cost // name -> what it costs
	room    int              // the most objects since the map was made: a map never shrinks
	sums    map[evaluator.Class]*sum
}

// shrink gives the room of objects back that are gone, now and then.
func (n *namespace) shrink() {
	const small = 64
	if n.room <= small || len(n.objects) > n.room/2 {
		return
	}
	left := make(map[string]*cost, len(n.objects))
	maps.Copy(left, n.objects)
	n.objects, n.room = left, len(left)
}

func newBook(l *Ledger, member string, set *evaluator.Set, moved func(Move)) *Book {
	if moved == nil {
		moved = func(Move) {}
	}
	return &Book{
		ledger: l, member: member, moved: moved, change: func(Change) {}, set: set,
		kinds: map[schema.GroupResource]*kind{}, costs: newInterner(), timers: newTimers(), links: newLinks(),
	}
}

// OnChange calls a function for each change of an object's cost from now on. It
// must be called before the first object is noted. The Book is locked
// meanwhile, so that nobody can read a sum before its changes were told: the
// function must not block, and must not use the Ledger.
func (b *Book) OnChange(change func(Change)) { b.change = change }

// Learn replaces the evaluators, after the member's discovery has changed.
func (b *Book) Learn(set *evaluator.Set) {
	b.mu.Lock()
	open := !b.closed
	if open {
		b.set = set
		b.follow(slices.Collect(maps.Keys(b.links.records)))
	}
	b.moves = nil // all is told below
	b.mu.Unlock()
	if open {
		b.tell(Move{})
	}
}

// Set notes what an object costs from now on.
func (b *Book) Set(gr schema.GroupResource, o Object) {
	var moved, added bool
	b.mu.Lock()
	if !b.closed {
		moved, added = b.put(gr, b.kind(gr), o)
	}
	others := b.followed()
	b.mu.Unlock()
	if moved {
		b.tell(Move{Namespace: o.Namespace, Kind: gr, Added: added})
	}
	b.tell(others...)
}

// Delete notes that an object is gone.
func (b *Book) Delete(gr schema.GroupResource, ns, name string) {
	b.mu.Lock()
	moved := !b.closed && b.remove(b.kinds[gr], objectID{gr, ns, name})
	others := b.followed()
	b.mu.Unlock()
	if moved {
		b.tell(Move{Namespace: ns, Kind: gr, Deleted: true})
	}
	b.tell(others...)
}

// Reached notes up to which resourceVersion the observer of a kind has seen
// everything, that of what it is about to note included.
func (b *Book) Reached(gr schema.GroupResource, resourceVersion string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.closed {
		b.kind(gr).version = resourceVersion
	}
}

// Replace notes a complete list of a kind: the kind is current from now on.
// For [Namespaces] each namespace is an Object with no name. The Book is locked
// while it goes through the objects: they must be at hand, and using the Book
// from there would wait for ever.
func (b *Book) Replace(gr schema.GroupResource, objects iter.Seq[Object]) {
	b.mu.Lock()
	if b.closed {
		b.mu.Unlock()
		return
	}
	k := b.kind(gr)
	fresh := !k.synced || k.trouble != ""
	touched := b.replace(gr, k, objects)
	k.synced, k.trouble = true, ""
	others := b.followed()
	b.mu.Unlock()

	b.ledger.supersede(b, gr)
	b.tell(others...)
	if fresh {
		b.tell(Move{Kind: gr})
		return
	}
	for ns := range touched {
		b.tell(Move{Namespace: ns, Kind: gr})
	}
}

// replace sets all objects and deletes those of the kind that are not among
// them. It returns the namespaces whose sums have moved.
func (b *Book) replace(gr schema.GroupResource, k *kind, objects iter.Seq[Object]) map[string]struct{} {
	touched := map[string]struct{}{}
	left := k.names()
	for o := range objects {
		delete(left[o.Namespace], o.Name)
		if moved, _ := b.put(gr, k, o); moved {
			touched[o.Namespace] = struct{}{}
		}
	}
	for ns, names := range left {
		for name := range names {
			if b.remove(k, objectID{gr, ns, name}) {
				touched[ns] = struct{}{}
			}
		}
	}
	return touched
}

// Agrees says whether the objects of a kind in a namespace are these, at the
// same costs, and the kind is current.
func (b *Book) Agrees(gr schema.GroupResource, ns string, objects []Object) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := b.kinds[gr]
	if b.closed || k == nil || !k.synced || k.trouble != "" {
		return false
	}
	page := k.namespaces[ns]
	if page == nil {
		return len(objects) == 0
	}
	same := len(objects) == len(page.objects)
	for i := 0; same && i < len(objects); i++ {
		now := b.costs.take(objects[i].Charge)
		same = page.objects[objects[i].Name] == now
		b.costs.release(now)
	}
	return same
}

// Fail notes that a kind cannot be counted at present, and why in one word.
// Its last numbers stay, marked. An empty reason says that it can be again
// without a new list.
func (b *Book) Fail(gr schema.GroupResource, reason string) {
	b.mu.Lock()
	changed := !b.closed && b.kind(gr).trouble != reason
	if changed {
		b.kind(gr).trouble = reason
	}
	b.mu.Unlock()
	if changed {
		b.tell(Move{Kind: gr})
	}
}

// Keep drops every kind that is not among those asked for, of this engagement
// and of the one before.
func (b *Book) Keep(asked map[schema.GroupResource]struct{}) {
	for _, gr := range b.ledger.counted(b.member) {
		if _, ok := asked[gr]; !ok {
			b.Drop(gr)
		}
	}
}

// Drop forgets a kind that nobody asks for any more. Its observer must have
// ended: what it notes later would begin the kind anew.
func (b *Book) Drop(gr schema.GroupResource) {
	b.mu.Lock()
	open := !b.closed
	if k := b.kinds[gr]; open && k != nil {
		k.synced = false // nothing is released: it is only counted no longer
		for ns, page := range k.namespaces {
			for name := range page.objects {
				b.remove(k, objectID{gr, ns, name})
			}
		}
		delete(b.kinds, gr)
	}
	others := b.followed()
	b.mu.Unlock()
	if open {
		b.ledger.supersede(b, gr)
		b.tell(Move{Kind: gr})
	}
	b.tell(others...)
}

// Expire applies the charges whose time has come by now, the member's own
// time, and says when the next will; zero when none waits.
func (b *Book) Expire(now time.Time) time.Time {
	var moves []objectID
	b.mu.Lock()
	b.pass(now)
	for !b.closed {
		id, after, ok := b.timers.due(now)
		if !ok {
			break
		}
		if moved, _ := b.charge(b.kind(id.kind), id, Object{Charge: *after}); moved {
			moves = append(moves, id)
		}
	}
	next := b.timers.next()
	b.mu.Unlock()
	for _, id := range moves {
		b.tell(Move{Namespace: id.namespace, Kind: id.kind})
	}
	return next
}

// Next says when [Book.Expire] has something to do; zero when nothing waits.
func (b *Book) Next() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.timers.next()
}

// Synced says which of the kinds are current, and why the others are not.
func (b *Book) Synced(kinds iter.Seq[schema.GroupResource]) (current bool, trouble map[schema.GroupResource]string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	current = true
	trouble = map[schema.GroupResource]string{}
	for gr := range kinds {
		k := b.kinds[gr]
		switch {
		case k != nil && k.trouble != "":
			current, trouble[gr] = false, k.trouble
		case k == nil || !k.synced:
			current = false
		}
	}
	return current, trouble
}

// Close ends the engagement's page: the numbers stay, stale, and nothing that
// comes later through this handle changes them.
func (b *Book) Close() {
	b.mu.Lock()
	open := !b.closed
	b.end()
	b.mu.Unlock()
	if open {
		b.tell(Move{})
	}
}

// end closes the book and drops what only an open one needs, kinds whose first
// list was never complete among it. The caller holds the lock.
func (b *Book) end() {
	b.closed = true
	b.costs, b.timers, b.links = interner{}, newTimers(), newLinks()
	maps.DeleteFunc(b.kinds, func(_ schema.GroupResource, k *kind) bool { return !k.synced })
}

// retire closes a book that has a successor, and says whether it holds nothing.
func (b *Book) retire() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end()
	return len(b.kinds) == 0
}

// forget drops a kind from a closed book, and says whether nothing is left.
func (b *Book) forget(gr schema.GroupResource) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.kinds, gr)
	return len(b.kinds) == 0
}

// put sets one object, and charges again what depends on it. It says whether
// the object itself has moved a sum that is in use, and whether because it is
// new. The caller holds the lock.
func (b *Book) put(gr schema.GroupResource, k *kind, o Object) (moved, added bool) {
	id := objectID{gr, o.Namespace, o.Name}
	touched := b.links.set(id, o.Record)
	if charge, depends := b.dependent(id); depends {
		o.Charge = charge
	}
	moved, added = b.charge(k, id, o)
	b.follow(touched)
	return moved, added
}

// charge sets what one object costs, as put does. The caller holds the lock.
func (b *Book) charge(k *kind, id objectID, o Object) (moved, added bool) {
	b.timers.set(id, o.Charge)
	page := k.namespaces[id.namespace]
	if page == nil {
		page = &namespace{objects: map[string]*cost{}, sums: map[evaluator.Class]*sum{}}
		k.namespaces[id.namespace] = page
	}
	before, found := page.objects[id.name]
	now := b.costs.take(o.Charge)
	if found && before == now {
		b.costs.release(before)
		return false, false
	}
	page.objects[id.name] = now
	page.room = max(page.room, len(page.objects))
	page.add(now)
	if k.synced {
		b.change(Change{Namespace: id.namespace, Kind: id.kind, Created: o.Created, Version: k.version, Was: before.visible(), Is: &now.Cost})
	}
	if found {
		page.subtract(before)
		b.costs.release(before)
	}
	return k.synced, k.synced && !found && len(o.Charge.Amounts) > 0
}

// remove deletes one object and says whether that has moved a sum that is in
// use. The caller holds the lock.
func (b *Book) remove(k *kind, id objectID) bool {
	if k == nil || k.namespaces[id.namespace] == nil {
		return false
	}
	page := k.namespaces[id.namespace]
	before, found := page.objects[id.name]
	if !found {
		return false
	}
	b.timers.drop(id)
	delete(page.objects, id.name)
	page.subtract(before)
	b.costs.release(before)
	if k.synced {
		b.change(Change{Namespace: id.namespace, Kind: id.kind, Version: k.version, Was: &before.Cost})
	}
	if len(page.objects) == 0 {
		delete(k.namespaces, id.namespace)
	}
	page.shrink()
	b.follow(b.links.set(id, evaluator.Record{}))
	return k.synced
}

// kind finds or makes what is known of a kind. The caller holds the lock.
func (b *Book) kind(gr schema.GroupResource) *kind {
	k := b.kinds[gr]
	if k == nil {
		k = &kind{namespaces: map[string]*namespace{}}
		b.kinds[gr] = k
	}
	return k
}

// tell passes moves of this member on. The caller holds no lock.
func (b *Book) tell(moves ...Move) {
	for _, move := range moves {
		move.Member = b.member
		b.moved(move)
		b.ledger.moved(move)
	}
}
