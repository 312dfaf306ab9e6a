package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/hack/e2e/recorder"
	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// Many workers contend for one limit, while all that can fail does, and two hubs
// act at the same time. All versions of all local quotas are recorded, and prove
// that the limits in force were never more than the limit. Then all is well
// again: headroom follows demand, and nothing of the limit is lost.
func TestFaultGrantsHold(t *testing.T) {
	if testing.Short() {
		grantsHold(t, newContest(t, false), 15*time.Second, 5*time.Second)
		return
	}
	grantsHold(t, newContest(t, false), 4*time.Minute, 40*time.Second)
}

// The same where Kubernetes' own controllers keep the local status. The limits hold
// there, too; pods may pass them now and then, since those controllers lower used
// below what admission has just charged for.
func TestFaultGrantsHoldBesideNativeControllers(t *testing.T) {
	if testing.Short() {
		t.Skip("two minutes")
	}
	grantsHold(t, newContest(t, true), 90*time.Second, 30*time.Second)
}

// grantsHold lets faults strike for a while, and then rests for a while.
func grantsHold(t *testing.T, c *contest, long, calm time.Duration) {
	t.Helper()
	f := &faults{contest: c, long: !testing.Short(), hubs: []*scene.Process{c.hub, startHub(t, c.world)}}
	c.hub = nil // it ends again and again
	t.Cleanup(f.end)

	working, rest := context.WithCancel(t.Context())
	defer rest()
	stop := c.runs(t, func(ctx context.Context) {
		var group sync.WaitGroup
		group.Go(func() { c.favours(ctx, contestLimit+10, 5*time.Second) })
		group.Go(func() { c.work(ctx) })
		<-working.Done()
		group.Wait()
	})
	began := time.Now()
	f.strike(t.Context(), long)
	mended := time.Now()
	t.Logf("%d faults: %s", len(f.done), strings.Join(f.done, ", "))
	f.asks(t.Context(), contestLimit)
	churnPause(t.Context(), calm)
	ended := time.Now()
	rest()
	stop()
	for i, hub := range f.hubs {
		if hub == nil {
			t.Fatalf("hub %d does not start", i)
		}
		if err := hub.Ended(); err != nil {
			t.Error(err)
		}
	}
	c.converges(time.Minute)
	h := c.proves()
	printMeasures(t, "while all that can fail does", h.Measure(began, mended))
	within := h.MeasureBetween(began, mended, f.outages)
	printMeasures(t, "of that, while all clusters were within reach, and hubs were killed", within)
	after := h.Measure(mended, ended)
	printMeasures(t, "right after that", after)
	notStuck(t, within)
	notStuck(t, after)
}

// faults is what happens to a contest.
type faults struct {
	*contest

	long bool

	mu   sync.Mutex // guards all below
	hubs []*scene.Process
	done []string

	outages []recorder.Outage // of those who break clusters, one at a time
}

func (f *faults) note(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done = append(f.done, fmt.Sprintf(format, args...))
}

func (f *faults) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, hub := range f.hubs {
		if hub != nil {
			_ = hub.Kill()
		}
	}
}

// strike lets faults happen for a while, and returns when all that was broken is
// mended.
func (f *faults) strike(ctx context.Context, long time.Duration) {
	over, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	var group sync.WaitGroup
	for i := range f.hubs {
		group.Go(func() { f.killHubs(ctx, over, i) })
	}
	group.Go(func() { f.breakClusters(ctx, over) })
	group.Go(func() { f.moveLimit(ctx, over) })
	group.Wait()
}

// moveLimit lowers the limit and raises it again.
func (f *faults) moveLimit(ctx, over context.Context) {
	random := f.random(2)
	for {
		churnPause(over, between(random, 2*time.Second, 12*time.Second))
		if over.Err() != nil {
			return
		}
		limit := contestLimit - random.Int64N(contestLimit/3)
		f.note("the limit is %d", limit)
		f.asks(ctx, limit)
	}
}

// asks sets the limit, as soon as the hub's API server lets it.
func (f *faults) asks(ctx context.Context, limit int64) {
	patch := fmt.Appendf(nil, `{"spec":{"hard":{"pods":"%d"}}}`, limit)
	for ctx.Err() == nil {
		within, cancel := context.WithTimeout(ctx, patience)
		_, err := f.Hub.Quota.Quotas(f.namespace).Patch(within, contestQuota, types.MergePatchType, patch, metav1.PatchOptions{})
		cancel()
		if err == nil {
			return
		}
		churnPause(ctx, time.Second)
	}
}

// killHubs kills one of the hubs at any moment, and starts it again.
func (f *faults) killHubs(ctx, over context.Context, i int) {
	random := f.random(uint64(10 + i))
	for n := 0; ; n++ {
		longest := 8 * time.Second
		if n%4 == 3 {
			longest *= 3 // now and then they get far
		}
		churnPause(over, between(random, longest/16, longest))
		if over.Err() != nil {
			return
		}
		f.mu.Lock()
		hub := f.hubs[i]
		f.mu.Unlock()
		if err := hub.Kill(); err != nil {
			f.note("hub %d not killed: %v", i, err)
			return
		}
		f.note("hub %d killed", i)
		churnPause(ctx, between(random, 0, time.Second))
		if hub = f.restart(ctx); hub == nil {
			f.note("hub %d did not start", i)
			return
		}
		f.mu.Lock()
		f.hubs[i] = hub
		f.mu.Unlock()
	}
}

// restart starts a hub. Its API server may be away for a moment.
func (f *faults) restart(ctx context.Context) *scene.Process {
	const tries = 10
	for range tries {
		hub, err := f.StartHub(ctx, "--leader-elect=false")
		if err == nil {
			return hub
		}
		f.note("hub not started: %v", err)
		churnPause(ctx, time.Second)
	}
	return nil
}

// breakClusters freezes and kills members, one at a time, and in the long run the
// hub's cluster, too.
func (f *faults) breakClusters(ctx, over context.Context) {
	random := f.random(1)
	for i := 0; ; i++ {
		churnPause(over, between(random, 500*time.Millisecond, 5*time.Second))
		if over.Err() != nil {
			return
		}
		const longest, away = 12 * time.Second, 3 * time.Second
		victim := f.Member(f.members[random.IntN(len(f.members))])
		if f.long && i%6 == 5 {
			victim = f.Hub
		}
		var err error
		began := time.Now()
		if i%3 == 1 {
			err = f.kill(ctx, victim, between(random, 0, away))
		} else {
			err = f.freeze(ctx, victim, between(random, away/3, longest))
		}
		if err != nil {
			f.note("%s: %v", victim.Name(), err)
			return
		}
		f.outages = append(f.outages, recorder.Outage{From: began, To: time.Now()})
	}
}

func (f *faults) kill(ctx context.Context, victim *scene.Cluster, d time.Duration) error {
	if err := victim.Kill(ctx); err != nil {
		return err
	}
	churnPause(ctx, d)
	f.note("%s killed for %.1f s", victim.Name(), d.Seconds())
	return victim.Restart(ctx)
}

func (f *faults) freeze(ctx context.Context, victim *scene.Cluster, d time.Duration) error {
	if err := victim.Freeze(ctx); err != nil {
		return err
	}
	churnPause(ctx, d)
	f.note("%s frozen for %.1f s", victim.Name(), d.Seconds())
	return victim.Thaw(ctx)
}

func between(random *rand.Rand, least, most time.Duration) time.Duration {
	return least + time.Duration(random.Int64N(int64(most-least)))
}
