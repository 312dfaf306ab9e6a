package main

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/utils/clock"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/hack/e2e/bench/sample"
)

// ours is what the hub keeps of one member's pods.
type ours struct {
	pods   evaluator.Evaluator
	ledger *federation.Ledger
	book   *federation.Book
}

const memberName = "member"

func newOurs() (*ours, error) {
	set := evaluator.NewSet(kubernetesVersion(), []schema.GroupResource{podKind()})
	pods, found := set.For(podKind())
	if !found {
		return nil, errors.New("there is no evaluator of pods")
	}
	ledger := federation.NewLedger(nil)
	ledger.Mark(memberName, federation.Reach{Phase: v1alpha1.Live})
	book := ledger.Open(memberName, set, nil)
	book.Replace(podKind(), func(func(federation.Object) bool) {})
	return &ours{pods: pods, ledger: ledger, book: book}, nil
}

// set charges a pod into the book, as the hub's observer does.
func (u *ours) set(pod *corev1.Pod) error {
	charge, err := u.pods.Charge(pod, time.Now())
	if err != nil {
		return err
	}
	u.book.Set(podKind(), federation.Object{Namespace: pod.Namespace, Name: pod.Name, Charge: charge})
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

// used recounts what a quota for all keys of pods uses.
func (u *upstream) used() (corev1.ResourceList, error) {
	hard := corev1.ResourceList{}
	for _, key := range podKeys() {
		hard[key] = *resource.NewQuantity(1, resource.DecimalSI)
	}
	return quota.CalculateUsage(namespace, nil, hard, u.registry, nil)
}

// fill gives pods 0 to n, decoded, to both sides or either.
func fill(n int, set ...func(*corev1.Pod) error) error {
	const batch = 1000
	for from := 0; from < n; from += batch {
		var pods []*corev1.Pod
		for i := from; i < min(n, from+batch); i++ {
			pods = append(pods, sample.Pod(i))
		}
		w, err := newWire(pods)
		if err != nil {
			return err
		}
		for range pods {
			pod, err := w.next()
			if err != nil {
				return err
			}
			for _, set := range set {
				if err := set(pod); err != nil {
					return fmt.Errorf("take pod %s: %w", pod.Name, err)
				}
			}
		}
	}
	return nil
}
