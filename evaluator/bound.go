package evaluator

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// tooFar is beyond every amount that can be meant. A quantity such as 1e9999999
// is read and stored in no time, but to add or to compare it takes seconds, and
// with a longer exponent hours.
const tooFar = 1e30

// Bound is the quantity, or the largest that Kubernetes knows in the place of
// one that nobody can reckon with. Every quantity that others wrote must be
// bounded before it is added or compared.
func Bound(quantity resource.Quantity) resource.Quantity {
	if !beyond(quantity) {
		return quantity
	}
	largest := int64(math.MaxInt64)
	if quantity.AsApproximateFloat64() < 0 {
		largest = -largest
	}
	return *resource.NewQuantity(largest, quantity.Format)
}

// BoundAll bounds every quantity of the lists in place. It writes only where it
// must, so that a second time changes nothing.
func BoundAll(lists ...corev1.ResourceList) {
	for _, list := range lists {
		for name, quantity := range list {
			if beyond(quantity) {
				list[name] = Bound(quantity)
			}
		}
	}
}

func beyond(quantity resource.Quantity) bool {
	return math.Abs(quantity.AsApproximateFloat64()) > tooFar
}

// bounded is the pod, or a copy of it, in which every quantity is bounded.
func bounded(pod *corev1.Pod) *corev1.Pod {
	fine := true
	eachList(pod, func(list corev1.ResourceList) {
		for _, quantity := range list {
			fine = fine && !beyond(quantity)
		}
	})
	if fine {
		return pod
	}
	safe := pod.DeepCopy()
	eachList(safe, func(list corev1.ResourceList) { BoundAll(list) })
	return safe
}

// eachList visits every list of resources of which a pod's charge is made.
func eachList(pod *corev1.Pod, visit func(corev1.ResourceList)) {
	visit(pod.Spec.Overhead)
	visitRequirements(pod.Spec.Resources, visit)
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			visitRequirements(&containers[i].Resources, visit)
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
		for i := range statuses {
			visit(statuses[i].AllocatedResources)
			visitRequirements(statuses[i].Resources, visit)
		}
	}
}

func visitRequirements(resources *corev1.ResourceRequirements, visit func(corev1.ResourceList)) {
	if resources != nil {
		visit(resources.Requests)
		visit(resources.Limits)
	}
}
