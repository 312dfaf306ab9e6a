package federation

import (
	"time"

	"github.com/fleetquota/fleetquota/evaluator"
)

// links are the records of one Book, and which charges depend on which.
type links struct {
	records    map[objectID]evaluator.Record
	found      index // by what a record is found
	dependents index // what a charge looks up
}

// index is a set of objects for each Ref.
type index map[evaluator.Ref]map[objectID]struct{}

func newLinks() links {
	return links{records: map[objectID]evaluator.Record{}, found: index{}, dependents: index{}}
}

// set keeps the record of an object; a zero one is none. It lists the other
// objects whose charges may change by that.
func (l *links) set(id objectID, record evaluator.Record) []objectID {
	if len(l.records) == 0 && record.IsZero() {
		return nil
	}
	before := l.records[id]
	if before.Equal(record) {
		return nil
	}
	l.found.remove(id, before.Refs)
	l.dependents.remove(id, before.DependsOn)
	delete(l.records, id)
	if !record.IsZero() {
		l.records[id] = record
		l.found.add(id, record.Refs)
		l.dependents.add(id, record.DependsOn)
	}
	return l.touched(id, before, record)
}

// touched lists whose charges look up one of the records of an object.
func (l *links) touched(id objectID, records ...evaluator.Record) []objectID {
	seen := map[objectID]struct{}{id: {}}
	var others []objectID
	for _, record := range records {
		for _, ref := range record.Refs {
			for other := range l.dependents[ref] {
				if _, again := seen[other]; !again {
					seen[other] = struct{}{}
					others = append(others, other)
				}
			}
		}
	}
	return others
}

// lookup finds the records under a Ref.
func (l *links) lookup(ref evaluator.Ref) []evaluator.Record {
	var records []evaluator.Record
	for id := range l.found[ref] {
		records = append(records, l.records[id])
	}
	return records
}

func (x index) add(id objectID, refs []evaluator.Ref) {
	for _, ref := range refs {
		if x[ref] == nil {
			x[ref] = map[objectID]struct{}{}
		}
		x[ref][id] = struct{}{}
	}
}

func (x index) remove(id objectID, refs []evaluator.Ref) {
	for _, ref := range refs {
		delete(x[ref], id)
		if len(x[ref]) == 0 {
			delete(x, ref)
		}
	}
}

// dependent charges an object whose charge depends on others. The caller holds
// the lock.
func (b *Book) dependent(id objectID) (evaluator.Charge, bool) {
	if len(b.links.records) == 0 {
		return evaluator.Charge{}, false // as nearly always, and then nothing is looked up
	}
	record, found := b.links.records[id]
	if !found {
		return evaluator.Charge{}, false
	}
	charges, served := b.set.For(id.kind)
	charger, depends := charges.(evaluator.Dependent)
	if !served || !depends {
		return evaluator.Charge{}, false
	}
	return charger.ChargeRecord(record, b.links.lookup).At(b.now), true
}

// follow charges objects again, and keeps the moves for [Book.followed]. The
// caller holds the lock.
func (b *Book) follow(touched []objectID) {
	for _, id := range touched {
		charge, depends := b.dependent(id)
		if !depends {
			continue
		}
		if moved, _ := b.charge(b.kind(id.kind), id, Object{Charge: charge}); moved {
			b.moves = append(b.moves, Move{Namespace: id.namespace, Kind: id.kind})
		}
	}
}

// followed takes out the moves that others have caused. The caller holds the
// lock, and tells them once it does not.
func (b *Book) followed() []Move {
	moves := b.moves
	b.moves = nil
	return moves
}

// pass notes the time.
func (b *Book) pass(now time.Time) {
	if now.After(b.now) {
		b.now = now
	}
}
