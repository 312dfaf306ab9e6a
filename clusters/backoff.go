package clusters

import (
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// backoff is how long to wait after one more failure: twice as long as before,
// between least and most, less up to a third, so that members do not retry in
// step.
type backoff struct {
	least, most time.Duration
	failures    int
}

func (b *backoff) next() time.Duration {
	const enough = 16 // doublings; beyond it a Duration might overflow
	d := min(b.least<<min(b.failures, enough), b.most)
	b.failures++
	return wait.Jitter(d*2/3, 0.5)
}

func (b *backoff) reset() { b.failures = 0 }
