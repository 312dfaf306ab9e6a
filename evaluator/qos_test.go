package evaluator_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/evaluator"
)

func TestPodClassBestEffort(t *testing.T) {
	tests := map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"nothing asked":                 {pod: pod(container("app", nil)), want: true},
		"no container at all":           {pod: pod(), want: true},
		"zero is nothing":               {pod: pod(container("app", list("cpu", "0"), list("memory", "0"))), want: true},
		"other resources do not matter": {pod: pod(container("app", list("ephemeral-storage", "1Gi"))), want: true},
		"a request":                     {pod: pod(container("app", list("cpu", "1m")))},
		"a limit":                       {pod: pod(container("app", nil, list("memory", "1Mi")))},
		"one container of two":          {pod: pod(container("app", nil), container("log", list("memory", "1Mi")))},
		"an init container":             {pod: pod(initContainer("setup", list("cpu", "1")), container("app", nil))},
		"the whole pod":                 {pod: pod(podLevel(list("cpu", "1"), nil), container("app", nil))},
		"the whole pod's zero hides its containers": {pod: pod(podLevel(list("cpu", "0"), nil), container("app", list("cpu", "1"))), want: true},
		"the whole pod's huge pages hide them too":  {pod: pod(podLevel(list("hugepages-2Mi", "2Mi"), nil), container("app", list("cpu", "1"))), want: true},
		"empty resources of the pod hide nothing":   {pod: pod(podLevel(nil, nil), container("app", list("cpu", "1")))},
		"what was recorded wins":                    {pod: pod(qosClass(corev1.PodQOSBestEffort), container("app", list("cpu", "1"))), want: true},
		"what was recorded wins against nothing":    {pod: pod(qosClass(corev1.PodQOSBurstable), container("app", nil))},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			if got := charge(t, podKind, test.pod).Class; got.BestEffort != test.want {
				t.Errorf("best effort is %t, want %t", got.BestEffort, test.want)
			}
		})
	}
}

func TestPodClass(t *testing.T) {
	here := []corev1.PodAffinityTerm{{TopologyKey: "zone"}}
	named := []corev1.PodAffinityTerm{{TopologyKey: "zone"}, {TopologyKey: "zone", Namespaces: []string{"team-b"}}}
	selected := []corev1.PodAffinityTerm{{TopologyKey: "zone", NamespaceSelector: &metav1.LabelSelector{}}}
	tests := map[string]struct {
		pod  *corev1.Pod
		want evaluator.Class
	}{
		"a plain pod":                   {pod: pod(), want: evaluator.Class{BestEffort: true}},
		"a deadline":                    {pod: pod(activeDeadline(60)), want: evaluator.Class{BestEffort: true, Terminating: true}},
		"a deadline of zero":            {pod: pod(activeDeadline(0)), want: evaluator.Class{BestEffort: true, Terminating: true}},
		"a negative deadline is none":   {pod: pod(activeDeadline(-1)), want: evaluator.Class{BestEffort: true}},
		"deletion is not terminating":   {pod: pod(deleted(0, 30)), want: evaluator.Class{BestEffort: true}},
		"a priority class":              {pod: pod(highPriority), want: evaluator.Class{BestEffort: true, PriorityClass: "high"}},
		"a finished pod has a class":    {pod: pod(highPriority, phase(corev1.PodFailed)), want: evaluator.Class{BestEffort: true, PriorityClass: "high"}},
		"affinity within the namespace": {pod: pod(affinity(here, here, here, here)), want: evaluator.Class{BestEffort: true}},
		"affinity without terms":        {pod: pod(func(p *corev1.Pod) { p.Spec.Affinity = &corev1.Affinity{} }), want: evaluator.Class{BestEffort: true}},
		"required affinity":             {pod: pod(affinity(named, nil, nil, nil)), want: evaluator.Class{BestEffort: true, CrossNamespaceAffinity: true}},
		"preferred affinity":            {pod: pod(affinity(here, named, nil, nil)), want: evaluator.Class{BestEffort: true, CrossNamespaceAffinity: true}},
		"required anti-affinity":        {pod: pod(affinity(nil, nil, selected, nil)), want: evaluator.Class{BestEffort: true, CrossNamespaceAffinity: true}},
		"preferred anti-affinity":       {pod: pod(affinity(nil, nil, nil, selected)), want: evaluator.Class{BestEffort: true, CrossNamespaceAffinity: true}},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			test.want.Kind = evaluator.ScopedPod
			if got := charge(t, podKind, test.pod).Class; got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
