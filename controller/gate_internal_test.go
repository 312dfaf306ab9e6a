package controller

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// crowd is members that are listed at the same gate, and when each came in. Its
// time is that of a bubble.
type crowd struct {
	t     *testing.T
	gate  *gate
	begin time.Time
	group sync.WaitGroup

	mu     sync.Mutex // guards all below
	inside int
	most   int
	came   []time.Duration // since begin
}

// atGate runs a claim about a gate, and checks that nothing is left of it.
func atGate(t *testing.T, limit int, claim func(c *crowd)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{t: t, gate: newGate(limit), begin: time.Now()}
		claim(c)
		c.group.Wait()
		if got := c.gate.crowd.Load(); got != 0 {
			t.Errorf("%d members are in the crowd after all have left", got)
		}
		if !c.gate.places.TryAcquire(int64(limit)) {
			t.Error("places are taken after all have left")
		}
	})
}

// member lists for a while; the function says when it has sent something.
func (c *crowd) member(ctx context.Context, list func(hear func())) {
	c.group.Go(func() {
		turn := newTurn(c.gate)
		leave, err := turn.enter(ctx)
		if err != nil {
			return
		}
		defer leave()
		c.count(1)
		defer c.count(-1)
		list(func() { turn.hear(time.Now()) })
	})
}

func (c *crowd) count(one int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.inside += one
	c.most = max(c.most, c.inside)
	if one > 0 {
		c.came = append(c.came, time.Since(c.begin))
	}
}

// times is when each came in so far, in order.
func (c *crowd) times() []time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(slices.Values(c.came))
}

// quick is a list that is complete after some time, less than a silence.
func quick(func()) { time.Sleep(100*time.Millisecond + rand.N(keepSilent/2)) }

// huge is a list that arrives for an hour.
func huge(hear func()) {
	for range int(time.Hour / (keepSilent / 2)) {
		time.Sleep(keepSilent / 2)
		hear()
	}
}

// silent is a list of which nothing ever comes, for an hour.
func silent(func()) { time.Sleep(time.Hour) }

func TestNoMoreMembersThanTheBoundAreListed(t *testing.T) {
	t.Parallel()
	const limit, members = 4, 100
	atGate(t, limit, func(c *crowd) {
		for range members {
			c.member(c.t.Context(), quick)
		}
		c.group.Wait()
		if came := c.times(); c.most != limit || len(came) != members {
			t.Errorf("%d members at one time, %d in all, want %d and %d", c.most, len(came), limit, members)
		}
	})
}

func TestNoMemberWaitsLongForOthers(t *testing.T) {
	t.Parallel()
	const limit = 4
	for claim, c := range map[string]struct {
		list   func(hear func())
		within time.Duration
	}{
		"that are silent":    {silent, keepSilent + spread},
		"that are very long": {huge, keepFor + spread},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			atGate(t, limit, func(crowd *crowd) {
				for range limit {
					crowd.member(crowd.t.Context(), c.list)
				}
				time.Sleep(spread) // all of them are in
				synctest.Wait()
				asked := time.Now()
				leave, err := newTurn(crowd.gate).enter(crowd.t.Context())
				if err != nil {
					t.Fatal(err)
				}
				leave()
				if took := time.Since(asked); took > c.within {
					t.Errorf("it waited for %v", took)
				}
			})
		})
	}
}

func TestACrowdIsSpread(t *testing.T) {
	t.Parallel()
	const members = 100
	atGate(t, members, func(c *crowd) {
		for range members {
			c.member(c.t.Context(), quick)
		}
		c.group.Wait()
		came, most := c.times(), 0 // the most that came within a twentieth of the spread
		for i, at := range came {
			n, _ := slices.BinarySearch(came, at+spread/20)
			most = max(most, n-i)
		}
		if came[0] != 0 || most > members/2 || came[members-1] > spread {
			t.Errorf("the first came after %v, the last after %v, up to %d almost at once", came[0], came[members-1], most)
		}
	})
}

func TestWhoComesAloneDoesNotWait(t *testing.T) {
	t.Parallel()
	atGate(t, 1, func(c *crowd) {
		for range 10 {
			c.member(c.t.Context(), quick)
			c.group.Wait()
			c.begin = time.Now() // nobody is there
		}
		if came := c.times(); slices.Max(came) != 0 {
			t.Errorf("they waited: %v", came)
		}
	})
}

func TestTheKindsOfOneMemberShareItsPlace(t *testing.T) {
	t.Parallel()
	atGate(t, 1, func(c *crowd) {
		turn := newTurn(c.gate)
		var leaves []func()
		for range 50 {
			leave, err := turn.enter(c.t.Context())
			if err != nil {
				t.Fatal(err)
			}
			leaves = append(leaves, leave)
		}
		if time.Since(c.begin) != 0 {
			t.Error("they waited for each other")
		}
		c.member(c.t.Context(), quick)
		for _, leave := range leaves {
			synctest.Wait()
			if len(c.times()) > 0 {
				t.Fatal("another came in before the last had left")
			}
			leave()
			leave() // counts once
		}
	})
}

func TestWhoWaitsAtTheGateEndsWithItsContext(t *testing.T) {
	t.Parallel()
	atGate(t, 1, func(c *crowd) {
		c.member(c.t.Context(), huge)
		synctest.Wait()
		ctx, cancel := context.WithCancel(c.t.Context())
		turn, ended := newTurn(c.gate), make(chan error, 10)
		for range 10 { // kinds of one member wait for each other, and for the gate
			c.member(ctx, quick)
			c.group.Go(func() {
				_, err := turn.enter(ctx)
				ended <- err
			})
		}
		time.Sleep(keepFor / 2)
		cancel()
		synctest.Wait()
		if came := c.times(); len(came) != 1 || len(ended) != 10 {
			t.Errorf("%d came in and %d kinds have ended, want the first and all", len(came), len(ended))
		}
		for range 10 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
	})
}
