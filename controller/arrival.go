package controller

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/fleetquota/fleetquota/evaluator/wire"
)

// arrival is a list that arrives as a stream of events. client-go's reflector
// would keep it in a store of its own until it is complete, each object under a
// key that is made for it: the peak of the hub's memory.
type arrival struct {
	version string // the resourceVersion of the list, once it is complete
	blocks  [][]wire.Object
	length  int
	gone    map[types.NamespacedName]int // name -> the length when it was deleted
}

// blockSize is large enough that blocks cost nothing, and small enough for a
// small list.
const blockSize = 256

// add notes an object. The latest of a name counts.
func (a *arrival) add(o *wire.Object) {
	last := len(a.blocks) - 1
	switch {
	case last < 0:
		a.blocks = append(a.blocks, nil) // grows: most lists are short
	case len(a.blocks[last]) >= blockSize:
		a.blocks = append(a.blocks, make([]wire.Object, 0, blockSize))
	}
	last = len(a.blocks) - 1
	kept := *o
	kept.Version = "" // that of the list counts
	a.blocks[last] = append(a.blocks[last], kept)
	a.length++
}

// remove notes that an object is gone.
func (a *arrival) remove(o *wire.Object) {
	if a.gone == nil {
		a.gone = map[types.NamespacedName]int{}
	}
	a.gone[types.NamespacedName{Namespace: o.Namespace, Name: o.Name}] = a.length
}

// drain hands out the objects that exist, in the order in which they came, and
// lets go of them on the way: whoever takes them grows meanwhile.
func (a *arrival) drain() iter.Seq[*wire.Object] {
	return func(yield func(*wire.Object) bool) {
		n := 0
		for at, block := range a.blocks {
			a.blocks[at] = nil
			for i := range block {
				o := &block[i]
				deleted, found := a.gone[types.NamespacedName{Namespace: o.Namespace, Name: o.Name}]
				if (!found || n >= deleted) && !yield(o) {
					return
				}
				n++
			}
		}
	}
}

// take notes one event, and says whether the list is complete.
func (a *arrival) take(event watch.Event, read func(any) (*wire.Object, error)) (complete bool, err error) {
	if event.Type == watch.Bookmark {
		bookmark, err := meta.Accessor(event.Object)
		if err != nil {
			return false, fmt.Errorf("read a bookmark: %w", err)
		}
		a.version = bookmark.GetResourceVersion()
		return bookmark.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true", nil
	}
	o, err := read(event.Object)
	switch {
	case err != nil:
		return false, err
	case event.Type == watch.Deleted:
		a.remove(o)
	default:
		a.add(o)
	}
	return false, nil
}

// source lists and watches as another does, at the gate's pace, and reads lists
// that arrive as a stream into the page.
func (p *page) source(from cache.ListerWatcherWithContext) cache.ListerWatcher {
	turn := p.engagement.turn
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if o.Continue != "" { // nobody says when the last page has come
				return from.ListWithContext(ctx, o)
			}
			leave, err := turn.enter(ctx)
			if err != nil {
				return nil, err
			}
			defer leave()
			return from.ListWithContext(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if o.SendInitialEvents == nil || !*o.SendInitialEvents {
				return from.WatchWithContext(ctx, o)
			}
			leave, err := turn.enter(ctx)
			if err != nil {
				return nil, err
			}
			defer leave()
			return p.stream(ctx, from, o)
		},
	}
}

// stream asks for a list as a stream, and again when it breaks off: what the
// reflector would ask for then is the whole list in one answer.
func (p *page) stream(ctx context.Context, from cache.WatcherWithContext, o metav1.ListOptions) (watch.Interface, error) {
	backoff := patience(2 * time.Second)
	for {
		w, err := from.WatchWithContext(ctx, o)
		if err != nil {
			return nil, err
		}
		rest, err := p.receive(w)
		if !errors.Is(err, errBrokeOff) || ctx.Err() != nil {
			return rest, err
		}
		pause(ctx, backoff.Step())
	}
}

var errBrokeOff = errors.New("the list broke off")

// receive reads a list off a watch up to its end. What it returns goes on with
// the event that ended the list, so that the reflector sees an empty one: the
// page has it, for Replace.
func (p *page) receive(w watch.Interface) (watch.Interface, error) {
	p.arrived = nil
	arrived := &arrival{}
	for event := range w.ResultChan() {
		p.hear()
		if event.Type == watch.Error {
			return startingWith(event, w), nil
		}
		complete, err := arrived.take(event, p.chargeable)
		if err != nil {
			w.Stop()
			return nil, err
		}
		if complete {
			p.arrived = arrived
			return startingWith(event, w), nil
		}
	}
	if arrived.length > 0 {
		w.Stop()
		return nil, errBrokeOff
	}
	return w, nil // a reflector has rules of its own for a watch without events
}

// restOf is a watch of which events were read. The last of them comes again.
type restOf struct {
	watch.Interface

	first chan watch.Event // holds one until it was read
}

func startingWith(event watch.Event, w watch.Interface) watch.Interface {
	first := make(chan watch.Event, 1)
	first <- event
	return &restOf{Interface: w, first: first}
}

// ResultChan is where the next event comes from. A reflector asks for each.
func (r *restOf) ResultChan() <-chan watch.Event {
	if len(r.first) > 0 {
		return r.first
	}
	return r.Interface.ResultChan()
}
