package wire

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/evaluator"
)

// Reader reads the objects of one kind of one member. It is safe for concurrent
// use.
type Reader struct {
	charges *Charges
	kind    schema.GroupResource
	set     *evaluator.Set
	table   *table // nil: messages of the kind are not read
	prefix  string // of its keys: the kind, and the rules by which it is charged
	same    *cost  // of all objects of the kind; nil: it differs

	mu         sync.Mutex // guards all below
	namespaces map[string]string
}

// Reader makes a reader of a kind for a member that is charged by the set.
func (c *Charges) Reader(kind schema.GroupResource, set *evaluator.Set) *Reader {
	r := &Reader{
		charges: c, kind: kind, set: set, table: c.tables[kind], namespaces: map[string]string{},
		prefix: kind.String() + " " + set.Rules() + " ",
	}
	if _, served := set.For(kind); served && !set.Special(kind) {
		r.same = r.charge(nil)
	}
	return r
}

// Reads says whether messages of the kind can be read. Others need to be decoded
// for [Reader.Of].
func (r *Reader) Reads() bool { return r.table != nil }

// Version is that of the messages that are read, whatever else is served.
func (r *Reader) Version() schema.GroupVersion { return r.table.kind.GroupVersion() }

// Read reads the message of one object. The message is not kept.
func (r *Reader) Read(data []byte) (*Object, error) {
	w := r.charges.walk()
	defer r.charges.done(w)
	if err := w.object(data, r.table.whole, r.prefix, r.table.single); err != nil {
		return nil, err
	}
	o := &Object{
		Namespace: r.namespace(w.part[itsNamespace]), Name: string(w.part[itsName]), Version: string(w.part[itsVersion]), ends: w.ends,
	}
	var err error
	if o.created, err = seconds(w.part[itsCreation]); err != nil {
		return nil, err
	}
	o.cost, err = r.find(w, data)
	return o, err
}

// find says what the object costs that the walk has gone through.
func (r *Reader) find(w *walk, data []byte) (*cost, error) {
	switch {
	case r.table.single:
		return r.decode(w)
	case !w.lone:
		if found, err := r.shared(w); err != nil || !found.lone {
			return found, err
		}
	}
	if err := w.object(data, r.table.whole, r.prefix, true); err != nil {
		return nil, err
	}
	return r.decode(w)
}

// shared says what all objects cost that have the same deciding bytes.
func (r *Reader) shared(w *walk) (*cost, error) {
	if found := r.charges.find(w.cut); found != nil {
		return found, nil
	}
	found, err := r.decode(w)
	if err != nil {
		return nil, err
	}
	if !found.record.IsZero() {
		found = &cost{lone: true}
	}
	r.charges.note(string(w.cut), found)
	return found, nil
}

// decode charges what a walk has cut out.
func (r *Reader) decode(w *walk) (*cost, error) {
	obj := r.table.make()
	if err := obj.Unmarshal(w.cut[len(r.prefix):]); err != nil {
		return nil, malformed("the API's decoder refuses it")
	}
	return r.charge(obj), nil
}

var errNotCounted = errors.New("no evaluator")

// charge asks the evaluator what an object costs.
func (r *Reader) charge(obj runtime.Object) *cost {
	record, err := r.set.Record(r.kind, obj)
	if err != nil {
		return &cost{err: err}
	}
	e, served := r.set.For(r.kind)
	switch {
	case !served && r.set.Special(r.kind): // it costs nothing by itself
		return &cost{record: record}
	case !served:
		return &cost{err: errNotCounted}
	}
	charge, err := e.Charge(obj, time.Time{})
	return &cost{charge: charge, record: record, err: err}
}

// Of charges an object that has been decoded, or its metadata where no more is
// needed.
func (r *Reader) Of(obj runtime.Object) *Object {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return &Object{created: undated, cost: &cost{err: fmt.Errorf("read its metadata: %w", err)}}
	}
	o := Named(accessor)
	if o.cost = r.same; o.cost == nil {
		o.cost = r.charge(obj)
	}
	return o
}

// namespace is the text of a namespace, the same for all objects in it.
func (r *Reader) namespace(text []byte) string {
	const most = 10_000
	r.mu.Lock()
	defer r.mu.Unlock()
	known, found := r.namespaces[string(text)]
	if !found {
		if len(r.namespaces) >= most {
			clear(r.namespaces)
		}
		known = string(text)
		r.namespaces[known] = known
	}
	return known
}

// seconds reads a time as the API's decoder does: only its seconds.
func seconds(data []byte) (int64, error) {
	if len(data) == 0 {
		return undated, nil
	}
	var at uint64
	s := scan{rest: data}
	for s.next() {
		if s.number <= 2 && s.is(protowire.VarintType) && s.number == 1 {
			at = s.value
		}
	}
	return int64(at), s.err
}

// List reads the message of a list, one object after the other.
func (r *Reader) List(data []byte) (*List, error) {
	const listMeta, items = 1, 2
	list := &List{}
	s := scan{rest: data}
	for s.next() {
		if s.number > items || !s.is(protowire.BytesType) {
			continue
		}
		if s.number == listMeta {
			if err := list.Unmarshal(s.content); err != nil {
				return nil, malformed("the metadata of a list")
			}
			continue
		}
		o, err := r.Read(s.content)
		if err != nil {
			return nil, err
		}
		if o.Name == "" {
			return nil, malformed("an object without a name")
		}
		list.Items = append(list.Items, o)
	}
	return list, s.err
}
