// Package count says what a namespace of a cluster uses, independently of
// fleetquota: everything is listed afresh through the API and summed by
// Kubernetes' own evaluators, those that its quota controller runs.
//
// It is the yardstick of the end-to-end tests.
package count

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/quota/v1/generic"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/quota/v1/install"
)

// Cluster is how to reach a cluster.
type Cluster struct {
	Kubernetes kubernetes.Interface
	Dynamic    dynamic.Interface
}

// Used is what a namespace uses of what a quota limits, as Kubernetes' own
// controller would write it: resources that nothing counts are absent.
func (c Cluster) Used(ctx context.Context, namespace string, spec corev1.ResourceQuotaSpec) (corev1.ResourceList, error) {
	list := func(resource schema.GroupVersionResource) (cache.GenericLister, error) {
		return lister{ctx: ctx, cluster: c, resource: resource}, nil
	}
	caches := newCaches()
	configuration, err := install.NewQuotaConfigurationForControllers(list, caches.factory)
	if err != nil {
		return nil, err
	}
	if err := caches.fill(ctx, c.Kubernetes, namespace); err != nil {
		return nil, err
	}
	registry := generic.NewRegistry(configuration.Evaluators())
	served, err := c.served()
	if err != nil {
		return nil, err
	}
	for name := range spec.Hard {
		kind, counted := strings.CutPrefix(string(name), "count/")
		if !counted {
			continue
		}
		resource, ok := served[schema.ParseGroupResource(kind)]
		if ok && registry.Get(resource.GroupResource()) == nil {
			registry.Add(generic.NewObjectCountEvaluator(resource.GroupResource(), generic.ListResourceUsingListerFunc(list, resource), ""))
		}
	}
	return quota.CalculateUsage(namespace, spec.Scopes, spec.Hard, registry, spec.ScopeSelector)
}

// served is every resource that can be listed, in its preferred version.
func (c Cluster) served() (map[schema.GroupResource]schema.GroupVersionResource, error) {
	lists, err := discovery.ServerPreferredNamespacedResources(c.Kubernetes.Discovery())
	if err != nil {
		return nil, err
	}
	served := map[schema.GroupResource]schema.GroupVersionResource{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, err
		}
		for i := range list.APIResources {
			if slices.Contains(list.APIResources[i].Verbs, "list") {
				resource := gv.WithResource(list.APIResources[i].Name)
				served[resource.GroupResource()] = resource
			}
		}
	}
	return served, nil
}

// lister lists one resource afresh on every call.
type lister struct {
	ctx       context.Context //nolint:containedctx // the interface of a lister has no place for it
	cluster   Cluster
	resource  schema.GroupVersionResource
	namespace string
}

var _ cache.GenericLister = lister{}

// ByNamespace narrows the lister.
func (l lister) ByNamespace(namespace string) cache.GenericNamespaceLister {
	l.namespace = namespace
	return l
}

// List lists what matches.
func (l lister) List(selector labels.Selector) ([]runtime.Object, error) {
	list, err := l.list(metav1.ListOptions{LabelSelector: selector.String()})
	if err != nil {
		return nil, fmt.Errorf("list %s: %w", l.resource, err)
	}
	return meta.ExtractList(list)
}

// list uses types where an evaluator wants them.
func (l lister) list(options metav1.ListOptions) (runtime.Object, error) {
	core := l.cluster.Kubernetes.CoreV1()
	switch l.resource {
	case corev1.SchemeGroupVersion.WithResource("pods"):
		return core.Pods(l.namespace).List(l.ctx, options)
	case corev1.SchemeGroupVersion.WithResource("services"):
		return core.Services(l.namespace).List(l.ctx, options)
	case corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"):
		return core.PersistentVolumeClaims(l.namespace).List(l.ctx, options)
	case resourcev1.SchemeGroupVersion.WithResource("resourceclaims"):
		return l.cluster.Kubernetes.ResourceV1().ResourceClaims(l.namespace).List(l.ctx, options)
	}
	return l.cluster.Dynamic.Resource(l.resource).Namespace(l.namespace).List(l.ctx, options)
}

// Get is part of the interface; no evaluator that we use calls it.
func (l lister) Get(name string) (runtime.Object, error) {
	return nil, apierrors.NewNotFound(l.resource.GroupResource(), name)
}
