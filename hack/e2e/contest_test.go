package e2e_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/hack/e2e/recorder"
	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// What is contended for, and by how many workers in each member.
const (
	contestLimit   = 60
	contestWorkers = 12
	contestQuota   = "contest"
)

// contest is three members whose local status the hub keeps, with workers in
// each that contend for one limit, and a recorder of all that divides it.
type contest struct {
	*tenant

	members    []string
	seed       uint64
	record     *recorder.Recorder
	stopRecord func()

	wanted          map[string]*atomic.Int64 // member -> pods that its workers want
	created, denied atomic.Int64
	unanswered      atomic.Int64 // or with an error that says nothing of quotas
}

// newContest begins to record, and then divides the limit. Native controllers keep
// the local status in place of the hub, and may lower it too far now and then.
func newContest(t *testing.T, native bool) *contest { //nolint:revive // which of two worlds
	t.Helper()
	members := []string{"one", "two", "three"}
	o := scene.Options{Dir: t.TempDir(), Bin: shared.Bin, Built: true, Members: members, Owned: true, Out: t.Output()}
	local := scene.Registration{LocalStatus: "Always"}
	if native {
		o.Native, local.LocalStatus = members, "Never"
	}
	s, err := scene.Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	for _, name := range members {
		if err := s.Register(t.Context(), s.Member(name), local); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{Scene: s}
	w.hub = startHub(t, w)
	c := &contest{tenant: w.tenant(t, members...), members: members, seed: seedOf(t), wanted: map[string]*atomic.Int64{}}
	c.begin(native)
	return c
}

func (c *contest) begin(native bool) {
	c.t.Helper()
	o := recorder.Options{
		Namespace: c.namespace, Name: contestQuota, Resource: corev1.ResourcePods,
		Hub: c.Hub.Dynamic, Members: map[string]dynamic.Interface{}, Recounts: native,
	}
	for _, name := range c.members {
		c.wanted[name], o.Members[name] = new(atomic.Int64), c.Member(name).Dynamic
	}
	var err error
	c.record, err = recorder.New(c.t.Context(), o)
	c.must(err)
	c.stopRecord = c.runs(c.t, c.record.Run)
	c.quota(contestQuota, list("pods", strconv.Itoa(contestLimit)), divided(v1alpha1.Balanced))
	for _, name := range c.members {
		c.holds(name, contestQuota, "pods", strconv.Itoa(contestLimit/len(c.members)))
	}
	c.becomes(contestQuota, enforced)
}

// runs lets something go on until the test ends.
func (c *contest) runs(t *testing.T, run func(context.Context)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var group sync.WaitGroup
	group.Go(func() { run(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		group.Wait()
	})
	t.Cleanup(stop)
	return stop
}

// startHub runs a hub that does not ask whether another leads.
func startHub(t *testing.T, w *world) *scene.Process {
	t.Helper()
	hub, err := w.StartHub(t.Context(), "--leader-elect=false")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = hub.Kill() })
	return hub
}

// seedOf is a new seed, or that of E2E_SEED. The order of events is not up to it
// alone, so that it repeats what was done and not always what came of it.
func seedOf(t *testing.T) uint64 {
	t.Helper()
	seed, err := strconv.ParseUint(os.Getenv("E2E_SEED"), 10, 64)
	if err != nil {
		seed = rand.Uint64()
	}
	t.Logf("E2E_SEED=%d", seed)
	return seed
}

// random is a source for one of those who act by the seed.
func (c *contest) random(who uint64) *rand.Rand { return rand.New(rand.NewPCG(c.seed, who)) }

// wants sets how many pods each member wants, in the order of the members.
func (c *contest) wants(pods ...int64) {
	for i, name := range c.members {
		c.wanted[name].Store(pods[i])
		c.record.Wanted(recorder.Want{At: time.Now(), Member: name, Amount: pods[i]})
	}
}

// favours lets one member after the other want so many pods, and the others few,
// each for a while, until ctx ends.
func (c *contest) favours(ctx context.Context, most int64, each time.Duration) {
	const few = 3
	for i := 0; ctx.Err() == nil; i++ {
		pods := slices.Repeat([]int64{few}, len(c.members))
		pods[i%len(pods)] = most
		c.wants(pods...)
		churnPause(ctx, each)
	}
}

// work lets all workers work until ctx ends. Their pods stay.
func (c *contest) work(ctx context.Context) {
	var group sync.WaitGroup
	for i, name := range c.members {
		for n := range int64(contestWorkers) {
			w := &worker{
				contest: c, member: name, number: n, random: c.random(uint64(1000*i) + uint64(n)),
				pods: c.Member(name).Kubernetes.CoreV1().Pods(c.namespace),
			}
			group.Go(func() { w.work(ctx) })
		}
	}
	group.Wait()
}

// worker keeps its part of the pods that a member wants, and now and then makes
// one anew.
type worker struct {
	*contest

	member string
	number int64
	random *rand.Rand
	pods   podClient
	mine   []string // that may be there
	made   int
}

// podClient is what a worker needs of a client.
type podClient interface {
	Create(context.Context, *corev1.Pod, metav1.CreateOptions) (*corev1.Pod, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

// part is how many of the member's pods are up to this worker.
func (w *worker) part() int {
	wanted := w.wanted[w.member].Load()
	return int(wanted*(w.number+1)/contestWorkers - wanted*w.number/contestWorkers)
}

func (w *worker) work(ctx context.Context) {
	const least, most, anew = 20 * time.Millisecond, 250 * time.Millisecond, 8
	for ctx.Err() == nil {
		switch have, want := len(w.mine), w.part(); {
		case have < want:
			w.create(ctx)
		case have > want, have > 0 && w.random.IntN(anew) == 0:
			w.remove(ctx)
		}
		churnPause(ctx, least+time.Duration(w.random.Int64N(int64(most))))
	}
}

// patience is how long a worker waits for an answer.
const patience = 3 * time.Second

// create makes a pod. Without an answer it may be there.
func (w *worker) create(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	w.made++
	name := fmt.Sprintf("w%d-%d", w.number, w.made)
	_, err := w.pods.Create(within, pod(name), metav1.CreateOptions{})
	switch {
	case apierrors.IsForbidden(err):
		w.denied.Add(1)
		w.record.Tried(recorder.Try{At: time.Now(), Member: w.member, Denied: true})
		return
	case err == nil:
		w.created.Add(1)
		w.record.Tried(recorder.Try{At: time.Now(), Member: w.member})
	default:
		w.unanswered.Add(1)
	}
	w.mine = append(w.mine, name)
}

// remove deletes the oldest pod, or tries to.
func (w *worker) remove(ctx context.Context) {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := w.pods.Delete(within, w.mine[0], *metav1.NewDeleteOptions(0))
	if err == nil || apierrors.IsNotFound(err) {
		w.mine = w.mine[1:]
	}
}

// converges waits until nothing is left to do: the limits hold, nothing is
// unusual about any row, and no part of the limit is lost.
func (c *contest) converges(patience time.Duration) {
	c.t.Helper()
	began := time.Now()
	c.becomesWithin(patience, contestQuota, enforced)
	c.eventually(max(patience-time.Since(began), time.Second), func(ctx context.Context) error {
		grant, err := c.Hub.Quota.Grants(c.namespace).Get(ctx, contestQuota, metav1.GetOptions{})
		if err != nil {
			return err
		}
		var sum int64
		for i := range grant.Spec.Members {
			row := &grant.Spec.Members[i]
			target := row.Target.Pods().Value()
			sum += target
			local, err := c.local(ctx, row.Cluster, contestQuota)
			if err != nil {
				return err
			}
			if err := settled(row, local); err != nil {
				return fmt.Errorf("%s: %w", row.Cluster, err)
			}
		}
		if len(grant.Spec.Members) != len(c.members) || sum != contestLimit {
			return fmt.Errorf("%d members shall have %d together, of %d", len(grant.Spec.Members), sum, contestLimit)
		}
		return nil
	})
	c.t.Logf("all is settled after %.1f s", time.Since(began).Seconds())
}

// settled wants a row to say what is in force, and to have nothing to spare.
func settled(row *v1alpha1.Grant, local *corev1.ResourceQuota) error {
	target := row.Target.Pods().Value()
	granted, used := row.Granted.Pods().Value(), local.Status.Used.Pods().Value()
	switch {
	case row.State != "":
		return fmt.Errorf("it is %s", row.State)
	case granted != max(target, used):
		return fmt.Errorf("%d are granted, for %d of which %d are used", granted, target, used)
	case local.Spec.Hard.Pods().Value() != target || local.Status.Hard.Pods().Value() != target:
		return fmt.Errorf("%s in spec and %s in status, of %d", text(local.Spec.Hard), text(local.Status.Hard), target)
	}
	return nil
}

// proves waits for the last versions and checks all.
func (c *contest) proves() recorder.History {
	c.t.Helper()
	c.eventually(soon, c.record.CaughtUp)
	h := c.record.History()
	v := h.Check()
	if v.Broken > 0 {
		c.t.Errorf("%d times the promise is not proven; the first of each kind:", v.Broken)
		for _, fault := range v.Faults {
			c.t.Error(fault)
		}
	}
	var versions, filled int
	for _, quotas := range h.Quotas {
		versions += len(quotas)
	}
	for _, gap := range h.Gaps {
		filled += gap.Filled
	}
	c.t.Logf("%d pods created, %d denied, %d without an answer", c.created.Load(), c.denied.Load(), c.unanswered.Load())
	c.t.Logf("%d versions of local quotas, %d of the record, %d credits: all %d pairs that may have been in force together are covered",
		versions, len(h.Records), v.Credits, v.Proven)
	c.t.Logf("at most %d of %d in force (%d by arrival alone, %d by the clock alone)", v.Peak, contestLimit, v.Arrived, v.Certain)
	c.t.Logf("at most %d pods (%d by the clock alone), and %d used (by the clock alone)", v.MostPods, v.CertainPods, v.CertainUsed)
	c.t.Logf("%d watches began anew, and %d versions were read from history", len(h.Gaps), filled)
	if v.Credits == 0 || v.Proven < len(h.Records) {
		c.t.Error("hardly anything has moved: this proves nothing")
	}
	if v.Certain < contestLimit/2 || v.CertainPods == 0 {
		c.t.Error("the clock says hardly anything of what was in force: this proves nothing")
	}
	return h
}
