package controller

import (
	"context"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/fleetquota/fleetquota/clusters"
	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// informer is client-go's, with the type of what it holds. Nobody changes an
// object that it gives out.
type informer[T runtime.Object] struct {
	cache.SharedIndexInformer
}

func newInformer[T runtime.Object](source cache.ListerWatcher, example T, resync time.Duration) informer[T] {
	index := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	i := informer[T]{cache.NewSharedIndexInformer(source, example, resync, index)}
	bounded := func(obj any) (any, error) {
		bound(obj)
		return obj, nil
	}
	if err := i.SetTransform(bounded); err != nil {
		panic(err) // it fails only once the informer runs
	}
	return i
}

// bound bounds the quantities of a quota or a record that was just read, and
// orders the rows of a record. A limit of 1e9999999 is easily written, and to
// compare it with another takes seconds; with a few more digits, all memory.
func bound(obj any) {
	switch quota := obj.(type) {
	case *corev1.ResourceQuota:
		evaluator.BoundAll(quota.Spec.Hard, quota.Status.Hard, quota.Status.Used)
	case *v1alpha1.FleetGrant:
		evaluator.BoundAll(quota.Spec.Hard)
		slices.SortFunc(quota.Spec.Members, func(a, b v1alpha1.Grant) int { return strings.Compare(a.Cluster, b.Cluster) })
		for i := range quota.Spec.Members {
			evaluator.BoundAll(quota.Spec.Members[i].Granted, quota.Spec.Members[i].Target)
		}
	case *v1alpha1.FleetQuota:
		status := &quota.Status
		evaluator.BoundAll(quota.Spec.Hard, status.Hard, status.Used, status.Granted)
		for i := range status.Clusters {
			evaluator.BoundAll(status.Clusters[i].Used, status.Clusters[i].Granted)
		}
		if quota.Spec.Distribution == nil {
			return
		}
		for _, share := range quota.Spec.Distribution.Members {
			evaluator.BoundAll(share.Hard, share.Min, share.Max)
		}
	}
}

// lister is the part of a typed client that an informer needs.
type lister[L runtime.Object] interface {
	List(ctx context.Context, o metav1.ListOptions) (L, error)
	Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error)
}

func listWatch[L runtime.Object](api lister[L]) cache.ListerWatcher {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return api.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := api.Watch(ctx, o)
			return w, clusters.Hasty(err)
		},
	}
}

// get finds an object; the zero value when there is none.
func (i informer[T]) get(key types.NamespacedName) T {
	name := key.String()
	if key.Namespace == "" {
		name = key.Name
	}
	obj, found, err := i.GetStore().GetByKey(name)
	if err != nil || !found {
		var none T
		return none
	}
	return of[T](obj)
}

// in is the objects of a namespace; all with an empty one.
func (i informer[T]) in(namespace string) []T {
	objects := i.GetStore().List()
	if namespace != "" {
		objects, _ = i.GetIndexer().ByIndex(cache.NamespaceIndex, namespace) //nolint:errcheck // the index exists
	}
	typed := make([]T, len(objects))
	for n, obj := range objects {
		typed[n] = of[T](obj)
	}
	return typed
}

// of is an object that an informer of its type gave.
func of[T any](obj any) T {
	return obj.(T) //nolint:errcheck,forcetypeassert // an informer holds nothing else
}

// keyOf names an object that an informer gave, which may be one whose deletion
// was missed.
func keyOf(obj any) types.NamespacedName {
	name, _ := cache.DeletionHandlingObjectToName(obj) //nolint:errcheck // an informer gives nothing else
	return types.NamespacedName(name)
}
