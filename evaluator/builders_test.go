package evaluator_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/evaluator"
)

// Kinds that the tests speak of.
var (
	podKind     = schema.GroupResource{Resource: "pods"}
	serviceKind = schema.GroupResource{Resource: "services"}
	claimKind   = schema.GroupResource{Resource: "persistentvolumeclaims"}
	deployKind  = schema.GroupResource{Group: "apps", Resource: "deployments"}
	noon        = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
)

// served is a set of 1.37 that serves the given kinds.
func served(kinds ...schema.GroupResource) *evaluator.Set {
	return evaluator.NewSet("v1.37.2", kinds)
}

// forKind is the evaluator of one kind.
//
//nolint:ireturn // the face that is tested
func forKind(tb testing.TB, kind schema.GroupResource) evaluator.Evaluator {
	tb.Helper()
	found, ok := served(kind).For(kind)
	if !ok {
		tb.Fatalf("no evaluator for %v", kind)
	}
	return found
}

// charge charges one object at noon.
func charge(tb testing.TB, kind schema.GroupResource, obj runtime.Object) evaluator.Charge {
	tb.Helper()
	got, err := forKind(tb, kind).Charge(obj, noon)
	if err != nil {
		tb.Fatal(err)
	}
	return got
}

// list is a resource list from names and quantities in turn.
func list(pairs ...string) corev1.ResourceList {
	resources := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		resources[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return resources
}

// wantAmounts compares by value, and checks the order that Amounts promises.
func wantAmounts(tb testing.TB, got evaluator.Amounts, want corev1.ResourceList) {
	tb.Helper()
	if len(got) != len(want) {
		tb.Errorf("got %d amounts %v, want %d: %v", len(got), got, len(want), want)
	}
	for i, amount := range got {
		if i > 0 && got[i-1].Name >= amount.Name {
			tb.Errorf("%s is not after %s", amount.Name, got[i-1].Name)
		}
		expected, found := want[amount.Name]
		if !found || expected.Cmp(amount.Quantity) != 0 {
			tb.Errorf("%s: got %s, want %s (%t)", amount.Name, amount.Quantity.String(), expected.String(), found)
		}
	}
}

type podOption func(*corev1.Pod)

func pod(options ...podOption) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "p"}}
	for _, option := range options {
		option(p)
	}
	return p
}

// container adds one whose limits are those given, if any.
func container(name string, requests corev1.ResourceList, limits ...corev1.ResourceList) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, newContainer(name, requests, limits))
	}
}

func initContainer(name string, requests corev1.ResourceList) podOption {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, newContainer(name, requests, nil))
	}
}

func sidecar(requests corev1.ResourceList) podOption {
	return func(p *corev1.Pod) {
		added := newContainer("proxy", requests, nil)
		added.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		p.Spec.InitContainers = append(p.Spec.InitContainers, added)
	}
}

func newContainer(name string, requests corev1.ResourceList, limits []corev1.ResourceList) corev1.Container {
	made := corev1.Container{Name: name, Resources: corev1.ResourceRequirements{Requests: requests}}
	if len(limits) > 0 {
		made.Resources.Limits = limits[0]
	}
	return made
}

func overhead(resources corev1.ResourceList) podOption {
	return func(p *corev1.Pod) { p.Spec.Overhead = resources }
}

func podLevel(requests, limits corev1.ResourceList) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: requests, Limits: limits}
	}
}

// holding is the status of a container: what the node allocated, and what it set.
func holding(name string, allocated, actual corev1.ResourceList) podOption {
	return func(p *corev1.Pod) {
		status := corev1.ContainerStatus{Name: name, AllocatedResources: allocated}
		if actual != nil {
			status.Resources = &corev1.ResourceRequirements{Requests: actual, Limits: actual}
		}
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, status)
	}
}

func infeasible(p *corev1.Pod) {
	p.Status.Conditions = append(p.Status.Conditions,
		corev1.PodCondition{Type: corev1.PodResizePending, Reason: corev1.PodReasonInfeasible})
}

func phase(phase corev1.PodPhase) podOption {
	return func(p *corev1.Pod) { p.Status.Phase = phase }
}

// deleted sets the deletion timestamp, relative to noon, and the grace.
func deleted(since time.Duration, grace int64) podOption {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp = new(metav1.NewTime(noon.Add(since)))
		p.DeletionGracePeriodSeconds = &grace
	}
}

func qosClass(class corev1.PodQOSClass) podOption {
	return func(p *corev1.Pod) { p.Status.QOSClass = class }
}

func highPriority(p *corev1.Pod) {
	p.Spec.PriorityClassName = "high"
}

func activeDeadline(seconds int64) podOption {
	return func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = &seconds }
}

// affinity sets the pod's terms: required and preferred, near and far.
func affinity(near, nearPreferred, far, farPreferred []corev1.PodAffinityTerm) podOption {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{
			PodAffinity: &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution:  near,
				PreferredDuringSchedulingIgnoredDuringExecution: weighted(nearPreferred),
			},
			PodAntiAffinity: &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution:  far,
				PreferredDuringSchedulingIgnoredDuringExecution: weighted(farPreferred),
			},
		}
	}
}

func weighted(terms []corev1.PodAffinityTerm) []corev1.WeightedPodAffinityTerm {
	var made []corev1.WeightedPodAffinityTerm
	for _, term := range terms {
		made = append(made, corev1.WeightedPodAffinityTerm{Weight: 1, PodAffinityTerm: term})
	}
	return made
}
