package evaluator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	resourcehelper "k8s.io/component-helpers/resource"
)

// pods charges pods. Every stored pod costs one count/pods; one that can still
// run also costs one of pods, and what its containers request and are limited to.
type pods struct {
	rules rules
}

// Resource is the kind that pods charges.
func (pods) Resource() schema.GroupResource {
	return corev1.Resource("pods")
}

// Covers says whether pods are part of the amount.
func (p pods) Covers(name corev1.ResourceName) bool {
	canonical := Canonical(name)
	if oneOf(canonical, countPods, corev1.ResourcePods,
		corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceRequestsEphemeralStorage,
		corev1.ResourceLimitsCPU, corev1.ResourceLimitsMemory, corev1.ResourceLimitsEphemeralStorage) {
		return true
	}
	return hugePages(name) || strings.HasPrefix(string(canonical), corev1.ResourceRequestsHugePagesPrefix) || p.rules.extendedRequest(canonical)
}

// Charge says what a pod costs. Only a pod that is being deleted has an Until.
func (p pods) Charge(obj runtime.Object, now time.Time) (Charge, error) {
	pod, err := as[corev1.Pod](obj)
	if err != nil {
		return Charge{}, err
	}
	stored := Charge{Amounts: Amounts{count(countPods, 1)}, Class: p.rules.podClass(pod)}
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return stored, nil
	}
	deadline, deleted := deletionDeadline(pod)
	if deleted && now.After(deadline) {
		return stored, nil
	}
	running := Charge{Amounts: p.running(pod), Class: stored.Class}
	if deleted {
		running.Until = deadline
		running.After = &stored
	}
	return running, nil
}

// deletionDeadline is when a pod that is being deleted stops to cost anything
// that runs. The deletion timestamp includes the grace period already, and quota
// adds it once more: the number must be that of Kubernetes.
func deletionDeadline(pod *corev1.Pod) (deadline time.Time, deleted bool) {
	if pod.DeletionTimestamp == nil || pod.DeletionGracePeriodSeconds == nil {
		return time.Time{}, false
	}
	grace := time.Duration(*pod.DeletionGracePeriodSeconds) * time.Second
	return pod.DeletionTimestamp.Add(grace), true
}

// running is what a pod costs that can still run.
func (p pods) running(pod *corev1.Pod) Amounts {
	requests, limits := p.rules.sum(detached(bounded(pod)))

	amounts := make(Amounts, 0, 2+len(requests)+len(limits))
	amounts = append(amounts, count(countPods, 1), count(corev1.ResourcePods, 1))
	for name, request := range requests {
		if compute(name) || hugePages(name) || p.rules.extended(name) {
			amounts = append(amounts, Amount{Name: requested(name), Quantity: request.DeepCopy()})
		}
	}
	for name, limit := range limits {
		if compute(name) {
			amounts = append(amounts, Amount{Name: limited(name), Quantity: limit.DeepCopy()})
		}
	}
	return ordered(amounts)
}

// detached is the pod, safe to be summed: the sum adds the overhead in place to
// the quantities of the pod-level resources, so these must be a copy.
func detached(pod *corev1.Pod) *corev1.Pod {
	if pod.Spec.Resources == nil || pod.Spec.Overhead == nil {
		return pod
	}
	safe := *pod
	safe.Spec.Resources = pod.Spec.Resources.DeepCopy()
	return &safe
}

// Constraints names the containers that leave cpu or memory open although a
// quota limits it. A pod that sets resources for itself as a whole may.
func (p pods) Constraints(obj runtime.Object, required []corev1.ResourceName) error {
	pod, err := as[corev1.Pod](obj)
	if err != nil {
		return err
	}
	if resourcehelper.IsPodLevelResourcesSet(pod) {
		return nil
	}
	var open []string
	for _, name := range slices.Compact(slices.Sorted(slices.Values(required))) {
		if containers := leavingOpen(pod, name); len(containers) > 0 {
			open = append(open, fmt.Sprintf("%s for: %s", name, strings.Join(containers, ",")))
		}
	}
	if len(open) == 0 {
		return nil
	}
	return errors.New("must specify " + strings.Join(open, "; "))
}

// leavingOpen lists the containers, sorted, that must set the resource behind a
// quota's name and do not.
func leavingOpen(pod *corev1.Pod, name corev1.ResourceName) []string {
	var containers []string
	for _, list := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range list {
			if !specifies(&list[i].Resources, name) {
				containers = append(containers, list[i].Name)
			}
		}
	}
	slices.Sort(containers)
	return slices.Compact(containers)
}

// specifies says whether a container sets the resource behind a quota's name.
// Only cpu and memory have to be set; zero is set.
func specifies(resources *corev1.ResourceRequirements, name corev1.ResourceName) bool {
	list := resources.Requests
	wanted, isLimit := strings.CutPrefix(string(name), limitsPrefix)
	if isLimit {
		list = resources.Limits
	} else {
		wanted = strings.TrimPrefix(wanted, corev1.DefaultResourceRequestsPrefix)
	}
	if !oneOf(corev1.ResourceName(wanted), corev1.ResourceCPU, corev1.ResourceMemory) {
		return true
	}
	_, set := list[corev1.ResourceName(wanted)]
	return set
}
