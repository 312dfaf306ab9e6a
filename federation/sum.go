package federation

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetquota/fleetquota/evaluator"
)

// Cost is what an object costs at present. It is never changed.
type Cost struct {
	Amounts evaluator.Amounts
	Class   evaluator.Class
}

// cost is a Cost as many objects share it.
type cost struct {
	Cost

	key     string
	alias   *evaluator.Amount // the first of the amounts that it was found for last; nil: none
	holders int
}

// visible is the part that others may see; nil of nil.
func (c *cost) visible() *Cost {
	if c == nil {
		return nil
	}
	return &c.Cost
}

// interner keeps one cost for all objects that are charged the same. Pods of
// one workload are; so a watched pod costs a map entry and a pointer.
type interner struct {
	known map[internKey]*cost
	// shared finds a cost by the memory of its amounts, which nobody changes: a
	// reader gives the same to all objects whose charge it looked up.
	shared map[*evaluator.Amount]*cost
}

type internKey struct {
	class   evaluator.Class
	amounts string
}

func newInterner() interner {
	return interner{known: map[internKey]*cost{}, shared: map[*evaluator.Amount]*cost{}}
}

// take finds or makes the cost of a charge and counts one holder more.
func (in interner) take(charge evaluator.Charge) *cost {
	var first *evaluator.Amount
	if len(charge.Amounts) > 0 {
		first = &charge.Amounts[0]
	}
	c := in.shared[first]
	if c == nil || c.Class != charge.Class || len(c.Amounts) != len(charge.Amounts) {
		c = in.find(charge)
		in.rename(c, first)
	}
	c.holders++
	return c
}

// find finds or makes the cost of a charge by what it says.
func (in interner) find(charge evaluator.Charge) *cost {
	var room [256]byte
	text := room[:0]
	for _, a := range charge.Amounts {
		text = append(text, a.Name...)
		text = append(text, '=')
		text = appendValue(text, a.Quantity)
		text = append(text, ' ')
	}
	key := internKey{charge.Class, string(text)}
	c := in.known[key]
	if c == nil {
		c = &cost{Cost: Cost{Amounts: charge.Amounts, Class: charge.Class}, key: key.amounts}
		in.known[key] = c
	}
	return c
}

// rename lets a cost be found by the memory of other amounts than before.
func (in interner) rename(c *cost, first *evaluator.Amount) {
	if in.shared[c.alias] == c {
		delete(in.shared, c.alias)
	}
	if c.alias = first; first != nil {
		in.shared[first] = c
	}
}

// appendValue writes a value so that equal values read the same and others do
// not. A Quantity's own text is not that: it differs by format, and 1000E, for
// which it has no suffix, reads 1.
func appendValue(text []byte, q resource.Quantity) []byte {
	if q.IsZero() {
		return append(text, '0')
	}
	text, exponent := q.AsCanonicalBytes(text)
	text = append(text, 'e')
	return strconv.AppendInt(text, int64(exponent), 10)
}

// release counts one holder less.
func (in interner) release(c *cost) {
	c.holders--
	if c.holders == 0 {
		delete(in.known, internKey{c.Class, c.key})
		in.rename(c, nil)
	}
}

// sum is the running sum of the objects of one scope class.
type sum struct {
	objects int
	totals  map[corev1.ResourceName]*resource.Quantity
}

func (n *namespace) add(c *cost) {
	s := n.sums[c.Class]
	if s == nil {
		s = &sum{totals: map[corev1.ResourceName]*resource.Quantity{}}
		n.sums[c.Class] = s
	}
	s.objects++
	for _, a := range c.Amounts {
		total := s.totals[a.Name]
		if total == nil {
			total = &resource.Quantity{Format: a.Quantity.Format}
			s.totals[a.Name] = total
		}
		total.Add(a.Quantity)
	}
}

// subtract takes a cost out again. An empty class is dropped with its sums, so
// that the cost of a question follows what is there.
func (n *namespace) subtract(c *cost) {
	s := n.sums[c.Class]
	s.objects--
	if s.objects == 0 {
		delete(n.sums, c.Class)
		return
	}
	for _, a := range c.Amounts {
		s.totals[a.Name].Sub(a.Quantity)
	}
}
