package federation

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

// history is amounts over time, oldest first. Amounts that are close together
// are one span, so that its length follows the time that it covers.
type history []span

type span struct {
	first, last time.Time
	sum         resource.Quantity
}

// add notes an amount. It joins the span that began less than a grain before.
func (h *history) add(at time.Time, amount resource.Quantity, grain time.Duration) {
	i := len(*h)
	for i > 0 && at.Before((*h)[i-1].first) {
		i--
	}
	if i > 0 {
		if s := &(*h)[i-1]; at.Equal(s.first) || at.Sub(s.first) < grain {
			s.sum.Add(amount)
			if at.After(s.last) {
				s.last = at
			}
			return
		}
	}
	*h = slices.Insert(*h, i, span{first: at, last: at, sum: amount.DeepCopy()})
}

// drop forgets what was before a time.
func (h *history) drop(before time.Time) {
	old := 0
	for old < len(*h) && (*h)[old].last.Before(before) {
		old++
	}
	*h = slices.Delete(*h, 0, old)
}

// since sums what was at or after a time.
func (h *history) since(start time.Time) resource.Quantity {
	var sum resource.Quantity
	for i := range *h {
		if !(*h)[i].last.Before(start) {
			sum.Add((*h)[i].sum)
		}
	}
	return sum
}

// next is the time of the first amount at or after a time; zero: there is none.
func (h *history) next(start time.Time) time.Time {
	for i := range *h {
		if !(*h)[i].last.Before(start) {
			return (*h)[i].last
		}
	}
	return time.Time{}
}
