package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/utils/clock"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/evaluator/wire"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/hack/e2e/bench/sample"
)

// ours is what the hub keeps of one member's pods.
type ours struct {
	ledger *federation.Ledger
	book   *federation.Book
}

const memberName = "member"

func newOurs() *ours {
	set := evaluator.NewSet(kubernetesVersion(), []schema.GroupResource{podKind()})
	ledger := federation.NewLedger(nil)
	ledger.Mark(memberName, federation.Reach{Phase: v1alpha1.Live})
	book := ledger.Open(memberName, set, nil)
	book.Replace(podKind(), func(func(federation.Object) bool) {})
	return &ours{ledger: ledger, book: book}
}

// newReader reads pods as the hub's observer does.
func newReader() *wire.Reader {
	return wire.NewCharges(0).Reader(podKind(), evaluator.NewSet(kubernetesVersion(), []schema.GroupResource{podKind()}))
}

// set notes a pod in the book, as the hub's observer does.
func (u *ours) set(pod *wire.Object) error {
	charge, record, err := pod.Cost()
	if err != nil {
		return err
	}
	u.book.Set(podKind(), federation.Object{
		Namespace: pod.Namespace, Name: pod.Name, Created: pod.Created(), Charge: charge.At(time.Now()), Record: record,
	})
	return nil
}

// used asks what a quota for all keys of pods uses.
func (u *ours) used() corev1.ResourceList {
	return u.ledger.Usage(federation.Question{Namespace: namespace, Resources: podKeys()}, []string{memberName}).Used
}

// upstream is what Kubernetes' quota controller keeps of one cluster's pods.
type upstream struct {
	store    cache.Indexer
	registry quota.Registry
}

func newUpstream() *upstream {
	u := &upstream{store: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
	pods := core.NewPodEvaluator(func(kind schema.GroupVersionResource) (cache.GenericLister, error) {
		return cache.NewGenericLister(u.store, kind.GroupResource()), nil
	}, clock.RealClock{})
	u.registry = generic.NewRegistry([]quota.Evaluator{pods})
	return u
}

// set puts a pod into the cache, as an informer does.
func (u *upstream) set(pod *corev1.Pod) error { return u.store.Update(pod) }

// used recounts what a quota for all keys of pods uses in a namespace.
func (u *upstream) used(namespace string) (corev1.ResourceList, error) {
	hard := corev1.ResourceList{}
	for _, key := range podKeys() {
		hard[key] = *resource.NewQuantity(1, resource.DecimalSI)
	}
	return quota.CalculateUsage(namespace, nil, hard, u.registry, nil)
}

// fill gives pods 0 to n, as they are read off a watch.
func fill[T runtime.Object](n int, serializer runtime.NegotiatedSerializer, set func(T) error) error {
	const batch = 1000
	for from := 0; from < n; from += batch {
		var pods []*corev1.Pod
		for i := from; i < min(n, from+batch); i++ {
			pods = append(pods, sample.Pod(i))
		}
		w, err := newWatched[T](pods, serializer)
		if err != nil {
			return err
		}
		for i := range pods {
			pod, err := w.next()
			if err != nil {
				return err
			}
			if err := set(pod); err != nil {
				return fmt.Errorf("take pod %d: %w", from+i, err)
			}
		}
	}
	return nil
}
