package manifest

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	resourcehelper "k8s.io/component-helpers/resource"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// store fills in what the API server stores of an object that leaves it open,
// as far as it decides what the object costs.
func (in *Input) store(value runtime.Object, namespace string) {
	switch typed := value.(type) {
	case *corev1.Pod:
		in.storePod(typed, namespace)
	case *corev1.Service:
		typed.Spec.Type = cmp.Or(typed.Spec.Type, corev1.ServiceTypeClusterIP)
		if typed.Spec.Type == corev1.ServiceTypeLoadBalancer && typed.Spec.AllocateLoadBalancerNodePorts == nil {
			typed.Spec.AllocateLoadBalancerNodePorts = new(true)
		}
	case *corev1.PersistentVolumeClaim:
		toMilli(typed.Spec.Resources.Requests, typed.Spec.Resources.Limits, typed.Status.AllocatedResources, typed.Status.Capacity)
		if isNew(typed) {
			in.admission.admit(typed, namespace)
		}
	case *v1alpha1.FleetQuota:
		typed.Spec.StalePolicy = cmp.Or(typed.Spec.StalePolicy, v1alpha1.KeepLast)
	case *corev1.ResourceQuota:
		toMilli(typed.Spec.Hard, typed.Status.Hard, typed.Status.Used)
	}
}

// storePod takes the requests of containers from their limits, and then what
// is open from elsewhere. Up to 1.36 the resources of a pod as a whole are
// completed before that, whenever a pod is read, and after it later, once.
func (in *Input) storePod(pod *corev1.Pod, namespace string) {
	eachContainer(pod, func(resources *corev1.ResourceRequirements) {
		resources.Requests = filled(resources.Requests, resources.Limits)
	})
	late := limitsWhole(in.options.Rules)
	if !late {
		defaultWhole(pod, in.options.Rules)
	}
	roundPod(pod)
	if !isNew(pod) {
		return
	}
	in.admission.admit(pod, namespace)
	if late {
		defaultWhole(pod, in.options.Rules)
	}
}

// toMilli rounds quantities up to thousandths, the finest that is stored.
func toMilli(lists ...corev1.ResourceList) {
	for _, list := range lists {
		for name, quantity := range list {
			quantity.RoundUp(resource.Milli)
			list[name] = quantity
		}
	}
}

// roundPod rounds all that counts of a pod.
func roundPod(pod *corev1.Pod) {
	toMilli(pod.Spec.Overhead, pod.Status.AllocatedResources)
	eachContainer(pod, func(resources *corev1.ResourceRequirements) {
		toMilli(resources.Requests, resources.Limits)
	})
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range statuses {
			toMilli(statuses[i].AllocatedResources)
			if held := statuses[i].Resources; held != nil {
				toMilli(held.Requests, held.Limits)
			}
		}
	}
	for _, whole := range []*corev1.ResourceRequirements{pod.Spec.Resources, pod.Status.Resources} {
		if whole != nil {
			toMilli(whole.Requests, whole.Limits)
		}
	}
}

// limitsWhole says whether the limits of a pod as a whole have defaults, as
// they do from 1.37 on.
func limitsWhole(rules string) bool {
	switch rules {
	case "1.34", "1.35", "1.36":
		return false
	}
	return true
}

// defaultWhole completes the resources of a pod as a whole from those of its
// containers, where some of them are set.
func defaultWhole(pod *corev1.Pod, rules string) {
	whole := pod.Spec.Resources
	if whole == nil || len(whole.Limits)+len(whole.Requests) == 0 {
		return
	}
	containers := &corev1.Pod{Spec: corev1.PodSpec{Containers: pod.Spec.Containers, InitContainers: pod.Spec.InitContainers}}
	limits := resourcehelper.AggregateContainerLimits(containers, resourcehelper.PodResourcesOptions{})
	requests := resourcehelper.AggregateContainerRequests(containers, resourcehelper.PodResourcesOptions{})
	if whole.Limits == nil {
		whole.Limits = corev1.ResourceList{}
	}
	if whole.Requests == nil {
		whole.Requests = corev1.ResourceList{}
	}
	fill(whole.Limits, limits, func(name corev1.ResourceName) bool {
		_, requested := whole.Requests[name]
		return hugePages(name) && !requested
	})
	if len(whole.Limits) > 0 || limitsWhole(rules) {
		fill(whole.Requests, requests, func(name corev1.ResourceName) bool { return ofPods(name) && !hugePages(name) })
		fill(whole.Requests, whole.Limits, ofPods)
	}
	if limitsWhole(rules) {
		limitWhole(pod, whole, limits)
	}
}

// limitWhole sets a limit of the pod for what all its containers limit: the sum
// of theirs, or what the pod requests if that is more.
func limitWhole(pod *corev1.Pod, whole *corev1.ResourceRequirements, limits corev1.ResourceList) {
	for name, request := range whole.Requests {
		limit, limited := limits[name]
		if _, set := whole.Limits[name]; set || !limited || !ofPods(name) || !allLimit(pod, name) {
			continue
		}
		if request.Cmp(limit) > 0 {
			limit = request
		}
		whole.Limits[name] = limit.DeepCopy()
	}
}

// allLimit says whether every container has a limit.
func allLimit(pod *corev1.Pod, name corev1.ResourceName) bool {
	all := true
	eachContainer(pod, func(resources *corev1.ResourceRequirements) {
		_, limited := resources.Limits[name]
		all = all && limited
	})
	return all
}

// fill copies to a list what it lacks and the other has.
func fill(list, from corev1.ResourceList, which func(corev1.ResourceName) bool) {
	for name, quantity := range from {
		if _, set := list[name]; !set && which(name) {
			list[name] = quantity.DeepCopy()
		}
	}
}

func anyResource(corev1.ResourceName) bool { return true }

// ofPods says whether a resource can be set for a pod as a whole.
func ofPods(name corev1.ResourceName) bool {
	return resourcehelper.IsSupportedPodLevelResource(name)
}

func hugePages(name corev1.ResourceName) bool {
	return ofPods(name) && name != corev1.ResourceCPU && name != corev1.ResourceMemory
}
