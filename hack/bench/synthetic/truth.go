package synthetic

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// cost is what one running pod of a workload uses: cpu in thousandths, memory in
// bytes.
type cost struct {
	cpu, memory, cpuLimit, memoryLimit int64
}

func costOf(p *corev1.Pod) cost {
	var c cost
	for i := range p.Spec.Containers {
		r := &p.Spec.Containers[i].Resources
		c.cpu += r.Requests.Cpu().MilliValue()
		c.memory += r.Requests.Memory().Value()
		c.cpuLimit += r.Limits.Cpu().MilliValue()
		c.memoryLimit += r.Limits.Memory().Value()
	}
	return c
}

// Use is what is used in a namespace, by the rules of ResourceQuota.
type Use struct {
	Stored      int64 `json:"stored"`  // pods, finished ones too
	Running     int64 `json:"running"` // pods that have not finished
	CPU         int64 `json:"cpu"`     // in thousandths
	Memory      int64 `json:"memory"`
	CPULimit    int64 `json:"cpuLimit"` // in thousandths
	MemoryLimit int64 `json:"memoryLimit"`
	Services    int64 `json:"services"`
}

// add counts one pod more, or one less.
func (u *Use) add(c cost, st state, sign int64) {
	u.Stored += sign
	if st != running {
		return
	}
	u.Running += sign
	u.CPU += sign * c.cpu
	u.Memory += sign * c.memory
	u.CPULimit += sign * c.cpuLimit
	u.MemoryLimit += sign * c.memoryLimit
}

// Plus is the sum of two.
func (u *Use) Plus(v *Use) Use {
	return Use{
		Stored: u.Stored + v.Stored, Running: u.Running + v.Running, CPU: u.CPU + v.CPU, Memory: u.Memory + v.Memory,
		CPULimit: u.CPULimit + v.CPULimit, MemoryLimit: u.MemoryLimit + v.MemoryLimit, Services: u.Services + v.Services,
	}
}

// List is the use under the names that quotas have for it.
func (u *Use) List() corev1.ResourceList {
	count := func(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }
	size := func(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.BinarySI) }
	cpu := func(n int64) resource.Quantity { return *resource.NewMilliQuantity(n, resource.DecimalSI) }
	return corev1.ResourceList{
		"pods": count(u.Running), "count/pods": count(u.Stored), "services": count(u.Services), "count/services": count(u.Services),
		"requests.cpu": cpu(u.CPU), "requests.memory": size(u.Memory), "limits.cpu": cpu(u.CPULimit), "limits.memory": size(u.MemoryLimit),
	}
}
