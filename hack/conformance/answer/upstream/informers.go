package upstream

import (
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// idle makes informers that are never started. The one for device classes
// notes who listens.
func idle(listeners *[]cache.ResourceEventHandler) informers.SharedInformerFactory {
	factory := informers.NewSharedInformerFactory(nil, 0)
	factory.InformerFor(&resourcev1.DeviceClass{}, func(kubernetes.Interface, time.Duration) cache.SharedIndexInformer {
		informer := cache.NewSharedIndexInformer(nil, &resourcev1.DeviceClass{}, 0, nil)
		return listened{informer, listeners}
	})
	return factory
}

type listened struct {
	cache.SharedIndexInformer

	listeners *[]cache.ResourceEventHandler
}

// AddEventHandler notes who listens.
func (l listened) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	*l.listeners = append(*l.listeners, handler)
	return l.SharedIndexInformer.AddEventHandler(handler)
}
