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
	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// local is the quota controller of one member: it keeps the status of local
// quotas, all of them or those that nobody else answers for.
//
// It recounts a quota when its spec changed, when something was given back, and
// from time to time; never because an object was added, since admission has
// charged for that already and the ledger may be behind it.
type local struct {
	informer[*corev1.ResourceQuota]

	engagement *engagement
	urgent     workqueue.TypedRateLimitingInterface[types.NamespacedName] // quotas without usage: every creation waits for them
	queue      workqueue.TypedRateLimitingInterface[types.NamespacedName]
	answers    *answers // nil when mode is Always: there is nobody else
}

func newLocal(e *engagement) *local {
	source := listWatch(e.conn.Kubernetes.CoreV1().ResourceQuotas(metav1.NamespaceAll))
	l := &local{
		informer:   newInformer(source, &corev1.ResourceQuota{}, recountEvery),
		engagement: e,
		urgent:     newQueue[types.NamespacedName]("local-urgent"),
		queue:      newQueue[types.NamespacedName]("local"),
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
	if l.answers != nil && l.answers.seen(before, now) {
		klog.FromContext(ctx).Info("Handed local quota back: another controller answers", "quota", klog.KObj(now))
	}
	if before == nil || !equality.Semantic.DeepEqual(before.Spec, now.Spec) {
		l.engagement.ask()
		l.add(now)
		return
	}
	resynced := before.ResourceVersion == now.ResourceVersion
	if resynced || !sameNames(now.Status.Used, now.Spec.Hard) || !federation.Equal(now.Status.Hard, now.Spec.Hard) {
		l.add(now)
	}
}

func (l *local) deleted(key types.NamespacedName) {
	if l.answers != nil {
		l.answers.forget(key)
	}
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
	for _, quota := range l.in(move.Namespace) {
		if move.Deleted && l.answers != nil {
			l.answers.freed(quota)
		}
		l.queue.AddAfter(keyOf(quota), gather/4)
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

// sync brings one quota's status up to date, where that is ours to do.
func (l *local) sync(ctx context.Context, key types.NamespacedName) error {
	quota := l.get(key)
	if quota == nil {
		return nil
	}
	status, err := l.status(quota)
	if err != nil {
		return fmt.Errorf("ResourceQuota %s: %w", key, err)
	}
	if l.answers != nil {
		ours, wait := l.answers.due(quota, status, time.Now())
		switch {
		case wait > 0:
			l.queue.AddAfter(key, wait)
			return nil
		case !ours:
			return nil
		}
	}
	if equality.Semantic.DeepEqual(status, quota.Status) {
		return nil
	}
	return l.write(ctx, quota, status)
}

// status is what a quota's status should be. Usage that is not known stays as
// it was written: it is never lowered on a guess.
func (l *local) status(quota *corev1.ResourceQuota) (corev1.ResourceQuotaStatus, error) {
	scopes, err := evaluator.NewSelector(quota.Spec.Scopes, quota.Spec.ScopeSelector)
	if err != nil {
		return quota.Status, err
	}
	part := l.engagement.hub.ledger.Part(question(quota.Namespace, quota.Spec.Hard, scopes), l.engagement.name())
	status := corev1.ResourceQuotaStatus{Hard: quota.Spec.Hard.DeepCopy(), Used: corev1.ResourceList{}}
	for name := range quota.Spec.Hard {
		used, known := part.Used[name]
		if !known || !current(part) || slices.Contains(part.Unknown, name) {
			used, known = quota.Status.Used[name]
		}
		if known {
			status.Used[name] = used.DeepCopy()
		}
	}
	if quota.Status.Used == nil && len(status.Used) == 0 {
		status.Used = nil
	}
	return status, nil
}

// current says whether the numbers of a part that are not named as unknown are
// those of now.
func current(part federation.Part) bool {
	return part.Phase == v1alpha1.Live || part.Phase == v1alpha1.Partial
}

// write stores a status on the version that it was computed from.
func (l *local) write(ctx context.Context, quota *corev1.ResourceQuota, status corev1.ResourceQuotaStatus) error {
	update := quota.DeepCopy()
	update.Status = status
	api := l.engagement.conn.Kubernetes.CoreV1().ResourceQuotas(quota.Namespace)
	if l.answers != nil {
		l.answers.writing(quota, status)
	}
	now, err := api.UpdateStatus(ctx, update, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil {
		now = quota
	}
	if l.answers != nil {
		l.answers.wrote(now)
	}
	l.engagement.hub.metrics.wrote(l.engagement.name(), "local-status", err)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if apierrors.IsForbidden(err) {
		signal(l.engagement.doubt)
	}
	if err != nil {
		return fmt.Errorf("write the status of ResourceQuota %s/%s: %w", quota.Namespace, quota.Name, clusters.Explain(err))
	}
	klog.FromContext(ctx).V(2).Info("Wrote local status", "quota", klog.KObj(quota))
	return nil
}
