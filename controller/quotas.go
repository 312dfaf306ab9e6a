package controller

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// quotas knows the FleetQuotas of the hub.
type quotas struct {
	informer[*v1alpha1.FleetQuota]

	hub *hub
}

func newQuotas(h *hub) *quotas {
	source := listWatch(h.fleet.Quotas(metav1.NamespaceAll))
	return &quotas{informer: newInformer(source, &v1alpha1.FleetQuota{}, 0), hub: h}
}

// run keeps them until ctx ends. Where one asks for something else than before,
// the members are told.
func (q *quotas) run(ctx context.Context) error {
	asks := func(obj any) {
		q.hub.report.queue.Add(keyOf(obj))
		q.hub.enforce.queue.Add(keyOf(obj))
		q.hub.roster.askAll()
	}
	_, err := q.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: asks, DeleteFunc: asks,
		UpdateFunc: func(before, now any) {
			if equality.Semantic.DeepEqual(of[*v1alpha1.FleetQuota](before).Spec, of[*v1alpha1.FleetQuota](now).Spec) {
				q.hub.report.queue.Add(keyOf(now))
				q.hub.enforce.queue.Add(keyOf(now))
				return
			}
			asks(now)
		},
	})
	if err != nil {
		return fmt.Errorf("watch FleetQuotas: %w", err)
	}
	q.RunWithContext(ctx)
	return nil
}

// asked is every resource that some FleetQuota asks of a member with these
// labels.
func (q *quotas) asked(memberLabels map[string]string) []corev1.ResourceName {
	asked := map[corev1.ResourceName]struct{}{}
	for _, quota := range q.in("") {
		compiled, err := compile(quota)
		if err != nil || !compiled.members.Matches(labels.Set(memberLabels)) {
			continue
		}
		for name := range quota.Spec.Hard {
			asked[name] = struct{}{}
		}
	}
	return slices.Collect(maps.Keys(asked))
}

// compiled is a FleetQuota's spec in the form that answers questions.
type compiled struct {
	members  labels.Selector
	question federation.Question
}

// compile reads a spec. The error names the field.
func compile(quota *v1alpha1.FleetQuota) (compiled, error) {
	members := labels.Everything()
	if quota.Spec.ClusterSelector != nil {
		var err error
		if members, err = metav1.LabelSelectorAsSelector(quota.Spec.ClusterSelector); err != nil {
			return compiled{}, fmt.Errorf("spec.clusterSelector: %w", err)
		}
	}
	scopes, err := evaluator.NewSelector(quota.Spec.Scopes, quota.Spec.ScopeSelector)
	if err != nil {
		return compiled{}, err
	}
	return compiled{members: members, question: question(quota.Namespace, quota.Spec.Hard, scopes)}, nil
}

func question(namespace string, hard corev1.ResourceList, scopes evaluator.Selector) federation.Question {
	names := slices.Sorted(maps.Keys(hard))
	return federation.Question{Namespace: namespace, Resources: names, Selector: scopes}
}
