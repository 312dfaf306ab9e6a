package count

import (
	"context"
	"fmt"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// caches are informers that are never started: the evaluator of ResourceClaims
// looks pods, claims and device classes up in them. They hold what was listed
// just before.
type caches struct {
	factory  informers.SharedInformerFactory
	handlers []cache.ResourceEventHandler // who wants to know of device classes
}

func newCaches() *caches {
	c := &caches{factory: informers.NewSharedInformerFactory(nil, 0)}
	c.factory.InformerFor(&resourcev1.DeviceClass{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
		return classes{cache.NewSharedIndexInformer(nil, &resourcev1.DeviceClass{}, 0, nil), c}
	})
	return c
}

// classes is the informer of device classes. Handlers are called by fill, so
// that they have heard of everything when that is done.
type classes struct {
	cache.SharedIndexInformer

	caches *caches
}

// AddEventHandler notes who listens.
func (i classes) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	i.caches.handlers = append(i.caches.handlers, handler)
	return i.SharedIndexInformer.AddEventHandler(handler)
}

// fill lists what claims of a namespace depend on.
func (c *caches) fill(ctx context.Context, api kubernetes.Interface, namespace string) error {
	pods, err := api.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	claims, err := api.ResourceV1().ResourceClaims(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list resource claims: %w", err)
	}
	classes, err := api.ResourceV1().DeviceClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list device classes: %w", err)
	}
	if err := add(c.factory.Core().V1().Pods().Informer(), pods.Items); err != nil {
		return err
	}
	if err := add(c.factory.Resource().V1().ResourceClaims().Informer(), claims.Items); err != nil {
		return err
	}
	for i := range classes.Items {
		for _, handler := range c.handlers {
			handler.OnAdd(&classes.Items[i], true)
		}
	}
	return nil
}

func add[T any](informer cache.SharedIndexInformer, items []T) error {
	for i := range items {
		if err := informer.GetIndexer().Add(&items[i]); err != nil {
			return err
		}
	}
	return nil
}
