package controller

import (
	"context"
	"errors"
	"maps"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/fleetquota/fleetquota/clusters"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// catalogue is the kinds that a member serves: kind -> the version to watch.
type catalogue map[schema.GroupResource]string

func (c catalogue) kinds() []schema.GroupResource { return slices.Collect(maps.Keys(c)) }

func (c catalogue) set() map[schema.GroupResource]struct{} {
	set := make(map[schema.GroupResource]struct{}, len(c))
	for kind := range c {
		set[kind] = struct{}{}
	}
	return set
}

// discover asks a member which namespaced kinds it lets us list and watch, in
// the version that it prefers. A group that does not answer keeps the kinds
// that it had before: partial discovery is partial, not fatal.
func discover(_ context.Context, conn *clusters.Connection, before catalogue) (catalogue, error) {
	api, err := discovery.NewDiscoveryClientForConfigAndClient(conn.Config, conn.Client)
	if err != nil {
		return nil, err
	}
	lists, err := discovery.ServerPreferredNamespacedResources(api)
	var partial *discovery.ErrGroupDiscoveryFailed
	if err != nil && !errors.As(err, &partial) {
		return nil, err
	}
	served := catalogue{}
	for _, list := range lists {
		if err := served.add(list); err != nil {
			return nil, err
		}
	}
	if partial == nil {
		return served, nil
	}
	for gv := range partial.Groups {
		for kind, version := range before {
			if _, ok := served[kind]; !ok && kind.Group == gv.Group {
				served[kind] = version
			}
		}
	}
	return served, nil
}

func (c catalogue) add(list *metav1.APIResourceList) error {
	gv, err := schema.ParseGroupVersion(list.GroupVersion)
	if err != nil {
		return errors.New("a group has a malformed name")
	}
	for _, r := range list.APIResources {
		if slices.Contains(r.Verbs, "list") && slices.Contains(r.Verbs, "watch") {
			c[schema.GroupResource{Group: gv.Group, Resource: r.Name}] = gv.Version
		}
	}
	return nil
}

// permitted is the mode in effect: without the permission to write the status
// of local quotas the hub never does.
func permitted(ctx context.Context, conn *clusters.Connection, mode v1alpha1.LocalStatusMode) (v1alpha1.LocalStatusMode, error) {
	if mode == v1alpha1.LocalNever {
		return mode, nil
	}
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "update", Resource: "resourcequotas", Subresource: "status"},
	}}
	answer, err := conn.Kubernetes.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return mode, err
	}
	if !answer.Status.Allowed {
		return v1alpha1.LocalNever, nil
	}
	return mode, nil
}
