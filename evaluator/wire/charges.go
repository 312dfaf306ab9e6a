package wire

import (
	"sync"
	"unsafe"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/evaluator"
)

// Charges remembers what objects cost by the bytes that decide it. Readers of
// all members share one. It is safe for concurrent use.
type Charges struct {
	tables map[schema.GroupResource]*table
	walks  sync.Pool // of *walk
	most   int       // bytes of a generation

	mu         sync.Mutex       // guards all below
	young, old map[string]*cost // deciding bytes -> cost
	size       int              // of young, in bytes
}

// cost is what objects cost that have the same deciding bytes. It is never
// changed.
type cost struct {
	charge evaluator.Charge // from the beginning of time
	record evaluator.Record
	err    error // why there is no charge
	// lone: others depend on the objects, so that each is decoded by itself.
	lone bool
}

// defaultMost is the bytes that charges take at most, for some ten thousand
// workloads that differ.
const defaultMost = 32 << 20

// NewCharges makes an empty memory of charges that takes at most so many bytes;
// 32 MiB when that is 0.
func NewCharges(most int) *Charges {
	if most == 0 {
		most = defaultMost
	}
	return &Charges{
		tables: tables(), walks: sync.Pool{New: func() any { return &walk{} }},
		most: most / 2, young: map[string]*cost{},
	}
}

// find looks up what objects cost; nil: it is not known.
func (c *Charges) find(deciding []byte) *cost {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found := c.young[string(deciding)]; found != nil {
		return found
	}
	found := c.old[string(deciding)]
	if found != nil {
		c.keep(string(deciding), found)
	}
	return found
}

// note remembers what objects cost.
func (c *Charges) note(deciding string, found *cost) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(deciding, found)
}

// keep puts a cost among the young. When these have grown to half of what is
// allowed they become the old, and the old that nobody asked for since are
// forgotten. The caller holds the lock.
func (c *Charges) keep(deciding string, found *cost) {
	size := len(deciding) + found.size()
	if size > c.most/16 {
		return // one object's own
	}
	if c.size+size > c.most {
		c.young, c.old, c.size = map[string]*cost{}, c.young, 0
	}
	if _, known := c.young[deciding]; !known {
		c.young[deciding] = found
		c.size += size
	}
}

// size is roughly the bytes that a cost takes, its place among others included.
func (c *cost) size() int {
	const place = 64
	size := place + int(unsafe.Sizeof(*c)) + len(c.charge.Class.PriorityClass) + len(c.charge.Class.VolumeAttributesClasses)
	for _, amount := range c.charge.Amounts {
		size += int(unsafe.Sizeof(amount)) + len(amount.Name)
	}
	return size
}

// walk takes a walk that is not in use.
func (c *Charges) walk() *walk { return c.walks.Get().(*walk) } //nolint:errcheck,forcetypeassert // there is nothing else in it

// done gives a walk back, unless it has grown large.
func (c *Charges) done(w *walk) {
	const large = 64 << 10
	if cap(w.cut) <= large {
		*w = walk{cut: w.cut[:0]}
		c.walks.Put(w)
	}
}
