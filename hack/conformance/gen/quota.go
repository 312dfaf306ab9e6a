package gen

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

var (
	scopes = []corev1.ResourceQuotaScope{
		corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeNotTerminating, corev1.ResourceQuotaScopeBestEffort,
		corev1.ResourceQuotaScopeNotBestEffort, corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeCrossNamespacePodAffinity,
		corev1.ResourceQuotaScopeVolumeAttributesClass,
	}
	limited = []corev1.ResourceName{
		"cpu", "requests.cpu", "limits.cpu", "memory", "requests.memory", "limits.memory", "ephemeral-storage", "requests.ephemeral-storage",
		"limits.ephemeral-storage", "pods", "count/pods", "hugepages-2Mi", "requests.hugepages-2Mi", "requests.hugepages-1Gi", "limits.hugepages-2Mi",
		"requests.example.com/gpu", "requests.example.com/nic", "example.com/gpu", "limits.example.com/gpu", "requests.kubernetes.io/batch",
		"services", "count/services", "services.nodeports", "services.loadbalancers",
		"persistentvolumeclaims", "count/persistentvolumeclaims", "requests.storage", "storage",
		"gold.storageclass.storage.k8s.io/requests.storage", "gold.storageclass.storage.k8s.io/persistentvolumeclaims",
		"requests.gold.storageclass.storage.k8s.io/requests.storage", "hugepages-gold.storageclass.storage.k8s.io/requests.storage",
		"count/resourceclaims.resource.k8s.io", "big.deviceclass.resource.k8s.io/devices", "small.deviceclass.resource.k8s.io/devices",
		"hugepages-big.deviceclass.resource.k8s.io/devices", "requests.deviceclass.resource.kubernetes.io/big",
		"requests.deviceclass.resource.kubernetes.io/small", "requests.deviceclass.resource.kubernetes.io/hugepages-big",
		"configmaps", "count/configmaps", "secrets", "replicationcontrollers", "resourcequotas", "count/resourcequotas",
		"count/deployments.apps", "count/deployments", "count/widgets.example.com", "count/events", "unknown", "requests.unknown",
	}
)

func (m *maker) quota() *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{}
	q.Spec.Hard = corev1.ResourceList{}
	for range 1 + m.IntN(6) {
		q.Spec.Hard[pick(m, limited...)] = resource.MustParse("1")
	}
	if m.chance(40) {
		for range 1 + m.IntN(2) {
			q.Spec.Scopes = append(q.Spec.Scopes, m.scope())
		}
	}
	if m.chance(50) {
		q.Spec.ScopeSelector = &corev1.ScopeSelector{}
		for range m.IntN(3) {
			q.Spec.ScopeSelector.MatchExpressions = append(q.Spec.ScopeSelector.MatchExpressions, m.expression())
		}
	}
	return q
}

func (m *maker) scope() corev1.ResourceQuotaScope {
	if m.chance(2) {
		return "Bogus"
	}
	return pick(m, scopes...)
}

func (m *maker) expression() corev1.ScopedResourceSelectorRequirement {
	e := corev1.ScopedResourceSelectorRequirement{ScopeName: m.scope(), Operator: pick(m,
		corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn, corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist)}
	named := e.ScopeName == corev1.ResourceQuotaScopePriorityClass || e.ScopeName == corev1.ResourceQuotaScopeVolumeAttributesClass
	if !named && m.chance(85) {
		e.Operator = corev1.ScopeSelectorOpExists
	}
	if m.chance(2) {
		e.Operator = "Bad"
	}
	if listed := e.Operator == corev1.ScopeSelectorOpIn || e.Operator == corev1.ScopeSelectorOpNotIn; listed != m.chance(5) {
		for range 1 + m.IntN(2) {
			e.Values = append(e.Values, pick(m, "a", "b", "gold", "high", "low", "a.b"))
		}
	}
	return e
}
