package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/hack/e2e/bench/figure"
	"github.com/fleetquota/fleetquota/hack/e2e/bench/sample"
)

// delays is how long deletions took to be seen.
type delays struct {
	global []time.Duration // in the FleetQuota's status
	right  []time.Duration // in it, until every key is right
	ours   []time.Duration // in the ResourceQuota's, where ours is the quota controller
	native []time.Duration // and where Kubernetes' own is
}

// latency measures from just before the call that deletes a pod to the event of
// a watch with the lowered number.
func (f *fleet) latency(ctx context.Context, o options) ([]figure.Row, error) {
	deletions := pick(o, 10, 60)
	progress("delete %d pods, each more than 1 s after the one before", deletions)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	numbers, err := f.follow(ctx)
	if err != nil {
		return nil, err
	}
	var d delays
	for i := range deletions {
		next := time.NewTimer(apart())
		if err := f.deletePod(ctx, i, numbers, &d); err != nil {
			return nil, fmt.Errorf("deletion %d: %w", i+1, err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-next.C:
		}
	}
	return d.rows(f.pods), nil
}

// apart is how long after a deletion the next one comes: never in step with
// anything that happens every second.
func apart() time.Duration {
	const least, span = 1100 * time.Millisecond, 300 * time.Millisecond
	return least + rand.N(span) //nolint:gosec // jitter
}

// deletePod deletes the i-th pod, whose member is one after the other's, and
// waits until the hub and the member report one pod less.
func (f *fleet) deletePod(ctx context.Context, i int, n numbers, d *delays) error {
	place := i % len(memberNames())
	name := memberNames()[place]
	now := metav1.NewDeleteOptions(0)
	began := time.Now()
	if err := f.scene.Member(name).Kubernetes.CoreV1().Pods(namespace).Delete(ctx, sample.New(i).Name, *now); err != nil {
		return err
	}
	global, err := n.global.await(ctx, int64(f.pods-i-1))
	if err != nil {
		return fmt.Errorf("global status: %w", err)
	}
	locals, err := n.local[name].await(ctx, f.share(place)-int64(i/len(memberNames()))-1)
	if err != nil {
		return fmt.Errorf("local status in %s: %w", name, err)
	}
	local := locals.lowered
	d.global = append(d.global, global.lowered.Sub(began))
	d.right = append(d.right, global.right.Sub(began))
	if name == native {
		d.native = append(d.native, local.Sub(began))
	} else {
		d.ours = append(d.ours, local.Sub(began))
	}
	return nil
}

func (d delays) rows(pods int) []figure.Row {
	const half, nearlyAll = 0.5, 0.99
	of := func(sample []time.Duration, part float64) float64 { return float64(quantile(sample, part)) }
	global := fmt.Sprintf("pod deletion to global status, %d members, %d pods, n=%d", len(memberNames()), pods, len(d.global))
	local := fmt.Sprintf("pod deletion to local status, %d pods, n=%d and %d", pods/len(memberNames()), len(d.ours), len(d.native))
	const globally, rarely, locally = 100 * time.Millisecond, 500 * time.Millisecond, 30 * time.Millisecond
	return []figure.Row{
		{Name: global + ", median", Ours: of(d.global, half), In: figure.Nanoseconds, Target: figure.Within(globally)},
		{Name: global + ", p99", Ours: of(d.global, nearlyAll), In: figure.Nanoseconds, Target: figure.Within(rarely)},
		{Name: global + ", all keys, median", Ours: of(d.right, half), In: figure.Nanoseconds, Target: figure.Within(globally)},
		{Name: local + ", median", Ours: of(d.ours, half), Upstream: of(d.native, half), In: figure.Nanoseconds, Target: figure.Within(locally)},
		{Name: local + ", p99", Ours: of(d.ours, nearlyAll), Upstream: of(d.native, nearlyAll), In: figure.Nanoseconds},
	}
}

// numbers is the pods that each status reports, as it changes.
type numbers struct {
	global feed
	local  map[string]feed // member ->
}

// follow watches all statuses until ctx ends.
func (f *fleet) follow(ctx context.Context) (numbers, error) {
	n := numbers{local: map[string]feed{}}
	w, err := f.scene.Hub.Quota.Quotas(namespace).Watch(ctx, onlyQuota())
	if err != nil {
		return n, err
	}
	n.global = follow(w)
	for _, name := range memberNames() {
		w, err := f.scene.Member(name).Kubernetes.CoreV1().ResourceQuotas(namespace).Watch(ctx, onlyQuota())
		if err != nil {
			return n, err
		}
		n.local[name] = follow(w)
	}
	return n, nil
}

func onlyQuota() metav1.ListOptions {
	return metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, quotaName).String()}
}

// feed is what one watch tells, with the time when it did.
type feed <-chan sight

type sight struct {
	at     time.Time
	pods   int64 // that can run
	stored int64 // that there are
}

// follow reads a watch until it ends, which the end of its context makes it do.
func follow(w watch.Interface) feed {
	const room = 1000 // more than there are events: no time is taken late because nobody reads
	sights := make(chan sight, room)
	go func() {
		defer close(sights)
		for event := range w.ResultChan() {
			at := time.Now()
			if used := usedOf(event.Object); used != nil {
				sights <- sight{at: at, pods: podsOf(used), stored: amountOf(used, "count/pods")}
			}
		}
	}()
	return sights
}

func usedOf(obj runtime.Object) corev1.ResourceList {
	switch quota := obj.(type) {
	case *v1alpha1.FleetQuota:
		return quota.Status.Used
	case *corev1.ResourceQuota:
		return quota.Status.Used
	}
	return nil
}

// arrival is when a feed told of a deletion. The API server makes two events of
// one: the pod cannot run any more, and is gone.
type arrival struct {
	lowered time.Time // fewer pods can run
	right   time.Time // and fewer are stored
}

// await is when the feed first told of so few pods.
func (f feed) await(ctx context.Context, pods int64) (arrival, error) {
	const patience = 30 * time.Second
	limit := time.NewTimer(patience)
	defer limit.Stop()
	var a arrival
	last := sight{pods: -1, stored: -1}
	for {
		select {
		case <-ctx.Done():
			return a, ctx.Err()
		case <-limit.C:
			return a, fmt.Errorf("%d pods were not reported within %s; the last numbers are %d and %d", pods, patience, last.pods, last.stored)
		case s, open := <-f:
			if !open {
				return a, errors.New("the watch has ended")
			}
			last = s
			if a.lowered.IsZero() && s.pods >= 0 && s.pods <= pods {
				a.lowered = s.at
			}
			if !a.lowered.IsZero() && s.stored >= 0 && s.stored <= pods {
				a.right = s.at
				return a, nil
			}
		}
	}
}
