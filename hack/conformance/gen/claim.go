package gen

import (
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/hack/conformance/answer"
)

func (m *maker) service(n int) *corev1.Service {
	s := &corev1.Service{ObjectMeta: m.meta("s", n)}
	s.Spec.Type = pick(m, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer, corev1.ServiceTypeExternalName, "", "X")
	for range m.IntN(4) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{NodePort: pick[int32](m, 0, 30000)})
	}
	if m.chance(60) {
		s.Spec.AllocateLoadBalancerNodePorts = new(m.chance(50))
	}
	return s
}

func (m *maker) class() *string {
	return pick(m, nil, new(""), new("a"), new("gold"), new("requests.gold"), new("hugepages-gold"))
}

func (m *maker) volumeClaim(n int) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: m.meta("v", n)}
	c.Spec.StorageClassName = m.class()
	if class := m.class(); class != nil && m.chance(40) {
		c.Annotations = map[string]string{corev1.BetaStorageClassAnnotation: *class}
	}
	c.Spec.Resources.Requests = m.storage()
	c.Status.AllocatedResources = m.storage()
	c.Spec.VolumeAttributesClassName = m.class()
	c.Status.CurrentVolumeAttributesClassName = m.class()
	if class := m.class(); class != nil {
		c.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: *class}
	}
	return c
}

// storage draws a list that usually has storage.
func (m *maker) storage() corev1.ResourceList {
	list := m.list()
	if list != nil && m.chance(80) {
		list[corev1.ResourceStorage] = m.quantity()
	}
	return list
}

var deviceClasses = []string{"big", "small", "hugepages-big"}

// claims draws device classes, claims, and pods that some of them were made for.
func (m *maker) claims(world *answer.World) {
	for i, name := range deviceClasses {
		if m.free && m.chance(30) {
			continue
		}
		class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if m.chance(60) { // no two name the same
			class.Spec.ExtendedResourceName = new([]string{"example.com/gpu", "example.com/nic", "example.com/disk"}[i])
		}
		world.DeviceClasses = append(world.DeviceClasses, class)
	}
	for range m.IntN(2) {
		world.Pods = append(world.Pods, m.devicePod(len(world.Pods)))
	}
	for range 1 + m.IntN(3) {
		world.DeviceClaims = append(world.DeviceClaims, m.deviceClaim(len(world.DeviceClaims)))
	}
}

// devicePod draws a pod that asks for extended resources.
func (m *maker) devicePod(n int) *corev1.Pod {
	p := m.pod(n)
	if m.chance(70) {
		p.Status.Phase = corev1.PodRunning
	}
	asked := corev1.ResourceList{}
	for range 1 + m.IntN(2) {
		asked[pick[corev1.ResourceName](m, "example.com/gpu", "example.com/nic", "deviceclass.resource.kubernetes.io/big", "deviceclass.resource.kubernetes.io/small")] = m.quantity()
	}
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "devices", Resources: corev1.ResourceRequirements{Requests: asked}})
	if m.chance(40) {
		p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "d" + strconv.Itoa(m.IntN(3))}
	}
	return p
}

func (m *maker) deviceClaim(n int) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: m.meta("d", n)}
	for range m.IntN(4) {
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, m.deviceRequest())
	}
	if m.chance(60) {
		pod := "p" + strconv.Itoa(m.IntN(2))
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: pod, UID: types.UID("uid-of-" + pod), Controller: new(true)}}
		c.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
		m.spoil(c)
	}
	return c
}

// spoil sometimes makes a claim one that was not made for a pod after all.
func (m *maker) spoil(c *resourcev1.ResourceClaim) {
	owner := &c.OwnerReferences[0]
	switch m.IntN(16) {
	case 0:
		c.Annotations[resourcev1.ExtendedResourceClaimAnnotation] = "false"
	case 1:
		owner.Controller = nil
	case 2:
		owner.Kind = "Job"
	case 3:
		owner.APIVersion = "v2"
	case 4:
		owner.UID = "another"
	case 5:
		owner.Name = "p9"
	case 6:
		c.Annotations = nil
	}
}

func (m *maker) deviceRequest() resourcev1.DeviceRequest {
	r := resourcev1.DeviceRequest{Name: "r"}
	if m.chance(30) {
		for range 1 + m.IntN(3) {
			r.FirstAvailable = append(r.FirstAvailable, resourcev1.DeviceSubRequest{
				Name: "s", DeviceClassName: pick(m, deviceClasses...), AllocationMode: m.mode(), Count: m.devices(),
			})
		}
	}
	if m.chance(70) {
		r.Exactly = &resourcev1.ExactDeviceRequest{DeviceClassName: pick(m, deviceClasses...), AllocationMode: m.mode(), Count: m.devices()}
		if m.free && m.chance(10) {
			r.Exactly.DeviceClassName = ""
		}
		if m.chance(10) {
			r.Exactly.AdminAccess = new(true)
		}
	}
	return r
}

func (m *maker) mode() resourcev1.DeviceAllocationMode {
	return pick(m, resourcev1.DeviceAllocationModeExactCount, resourcev1.DeviceAllocationModeExactCount, resourcev1.DeviceAllocationModeAll, "", "Some")
}

// devices draws a count. One claim never asks for more than fits an int64.
func (m *maker) devices() int64 {
	if m.huge && m.chance(10) {
		return math.MaxInt64 / 16
	}
	return pick[int64](m, 0, 1, 2, 7, 40, -1)
}
