package evaluator

import (
	corev1 "k8s.io/api/core/v1"
)

// podClass is the class of scopes of a pod, whatever its phase.
func (r rules) podClass(pod *corev1.Pod) Class {
	return Class{
		Kind:                   ScopedPod,
		Terminating:            pod.Spec.ActiveDeadlineSeconds != nil && *pod.Spec.ActiveDeadlineSeconds >= 0,
		BestEffort:             r.bestEffort(pod),
		CrossNamespaceAffinity: crossNamespaceAffinity(pod.Spec.Affinity),
		PriorityClass:          pod.Spec.PriorityClassName,
	}
}

// bestEffort says whether the pod's quality of service is BestEffort: what the
// API server recorded, else no cpu and no memory requested or limited anywhere.
func (r rules) bestEffort(pod *corev1.Pod) bool {
	if pod.Status.QOSClass != "" {
		return pod.Status.QOSClass == corev1.PodQOSBestEffort
	}
	if r.podLevelDecides(pod) {
		return r.asksNothing(pod.Spec.Resources)
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if !r.asksNothing(&list[i].Resources) {
				return false
			}
		}
	}
	return true
}

// asksNothing says whether neither cpu nor memory is requested or limited. Zero
// is nothing, as is every other resource.
func (r rules) asksNothing(resources *corev1.ResourceRequirements) bool {
	for _, list := range []corev1.ResourceList{resources.Requests, resources.Limits} {
		for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
			if quantity := list[name]; r.something(quantity) {
				return false
			}
		}
	}
	return true
}

// crossNamespaceAffinity says whether any term of pod affinity or anti-affinity
// names namespaces or selects them, even if it then selects none.
func crossNamespaceAffinity(affinity *corev1.Affinity) bool {
	if affinity == nil {
		return false
	}
	if near := affinity.PodAffinity; near != nil &&
		crossesNamespaces(near.RequiredDuringSchedulingIgnoredDuringExecution, near.PreferredDuringSchedulingIgnoredDuringExecution) {
		return true
	}
	far := affinity.PodAntiAffinity
	return far != nil &&
		crossesNamespaces(far.RequiredDuringSchedulingIgnoredDuringExecution, far.PreferredDuringSchedulingIgnoredDuringExecution)
}

// crossesNamespaces says whether one of the terms looks beyond the pod's namespace.
func crossesNamespaces(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) bool {
	for i := range required {
		if crosses(&required[i]) {
			return true
		}
	}
	for i := range preferred {
		if crosses(&preferred[i].PodAffinityTerm) {
			return true
		}
	}
	return false
}

// crosses says whether one term looks beyond the pod's namespace.
func crosses(term *corev1.PodAffinityTerm) bool {
	return len(term.Namespaces) > 0 || term.NamespaceSelector != nil
}
