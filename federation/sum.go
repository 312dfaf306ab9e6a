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
type interner map[internKey]*cost

type internKey struct {
	class   evaluator.Class
	amounts string
}

// take finds or makes the cost of a charge and counts one holder more.
func (in interner) take(charge evaluator.Charge) *cost {
	var room [256]byte
	text := room[:0]
	for _, a := range charge.Amounts {
		text = append(text, a.Name...)
		text = append(text, '=')
		text = appendValue(text, a.Quantity)
		text = append(text, ' ')
	}
	key := internKey{charge.Class, string(text)}
	c := in[key]
	if c == nil {
		c = &cost{Cost: Cost{Amounts: charge.Amounts, Class: charge.Class}, key: key.amounts}
		in[key] = c
	}
	c.holders++
	return c
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
		delete(in, internKey{c.Class, c.key})
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
