package synthetic

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
)

// churn makes pods come, finish and go. What comes next depends on the seed and
// on what came before, and not on when.
type churn struct {
	changes atomic.Int64
	rate    chan int
	done    sync.WaitGroup
}

func (c *churn) begin(members []*Member, seed uint64) {
	c.rate = make(chan int)
	chance := rand.New(rand.NewPCG(seed, seed)) //nolint:gosec // it has to be the same each time
	c.done.Go(func() { c.run(members, chance) })
}

// set changes the rate. Once it returns, the one of before is not followed any
// more.
func (c *churn) set(perSecond int) { c.rate <- perSecond }

func (c *churn) end() {
	if c.rate != nil {
		close(c.rate)
		c.done.Wait()
	}
}

// run makes changes in small steps of time until the rate's channel is closed.
func (c *churn) run(members []*Member, chance *rand.Rand) {
	const step = 10 * time.Millisecond
	tick := time.NewTicker(step)
	defer tick.Stop()
	rate, began, made := 0, time.Now(), int64(0)
	for {
		select {
		case perSecond, open := <-c.rate:
			if !open {
				return
			}
			rate, began, made = perSecond, time.Now(), 0
		case now := <-tick.C:
			due := int64(now.Sub(began).Seconds() * float64(rate))
			for ; made < due; made++ {
				members[chance.IntN(len(members))].shake(chance)
				c.changes.Add(1)
			}
		}
	}
}

// shake makes one change: as often a pod comes as one goes, and one in nine times
// one finishes.
func (m *Member) shake(chance *rand.Rand) {
	const kinds, finishing = 9, 1
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	dice := chance.IntN(kinds)
	switch {
	case len(m.live) == 0 || dice >= finishing && dice%2 == 1:
		if m.next < maxNumber {
			m.create()
		}
	case dice >= finishing:
		m.remove(chance.IntN(len(m.live)))
	default:
		at := chance.IntN(len(m.live))
		if p, _ := m.pods.history.objects.Get(pod{number: m.live[at]}); p.state == running {
			m.finish(p)
		} else {
			m.remove(at)
		}
	}
}
