package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/fleetquota/fleetquota/clusters"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// local is the quota controller of one member: it keeps the status of local
// quotas, all of them or those that nobody else answers for.
//
// It looks at a quota when its spec changed, when something was given back, and
// from time to time. Where an object was added it takes its time, since admission
// has charged for that already and the ledger may be behind it. What it lowers,
// and how far, is for [federation.Release] to say.
type local struct {
	informer[*corev1.ResourceQuota]

	engagement *engagement
	urgent     workqueue.TypedRateLimitingInterface[types.NamespacedName] // quotas without usage: every creation waits for them
	queue      workqueue.TypedRateLimitingInterface[types.NamespacedName]
	answers    *answers // nil when mode is Always: there is nobody else
	releases   *releases
}

func newLocal(e *engagement) *local {
	source := listWatch(e.conn.Kubernetes.CoreV1().ResourceQuotas(metav1.NamespaceAll))
	l := &local{
		informer:   newInformer(source, &corev1.ResourceQuota{}, recountEvery),
		engagement: e,
		urgent:     newQueue[types.NamespacedName]("local-urgent"),
		queue:      newQueue[types.NamespacedName]("local"),
		releases:   newReleases(e.hub.ReleaseSettle),
	}
	if e.mode == v1alpha1.LocalAuto {
		l.answers = newAnswers(e.hub.AnswerWithin)
	}
	return l
}

// recountEvery is how often every quota is looked at without a cause, as
// upstream's controller does.
const recountEvery = 5 * time.Minute

// run keeps statuses until ctx ends.
func (l *local) run(ctx context.Context) error {
	_, err := l.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { l.seen(ctx, nil, of[*corev1.ResourceQuota](obj)) },
		UpdateFunc: func(before, now any) {
			l.seen(ctx, of[*corev1.ResourceQuota](before), of[*corev1.ResourceQuota](now))
		},
		DeleteFunc: func(obj any) { l.deleted(keyOf(obj)) },
	})
	if err != nil {
		return fmt.Errorf("watch ResourceQuotas: %w", err)
	}
	err = l.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *cache.Reflector, err error) {
		klog.FromContext(ctx).V(2).Info("Cannot list or watch local quotas", "err", clusters.Explain(err))
	})
	if err != nil {
		return fmt.Errorf("watch ResourceQuotas: %w", err)
	}
	var group sync.WaitGroup
	var silent klog.Logger // client-go's informer logs what the member says
	group.Go(func() { l.RunWithContext(klog.NewContext(ctx, silent)) })
	group.Go(func() { work(ctx, l.urgent, 1, l.sync) })
	group.Go(func() { work(ctx, l.queue, l.engagement.hub.Workers, l.sync) })
	group.Wait()
	return nil
}

// seen is told of a quota as it is now, and was before.
func (l *local) seen(ctx context.Context, before, now *corev1.ResourceQuota) {
	if err := l.releases.saw(now, time.Now()); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot keep local quota", "quota", klog.KObj(now))
	}
	if l.answers != nil && l.answers.seen(before, now) {
		klog.FromContext(ctx).Info("Handed local quota back: another controller answers", "quota", klog.KObj(now))
	}
	if before == nil || !equality.Semantic.DeepEqual(before.Spec, now.Spec) {
		l.engagement.ask()
		l.add(now)
		return
	}
	if !federation.Equal(before.Status.Used, now.Status.Used) {
		l.queue.AddAfter(keyOf(now), l.engagement.hub.ReleaseSettle) // nothing may come of what was charged
	}
	resynced := before.ResourceVersion == now.ResourceVersion
	if resynced || !sameNames(now.Status.Used, now.Spec.Hard) || !federation.Equal(now.Status.Hard, now.Spec.Hard) {
		l.add(now)
	}
}

func (l *local) deleted(key types.NamespacedName) {
	if l.answers != nil {
		l.answers.forget(key)
		l.standingChanged()
	}
	l.releases.forget(key)
	l.engagement.ask()
}

// add queues a quota, before others when creations wait for its usage.
func (l *local) add(quota *corev1.ResourceQuota) {
	if sameNames(quota.Status.Used, quota.Spec.Hard) {
		l.queue.Add(keyOf(quota))
		return
	}
	l.urgent.Add(keyOf(quota))
}

func sameNames(a, b corev1.ResourceList) bool {
	return maps.EqualFunc(a, b, func(_, _ resource.Quantity) bool { return true })
}

// moved queues the quotas whose usage may have moved.
func (l *local) moved(move federation.Move) {
	wait := gather / 4
	if move.Added {
		wait = time.Second
	}
	for _, quota := range l.in(move.Namespace) {
		l.queue.AddAfter(keyOf(quota), wait)
	}
}

// freed notes that an object has ended which took this from a quota. The book is
// locked.
func (l *local) freed(key types.NamespacedName, c federation.Change) {
	if l.answers != nil {
		l.answers.freed(key, c.Was, c.Version)
	}
}

// asked is every resource that a local quota names.
func (l *local) asked() []corev1.ResourceName {
	asked := map[corev1.ResourceName]struct{}{}
	for _, quota := range l.in("") {
		for name := range quota.Spec.Hard {
			asked[name] = struct{}{}
		}
	}
	return slices.Collect(maps.Keys(asked))
}

// sync brings one quota's status up to date, where that is ours to do. If it
// has changed meanwhile, it tries again on what it is now.
func (l *local) sync(ctx context.Context, key types.NamespacedName) error {
	const tries = 5
	k, _ := l.releases.of(key)
	if k == nil {
		return nil
	}
	k.turn.Lock()
	defer k.turn.Unlock()
	for range tries {
		if done, err := l.look(ctx, k); done || err != nil {
			return err
		}
	}
	l.queue.AddAfter(key, gather)
	return nil
}

// look does what there is to do for a quota, and says whether that is done. The
// caller holds its turn.
func (l *local) look(ctx context.Context, k *keeper) (done bool, err error) {
	now, quota := l.releases.of(k.key)
	if now != k {
		return true, nil // it was deleted, or is another one now
	}
	if l.answers != nil && !l.isOurs(ctx, k, quota) {
		return true, nil
	}
	d := l.decide(ctx, k, quota)
	if d.Version != quota.ResourceVersion {
		return false, nil
	}
	want := status(quota, d.Used)
	if equality.Semantic.DeepEqual(want, quota.Status) {
		return true, nil
	}
	if wait := time.Until(k.nextLower); wait > 0 && lowersOnly(quota.Status, want) {
		l.queue.AddAfter(k.key, wait)
		return true, nil
	}
	return l.write(ctx, k, quota, want, d)
}

// isOurs says whether a quota is ours to write. If it is not, how its status
// differs from what is counted is noted.
func (l *local) isOurs(ctx context.Context, k *keeper, quota *corev1.ResourceQuota) bool {
	known := l.counted(k, quota)
	v := l.answers.due(quota, status(quota, known), time.Now())
	if v.free {
		return l.take(ctx, k, quota)
	}
	if v.wait > 0 {
		l.queue.AddAfter(k.key, v.wait)
	}
	if v.ours || known == nil {
		return v.ours
	}
	d := k.release.Decide(func() corev1.ResourceList { return l.counted(k, quota) }, time.Now())
	if d.Version != quota.ResourceVersion {
		l.queue.AddAfter(k.key, driftEvery)
		return false
	}
	again, changed := l.answers.drifts(k.key, quota.Status.Used, d.Truth, time.Now())
	if again || !federation.Equal(d.Truth, known) { // or something may be on its way
		l.queue.AddAfter(k.key, driftEvery)
	}
	if changed {
		l.standingChanged()
	}
	return false
}

// take takes a quota over that nobody answers for, if that is so of what it is by
// now: the watch may be behind. It says whether the quota is ours.
func (l *local) take(ctx context.Context, k *keeper, quota *corev1.ResourceQuota) bool {
	now, err := l.engagement.conn.Kubernetes.CoreV1().ResourceQuotas(quota.Namespace).Get(ctx, quota.Name, metav1.GetOptions{})
	if err != nil || foreign(quota.Status, now) {
		l.queue.AddAfter(k.key, time.Second)
		return false
	}
	ours, contested := l.answers.take(quota, time.Now())
	switch {
	case ours:
		klog.FromContext(ctx).Info("Took local quota over: no other controller answers", "quota", k.key)
	case contested:
		klog.FromContext(ctx).Info("Local quota is contested: another controller has reversed every write", "quota", k.key)
	}
	l.standingChanged()
	return ours
}

// standingChanged has the FleetMember tell anew how local quotas stand.
func (l *local) standingChanged() { l.engagement.hub.roster.queue.Add(l.engagement.name()) }

// lowerEvery is how far apart writes are that only lower. Each may meet a write of
// admission, which then starts anew, and a creation that was denied before may
// be charged for although it stays denied.
const lowerEvery = 150 * time.Millisecond

// lowersOnly says whether a status differs by less use and nothing else.
func lowersOnly(have, want corev1.ResourceQuotaStatus) bool {
	if !federation.Equal(have.Hard, want.Hard) || !sameNames(have.Used, want.Used) {
		return false
	}
	return !lowered(want.Used, have.Used)
}

// decide asks what to write now, and sees to it that the quota is looked at
// again when that may be less.
func (l *local) decide(ctx context.Context, k *keeper, quota *corev1.ResourceQuota) federation.Decision {
	for name := range quota.Spec.Hard {
		k.release.Confirmed(name, l.releases.currentAt(l.engagement.kindsOf(name)), nil)
	}
	counted := func() corev1.ResourceList { return l.counted(k, quota) }
	d := k.release.Decide(counted, time.Now())
	if len(d.Confirm) > 0 && !time.Now().Before(k.nextList) {
		var err error
		if k.nextList, err = l.engagement.confirm(ctx, k, d.Confirm); err != nil {
			klog.FromContext(ctx).V(2).Info("Cannot confirm what is used", "quota", k.key, "err", err)
		}
		d = k.release.Decide(counted, time.Now())
	}
	switch {
	case len(d.Confirm) > 0:
		l.queue.AddAfter(k.key, max(time.Until(k.nextList), gather))
	case !d.Again.IsZero():
		l.queue.AddAfter(k.key, time.Until(d.Again))
	}
	return d
}

// counted is what the ledger knows of the resources that a quota limits.
func (l *local) counted(k *keeper, quota *corev1.ResourceQuota) corev1.ResourceList {
	part := l.engagement.hub.ledger.Part(question(quota.Namespace, quota.Spec.Hard, k.scopes), l.engagement.name())
	if !current(part) {
		return nil
	}
	maps.DeleteFunc(part.Used, func(name corev1.ResourceName, _ resource.Quantity) bool {
		return slices.Contains(part.Unknown, name)
	})
	return part.Used
}

// status is what a quota's status should be. Usage that is not known stays as
// it was written: it is never lowered on a guess.
func status(quota *corev1.ResourceQuota, known corev1.ResourceList) corev1.ResourceQuotaStatus {
	status := corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard.DeepCopy(), Used: corev1.ResourceList{}}
	for name := range quota.Spec.Hard {
		used, ok := known[name]
		if !ok {
			used, ok = quota.Status.Used[name]
		}
		if ok {
			status.Used[name] = used.DeepCopy()
		}
	}
	if quota.Status.Used == nil && len(status.Used) == 0 {
		status.Used = nil
	}
	return status
}

// current says whether the numbers of a part that are not named as unknown are
// those of now.
func current(part federation.Part) bool {
	return part.Phase == v1alpha1.Live || part.Phase == v1alpha1.Partial
}

// write stores a status on the version that it was computed from, and says
// whether that is done: not if somebody else wrote meanwhile.
func (l *local) write(ctx context.Context, k *keeper, quota *corev1.ResourceQuota, want corev1.ResourceQuotaStatus, d federation.Decision) (done bool, err error) {
	update := quota.DeepCopy()
	update.Status = want
	if l.answers != nil {
		l.answers.writing(quota, want)
	}
	k.release.Sending(d)
	api := l.engagement.conn.Kubernetes.CoreV1().ResourceQuotas(quota.Namespace)
	now, err := api.UpdateStatus(ctx, update, metav1.UpdateOptions{FieldManager: fieldManager})
	l.ended(k, now, err)
	l.engagement.hub.metrics.wrote(l.engagement.name(), "local-status", err)
	if apierrors.IsForbidden(err) {
		signal(l.engagement.doubt)
	}
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case apierrors.IsConflict(err):
		return false, l.reread(ctx, k)
	case err != nil:
		return false, fmt.Errorf("write the status of ResourceQuota %s: %w", k.key, clusters.Explain(err))
	}
	klog.FromContext(ctx).V(2).Info("Wrote local status", "quota", klog.KObj(quota))
	return true, nil
}

// ended notes how a write ended. The caller holds the quota's turn.
func (l *local) ended(k *keeper, now *corev1.ResourceQuota, err error) {
	if refused(err) {
		k.release.Refused()
		if l.answers != nil {
			l.answers.refused(k.key)
		}
		return // it has disturbed no admission
	}
	k.nextLower = time.Now().Add(lowerEvery)
	if err != nil {
		k.release.Lost()
		return
	}
	l.releases.stored(k, now, time.Now())
	if l.answers != nil {
		l.answers.wrote(now)
	}
}

// refused says whether an error means that a write was not stored and never
// will be. Where it does not, that is not known.
func refused(err error) bool {
	return apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) ||
		apierrors.IsUnauthorized(err) || apierrors.IsBadRequest(err) || apierrors.IsTooManyRequests(err)
}

// reread learns what a quota is now from the member itself.
func (l *local) reread(ctx context.Context, k *keeper) error {
	quota, err := l.engagement.conn.Kubernetes.CoreV1().ResourceQuotas(k.key.Namespace).Get(ctx, k.key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read ResourceQuota %s: %w", k.key, clusters.Explain(err))
	}
	return l.releases.saw(quota, time.Now())
}
