package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// reporter writes the status of FleetQuotas from the ledger.
type reporter struct {
	hub   *hub
	queue workqueue.TypedRateLimitingInterface[types.NamespacedName]
	pace  *pace

	mu      sync.Mutex                                    // guards all below
	fresh   map[types.NamespacedName]freshSpec            // quota -> its newest spec, while that is not reported
	written map[types.NamespacedName]*v1alpha1.FleetQuota // as our last write left it; the cache may be behind
}

func newReporter(h *hub) *reporter {
	return &reporter{
		hub:     h,
		queue:   newQueue[types.NamespacedName]("report"),
		pace:    newPace(h.StatusMinInterval, h.StatusRate, h.StatusRateHub),
		fresh:   map[types.NamespacedName]freshSpec{},
		written: map[types.NamespacedName]*v1alpha1.FleetQuota{},
	}
}

// run reports until ctx ends. It begins once the members are known: a sum over
// members that have not been named yet would lose their last numbers.
func (r *reporter) run(ctx context.Context) error {
	if !cache.WaitForNamedCacheSyncWithContext(ctx, r.hub.quotas.HasSynced, r.hub.enforce.grants.HasSynced, r.hub.roster.isListed) {
		r.queue.ShutDown()
		return nil
	}
	work(ctx, r.queue, r.hub.Workers, r.sync)
	return nil
}

// sync brings one status up to date.
func (r *reporter) sync(ctx context.Context, key types.NamespacedName) error {
	quota := r.latest(key)
	if quota == nil {
		r.forget(key)
		return nil
	}
	status, wait := r.compute(key, quota)
	if wait == 0 {
		r.hub.metrics.reported(key, status)
		if federation.Same(status, quota.Status) {
			return nil
		}
		wait = r.pace.wait(key, time.Now())
	}
	if wait > 0 {
		r.queue.AddAfter(key, wait)
		return nil
	}
	return r.write(ctx, key, quota, status)
}

// compute is the status that the quota should have. It may say to wait.
func (r *reporter) compute(key types.NamespacedName, quota *v1alpha1.FleetQuota) (v1alpha1.FleetQuotaStatus, time.Duration) {
	now := time.Now()
	compiled, err := compile(quota)
	if err != nil {
		return federation.Refuse(quota, err, now), 0
	}
	usage := r.hub.ledger.Usage(compiled.question, r.hub.roster.selected(compiled.members))
	if r.early(key, quota, usage, now) {
		const again = 100 * time.Millisecond
		return v1alpha1.FleetQuotaStatus{}, again
	}
	usage = usage.Recall(quota.Status.Clusters, writtenAt(quota.ManagedFields))
	return federation.Report(quota, usage, r.hub.enforce.enforcement(key), now), 0
}

// early says whether it is too early to report: shortly after a start, for
// members that the present status names, and shortly after a new spec, for what
// has just been asked of them. Neither is anybody's trouble.
func (r *reporter) early(key types.NamespacedName, quota *v1alpha1.FleetQuota, usage federation.Usage, now time.Time) bool {
	if r.hub.roster.settling(now) && forgets(usage, quota.Status.Clusters) {
		return true
	}
	syncing := slices.ContainsFunc(usage.Parts, func(p federation.Part) bool { return p.Reason == federation.ReasonSyncing })
	if !syncing || quota.Status.ObservedGeneration == quota.Generation {
		return false
	}
	const firstLists = 2 * time.Second
	r.mu.Lock()
	defer r.mu.Unlock()
	if fresh := r.fresh[key]; fresh.generation != quota.Generation {
		r.fresh[key] = freshSpec{generation: quota.Generation, until: now.Add(firstLists)}
	}
	return now.Before(r.fresh[key].until)
}

// freshSpec is until when a generation's first report waits for lists.
type freshSpec struct {
	generation int64
	until      time.Time
}

// forgets says whether a member that a row names has not been counted yet.
func forgets(usage federation.Usage, rows []v1alpha1.ClusterUsage) bool {
	named := make(map[string]bool, len(rows))
	for i := range rows {
		named[rows[i].Name] = true
	}
	return slices.ContainsFunc(usage.Parts, func(p federation.Part) bool {
		return named[p.Member] && (p.Phase == v1alpha1.NeverSynced || p.Reason == federation.ReasonSyncing)
	})
}

// writtenAt is when a status was last written: what was live then was observed
// at least until then.
func writtenAt(fields []metav1.ManagedFieldsEntry) time.Time {
	var last time.Time
	for _, entry := range fields {
		if entry.Subresource == "status" && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// write stores a status and tells of what changed for a person.
func (r *reporter) write(ctx context.Context, key types.NamespacedName, quota *v1alpha1.FleetQuota, status v1alpha1.FleetQuotaStatus) error {
	update := quota.DeepCopy()
	update.Status = status
	now, err := r.hub.fleet.Quotas(key.Namespace).UpdateStatus(ctx, update, metav1.UpdateOptions{FieldManager: fieldManager})
	switch {
	case apierrors.IsNotFound(err):
		r.forget(key)
		return nil
	case apierrors.IsConflict(err):
		return r.refresh(ctx, key)
	case err != nil:
		return fmt.Errorf("write the status of FleetQuota %s: %w", key, err)
	}
	r.keep(key, now)
	r.pace.wrote(key, time.Now(), size(now))
	r.tell(now, quota.Status.Conditions, status.Conditions)
	klog.FromContext(ctx).V(2).Info("Reported usage", "quota", klog.KObj(now), "clusters", status.Summary)
	return nil
}

// refresh reads a quota that the cache is behind on.
func (r *reporter) refresh(ctx context.Context, key types.NamespacedName) error {
	now, err := r.hub.fleet.Quotas(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		r.forget(key)
		return nil
	}
	if err != nil {
		return fmt.Errorf("read FleetQuota %s: %w", key, err)
	}
	r.keep(key, now)
	r.queue.Add(key)
	return nil
}

// tell records an event for each condition that went bad or good again.
func (r *reporter) tell(quota *v1alpha1.FleetQuota, before, now []metav1.Condition) {
	for _, kind := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionUsageComplete, v1alpha1.ConditionWithinHard, v1alpha1.ConditionEnforced} {
		is := meta.FindStatusCondition(now, kind)
		was := meta.FindStatusCondition(before, kind)
		if is == nil || was != nil && was.Status == is.Status {
			continue
		}
		good := is.Status == metav1.ConditionTrue
		if was == nil && good || !good && asked(is.Reason) {
			continue
		}
		severity := corev1.EventTypeWarning
		if good {
			severity = corev1.EventTypeNormal
		}
		r.hub.recorder.Eventf(quota, nil, severity, is.Reason, "Report", "%s: %s", kind, is.Message)
	}
}

// asked says that a limit is not enforced because that is what the spec asks for,
// or because it has only just been written.
func asked(reason string) bool {
	return slices.Contains([]string{"ObserveOnly", "Starting", "Paused", "Shared", "Releasing"}, reason)
}

// latest is the newest version of a quota that is known; nil when there is
// none.
func (r *reporter) latest(key types.NamespacedName) *v1alpha1.FleetQuota {
	cached := r.hub.quotas.get(key)
	r.mu.Lock()
	defer r.mu.Unlock()
	ours := r.written[key]
	if cached == nil || ours == nil || cached.UID != ours.UID {
		delete(r.written, key)
		return cached
	}
	if order, err := resourceversion.CompareResourceVersion(cached.ResourceVersion, ours.ResourceVersion); err != nil || order >= 0 {
		delete(r.written, key)
		return cached
	}
	return ours
}

func (r *reporter) keep(key types.NamespacedName, quota *v1alpha1.FleetQuota) {
	bound(quota)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.written[key] = quota
	delete(r.fresh, key)
}

func (r *reporter) forget(key types.NamespacedName) {
	r.mu.Lock()
	delete(r.written, key)
	delete(r.fresh, key)
	r.mu.Unlock()
	r.pace.forget(key)
	r.hub.metrics.forget(key)
}

// pace spaces writes: the first is free, then at most one per object and
// interval, and so many bytes per second for each object and for the hub.
type pace struct {
	interval  time.Duration
	rate, all int // bytes per second: of one object, of the hub

	mu   sync.Mutex                         // guards all below
	next map[types.NamespacedName]time.Time // object -> its next write
	hub  time.Time                          // the next write of any
}

func newPace(interval time.Duration, rate, all int) *pace {
	return &pace{interval: interval, rate: rate, all: all, next: map[types.NamespacedName]time.Time{}}
}

// wait is how long a write must wait; 0 when it need not.
func (p *pace) wait(key types.NamespacedName, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(0, p.next[key].Sub(now), p.hub.Sub(now))
}

// wrote counts a write of so many bytes. The hub as a whole may be ahead of its
// rate by one second, so that the first writes of many objects need not wait.
func (p *pace) wrote(key types.NamespacedName, now time.Time, size int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next[key] = now.Add(max(p.interval, spend(size, p.rate)))
	if slack := now.Add(-time.Second); p.hub.Before(slack) {
		p.hub = slack
	}
	p.hub = p.hub.Add(spend(size, p.all))
}

func (p *pace) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.next, key)
}

// spend is how long so many bytes take at a rate.
func spend(size, rate int) time.Duration {
	return time.Duration(float64(size) / float64(rate) * float64(time.Second))
}

// size is about how many bytes an object takes on the wire.
func size(quota *v1alpha1.FleetQuota) int {
	text, err := json.Marshal(quota)
	if err != nil {
		return 0 // it came from JSON
	}
	return len(text)
}
