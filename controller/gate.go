package controller

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
)

// gate bounds how many members are being listed at one time, since what arrives
// is kept until a list is complete: a restart would add up the lists of all
// members. That one member never delays another stands above the bound: a
// member that takes long goes on without its place.
//
// So it is a semaphore and no errgroup.SetLimit: an engagement does not end when
// its place becomes free.
type gate struct {
	limit  int
	places *semaphore.Weighted
	crowd  atomic.Int64 // members that have a place or wait for one
}

func newGate(limit int) *gate {
	return &gate{limit: limit, places: semaphore.NewWeighted(int64(limit))}
}

const (
	keepFor    = 10 * time.Second // how long a member keeps its place at most
	keepSilent = time.Second      // how long it keeps it without a word from the member
	spread     = time.Second      // over what a crowd is spread
)

// pass waits for a place. Who comes alone does not wait; the more there are, the
// further they are spread, up to the bound.
func (g *gate) pass(ctx context.Context) error {
	crowd := g.crowd.Add(1) - 1
	within := spread * time.Duration(min(crowd, int64(g.limit))) / time.Duration(g.limit)
	if within > 0 {
		pause(ctx, rand.N(within)) //nolint:gosec // to be guessed harms nobody
	}
	err := ctx.Err()
	if err == nil {
		err = g.places.Acquire(ctx, 1)
	}
	if err != nil {
		g.crowd.Add(-1)
		return fmt.Errorf("wait for other members' lists: %w", err)
	}
	return nil
}

func (g *gate) leave() {
	g.crowd.Add(-1)
	g.places.Release(1)
}

// turn is one engagement's use of the gate. Whatever is listed at the same time
// shares one place: a member with many kinds takes no more than others.
type turn struct {
	gate  *gate
	queue chan struct{} // holds one: who waits for the place
	heard atomic.Int64  // when the member last sent anything, in ns

	mu    sync.Mutex // guards all below
	users int
	place *place // nil: it was given back
}

// place is one of the gate's.
type place struct {
	since time.Time
	timer *time.Timer
}

func newTurn(g *gate) *turn { return &turn{gate: g, queue: make(chan struct{}, 1)} }

func (t *turn) hear(now time.Time) { t.heard.Store(now.UnixNano()) }

// enter waits until the member may be listed. Leave must be called, and may be
// more than once.
func (t *turn) enter(ctx context.Context) (leave func(), err error) {
	select {
	case t.queue <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-t.queue }()
	if !t.join() {
		if err := t.gate.pass(ctx); err != nil {
			return nil, err
		}
		t.take()
	}
	return sync.OnceFunc(t.leave), nil
}

// join shares the turn with those who have it now, if there are any.
func (t *turn) join() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.users == 0 {
		return false
	}
	t.users++
	return true
}

// take begins a turn with the place that was waited for.
func (t *turn) take() {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.hear(now)
	p := &place{since: now}
	p.timer = time.AfterFunc(keepSilent, func() { t.look(p) })
	t.users, t.place = 1, p
}

// look gives the place back when the member has kept it for long, or is silent.
func (t *turn) look(p *place) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.place != p {
		return
	}
	now := time.Now()
	until := time.Unix(0, t.heard.Load()).Add(keepSilent)
	if end := p.since.Add(keepFor); end.Before(until) {
		until = end
	}
	if now.Before(until) {
		p.timer.Reset(until.Sub(now))
		return
	}
	t.giveBack()
}

func (t *turn) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.users--
	if t.users == 0 && t.place != nil {
		t.giveBack()
	}
}

// giveBack is called with the lock held.
func (t *turn) giveBack() {
	t.place.timer.Stop()
	t.place = nil
	t.gate.leave()
}
