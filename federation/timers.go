package federation

import (
	"container/heap"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/evaluator"
)

type objectID struct {
	kind            schema.GroupResource
	namespace, name string
}

// timers are the charges that change with time alone, soonest first.
type timers struct {
	queue timerQueue
	byID  map[objectID]*timer
}

type timer struct {
	id    objectID
	at    time.Time
	after *evaluator.Charge
	index int // in the queue
}

func newTimers() timers { return timers{byID: map[objectID]*timer{}} }

// set keeps, moves or drops the timer of an object, as its charge says.
func (t *timers) set(id objectID, charge evaluator.Charge) {
	t.drop(id)
	if charge.Until.IsZero() || charge.After == nil {
		return
	}
	entry := &timer{id: id, at: charge.Until, after: charge.After}
	t.byID[id] = entry
	heap.Push(&t.queue, entry)
}

func (t *timers) drop(id objectID) {
	if len(t.byID) == 0 {
		return // as nearly always, and then nothing is looked up
	}
	entry := t.byID[id]
	if entry == nil {
		return
	}
	heap.Remove(&t.queue, entry.index)
	delete(t.byID, id)
}

// due takes out the first timer whose time has passed by now.
func (t *timers) due(now time.Time) (objectID, *evaluator.Charge, bool) {
	if len(t.queue) == 0 || !now.After(t.queue[0].at) {
		return objectID{}, nil, false
	}
	first := t.queue[0]
	t.drop(first.id)
	return first.id, first.after, true
}

// next is the first moment at which a timer is due, which is just after its
// time; zero when there is none.
func (t *timers) next() time.Time {
	if len(t.queue) == 0 {
		return time.Time{}
	}
	return t.queue[0].at.Add(time.Nanosecond)
}

// timerQueue is a heap by time.
type timerQueue []*timer

// Len is for container/heap.
func (q *timerQueue) Len() int { return len(*q) }

// Less is for container/heap.
func (q *timerQueue) Less(i, j int) bool { return (*q)[i].at.Before((*q)[j].at) }

// Swap is for container/heap.
func (q *timerQueue) Swap(i, j int) {
	queue := *q
	queue[i], queue[j] = queue[j], queue[i]
	queue[i].index, queue[j].index = i, j
}

// Push is for container/heap.
func (q *timerQueue) Push(x any) {
	entry := x.(*timer) //nolint:errcheck,forcetypeassert // only set pushes
	entry.index = len(*q)
	*q = append(*q, entry)
}

// Pop is for container/heap.
func (q *timerQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return last
}
