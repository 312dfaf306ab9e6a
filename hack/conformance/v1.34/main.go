// Command v1.34 answers as the quota controller of Kubernetes 1.34 does.
package main

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/pkg/apis/core"
	k8sv1 "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/resource"
	k8sresourcev1 "k8s.io/kubernetes/pkg/apis/resource/v1"
	evaluators "k8s.io/kubernetes/pkg/quota/v1/evaluator/core"
	"k8s.io/utils/clock"

	"github.com/fleetquota/fleetquota/hack/conformance/answer/upstream"
)

func main() {
	upstream.Main(upstream.Version{Evaluators: all, ServiceType: evaluators.GetQuotaServiceType, Valid: valid, Internal: internal})
}

// ticking is the real clock but for the time.
type ticking struct {
	clock.RealClock

	now func() time.Time
}

// Now is the time of the World.
func (t ticking) Now() time.Time { return t.now() }

// all is every evaluator of this version, with the pods' by another clock.
func all(f quota.ListerForResourceFunc, _ informers.SharedInformerFactory, now func() time.Time) ([]quota.Evaluator, error) {
	made := evaluators.NewEvaluators(f)
	pods := evaluators.NewPodEvaluator(f, ticking{now: now})
	for n := range made {
		if made[n].GroupResource() == pods.GroupResource() {
			made[n] = pods
		}
	}
	return made, nil
}

// valid says whether the scopes of a quota pass validation.
func valid(q *corev1.ResourceQuota) (bool, error) {
	scopes := &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Scopes: q.Spec.Scopes, ScopeSelector: q.Spec.ScopeSelector}}
	var inside core.ResourceQuota
	if err := k8sv1.Convert_v1_ResourceQuota_To_core_ResourceQuota(scopes.DeepCopy(), &inside, nil); err != nil {
		return false, err
	}
	return len(validation.ValidateResourceQuotaSpec(&inside.Spec, field.NewPath("spec"))) == 0, nil
}

// internal converts an object to the form that the API server uses inside.
func internal(object runtime.Object) (runtime.Object, error) {
	switch typed := object.(type) {
	case *corev1.Pod:
		var inside core.Pod
		return &inside, k8sv1.Convert_v1_Pod_To_core_Pod(typed, &inside, nil)
	case *corev1.Service:
		var inside core.Service
		return &inside, k8sv1.Convert_v1_Service_To_core_Service(typed, &inside, nil)
	case *corev1.PersistentVolumeClaim:
		var inside core.PersistentVolumeClaim
		return &inside, k8sv1.Convert_v1_PersistentVolumeClaim_To_core_PersistentVolumeClaim(typed, &inside, nil)
	case *resourcev1.ResourceClaim:
		var inside resource.ResourceClaim
		return &inside, k8sresourcev1.Convert_v1_ResourceClaim_To_resource_ResourceClaim(typed, &inside, nil)
	}
	return nil, fmt.Errorf("unexpected %T", object)
}
