package gen

import (
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (m *maker) pod(n int) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: m.meta("p", n)}
	m.containers(p)
	m.podLevel(p)
	m.life(p)
	m.scopes(p)
	return p
}

// containers draws containers and what the node says of them.
func (m *maker) containers(p *corev1.Pod) {
	draw := m.requirements
	if m.chance(25) {
		draw = m.almostNothing
	}
	for i := range m.IntN(4) {
		c := corev1.Container{Name: "c" + strconv.Itoa(i), Resources: draw()}
		if m.chance(5) {
			c.Name = "c0"
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
		if m.chance(40) {
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, m.status(c.Name))
		}
	}
	for i := range m.IntN(4) {
		c := corev1.Container{Name: "i" + strconv.Itoa(i), Resources: draw()}
		if m.chance(50) {
			c.RestartPolicy = new(pick(m, corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever))
		}
		if m.chance(3) {
			c.Name = "c0"
		}
		p.Spec.InitContainers = append(p.Spec.InitContainers, c)
		if m.chance(40) {
			p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, m.status(c.Name))
		}
	}
}

// almostNothing draws what a best-effort container may ask for.
func (m *maker) almostNothing() corev1.ResourceRequirements {
	switch m.IntN(4) {
	case 0:
		return corev1.ResourceRequirements{}
	case 1:
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("0")}}
	case 2:
		return corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{"memory": resource.MustParse("-1")}}
	}
	return corev1.ResourceRequirements{Limits: corev1.ResourceList{"ephemeral-storage": resource.MustParse("1")}}
}

func (m *maker) status(name string) corev1.ContainerStatus {
	s := corev1.ContainerStatus{Name: name, AllocatedResources: m.list()}
	if m.chance(70) {
		s.Resources = new(m.requirements())
	}
	return s
}

// podLevel draws what the pod asks for and holds as a whole.
func (m *maker) podLevel(p *corev1.Pod) {
	if m.chance(30) {
		p.Spec.Overhead = m.list()
	}
	if m.chance(30) {
		p.Spec.Resources = new(m.requirements())
		if m.chance(30) {
			p.Spec.Resources = new(m.almostNothing())
		}
	}
	if m.chance(30) {
		p.Status.AllocatedResources = m.list()
		p.Status.Resources = new(m.requirements())
	}
	if m.chance(30) {
		for range 1 + m.IntN(2) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
				Type:   pick(m, corev1.PodResizePending, corev1.PodResizeInProgress),
				Reason: pick(m, corev1.PodReasonInfeasible, corev1.PodReasonDeferred),
			})
		}
	}
	if m.chance(10) {
		p.Status.NodeAllocatableResourceClaimStatuses = []corev1.NodeAllocatableResourceClaimStatus{{
			Containers: []string{"c0"}, Mapping: []corev1.NodeAllocatableMappedResources{{Name: "cpu", Quantity: new(m.quantity())}},
		}}
	}
}

// life draws how far a pod has come.
func (m *maker) life(p *corev1.Pod) {
	p.Status.Phase = pick(m, corev1.PodRunning, corev1.PodPending, corev1.PodRunning, corev1.PodUnknown, "", corev1.PodFailed, corev1.PodSucceeded)
	if m.chance(20) {
		at := m.now.Add(time.Duration(m.IntN(5)-2) * 30 * time.Second)
		if m.far {
			at = pick(m, m.now.AddDate(-20, 0, 0), m.now.AddDate(200, 0, 0))
		}
		p.DeletionTimestamp = new(metav1.NewTime(at))
		if m.chance(80) {
			p.DeletionGracePeriodSeconds = new(pick[int64](m, 0, 30, 60, -10, 31))
		}
	}
}

// scopes draws what puts a pod into a scope.
func (m *maker) scopes(p *corev1.Pod) {
	if m.chance(30) {
		p.Spec.ActiveDeadlineSeconds = new(pick[int64](m, -1, 0, 5))
	}
	if m.chance(60) {
		p.Spec.PriorityClassName = pick(m, "high", "low", "a.b", "")
	}
	if m.chance(30) {
		p.Status.QOSClass = pick(m, corev1.PodQOSBestEffort, corev1.PodQOSBurstable, corev1.PodQOSGuaranteed)
	}
	if m.chance(50) {
		p.Spec.Affinity = &corev1.Affinity{}
		if m.chance(50) {
			p.Spec.Affinity.PodAffinity = &corev1.PodAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: m.terms(), PreferredDuringSchedulingIgnoredDuringExecution: m.preferred(),
			}
		}
		if m.chance(50) {
			p.Spec.Affinity.PodAntiAffinity = &corev1.PodAntiAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: m.terms(), PreferredDuringSchedulingIgnoredDuringExecution: m.preferred(),
			}
		}
	}
}

func (m *maker) terms() []corev1.PodAffinityTerm {
	var terms []corev1.PodAffinityTerm
	for range m.IntN(3) {
		term := corev1.PodAffinityTerm{TopologyKey: "x"}
		if m.chance(15) {
			term.Namespaces = []string{"a"}
		}
		if m.chance(15) {
			term.NamespaceSelector = &metav1.LabelSelector{}
		}
		terms = append(terms, term)
	}
	return terms
}

func (m *maker) preferred() []corev1.WeightedPodAffinityTerm {
	var terms []corev1.WeightedPodAffinityTerm
	for _, term := range m.terms() {
		terms = append(terms, corev1.WeightedPodAffinityTerm{Weight: 1, PodAffinityTerm: term})
	}
	return terms
}
