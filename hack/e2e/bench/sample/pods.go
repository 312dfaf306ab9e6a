// Package sample makes pods such as real clusters have: about 3 KB each, as a
// kubelet has reported them.
package sample

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Namespace is where the pods are.
const Namespace = "team-a"

// Workloads is how many different pod templates there are.
const Workloads = 50

// Pod is the i-th of many pods of 50 Workloads, as a kubelet has reported it:
// two containers with probes, the volumes and conditions that every pod has,
// and its managed fields.
func Pod(i int) *corev1.Pod {
	p := New(i)
	started := metav1.NewTime(time.Unix(1_700_000_000+int64(i), 0))
	p.UID = types.UID(fmt.Sprintf("6f1d3c1e-7a59-4b0c-9f43-%012x", i))
	p.ResourceVersion = fmt.Sprint(1_000_000 + i)
	p.CreationTimestamp = started
	p.ManagedFields = []metav1.ManagedFieldsEntry{
		managed("kube-controller-manager", "", started, controllerFields),
		managed("kubelet", "status", started, kubeletFields),
	}
	p.Spec.NodeName = fmt.Sprintf("node-%03d", i%200)
	p.Spec.Priority = new(int32)
	p.Status = statusOf(p, started)
	return p
}

// New is the i-th pod as its workload creates it.
func New(i int) *corev1.Pod {
	workload := i % Workloads
	app := fmt.Sprintf("web-%02d", workload)
	hash := code(uint64(workload)+1, 10)
	set := app + "-" + hash
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: Namespace, Name: set + "-" + code(uint64(i)+1, 5), GenerateName: set + "-",
			Labels: map[string]string{
				"app.kubernetes.io/name": app, "app.kubernetes.io/part-of": "shop", "pod-template-hash": hash,
			},
			Annotations: map[string]string{"prometheus.io/scrape": "true", "prometheus.io/port": "9090"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set,
				UID:        types.UID(fmt.Sprintf("1c1e3c1e-7a59-4b0c-9f43-%012x", workload)),
				Controller: new(true), BlockOwnerDeletion: new(true),
			}},
		},
		Spec: specOf(app, workload),
	}
}

// code is a name's part as Kubernetes makes them up. Different numbers below
// 27^length give different codes.
func code(number uint64, length int) string {
	const alphabet = "bcdfghjklmnpqrstvwxz2456789"
	const factor = 48_271 // shares no divisor with 27, so that the numbers are only mixed
	space := uint64(1)
	for range length {
		space *= uint64(len(alphabet))
	}
	rest := number * factor % space
	text := make([]byte, length)
	for i := range text {
		text[i] = alphabet[rest%uint64(len(alphabet))]
		rest /= uint64(len(alphabet))
	}
	return string(text)
}

func specOf(app string, workload int) corev1.PodSpec {
	const mebi = 1 << 20
	step := int64(workload + 1)
	access := "kube-api-access-" + code(uint64(workload)+7, 5)
	return corev1.PodSpec{
		Containers: []corev1.Container{
			container(app, "registry.example.com/shop/"+app+":v1.42.0", access, 100+10*step, 16*mebi*step),
			container("proxy", "registry.example.com/mesh/proxy:v1.29.1", access, 50, 64*mebi),
		},
		Volumes: []corev1.Volume{
			{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: app + "-config"},
			}}},
			{Name: access, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: new(int64(3607)), Path: "token"}},
				{ConfigMap: &corev1.ConfigMapProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
					Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
				}},
			}}}},
		},
		RestartPolicy:                 corev1.RestartPolicyAlways,
		TerminationGracePeriodSeconds: new(int64(30)),
		DNSPolicy:                     corev1.DNSClusterFirst,
		ServiceAccountName:            app,
		SchedulerName:                 corev1.DefaultSchedulerName,
		Tolerations: []corev1.Toleration{
			{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
			{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(300))},
		},
	}
}

func container(name, image, access string, milliCPU, memory int64) corev1.Container {
	port := int32(8000 + milliCPU) // two containers cannot have one port
	probe := &corev1.Probe{
		ProbeHandler:   corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/healthz", Port: intstr.FromInt32(port), Scheme: corev1.URISchemeHTTP}},
		TimeoutSeconds: 1, PeriodSeconds: 10, SuccessThreshold: 1, FailureThreshold: 3,
	}
	return corev1.Container{
		Name: name, Image: image,
		Ports: []corev1.ContainerPort{{Name: name, ContainerPort: port, Protocol: corev1.ProtocolTCP}},
		Env: []corev1.EnvVar{
			{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: "metadata.name"}}},
		},
		Resources: corev1.ResourceRequirements{Requests: Amounts(milliCPU, memory), Limits: Amounts(2*milliCPU, memory)},
		VolumeMounts: []corev1.VolumeMount{
			{Name: "config", MountPath: "/etc/" + name, ReadOnly: true},
			{Name: access, MountPath: "/var/run/secrets/kubernetes.io/serviceaccount", ReadOnly: true},
		},
		ReadinessProbe:         probe,
		TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile,
		ImagePullPolicy: corev1.PullIfNotPresent,
	}
}

// Amounts are requests or limits.
func Amounts(milliCPU, memory int64) corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    *resource.NewMilliQuantity(milliCPU, resource.DecimalSI),
		corev1.ResourceMemory: *resource.NewQuantity(memory, resource.BinarySI),
	}
}

func statusOf(p *corev1.Pod, started metav1.Time) corev1.PodStatus {
	status := corev1.PodStatus{
		Phase: corev1.PodRunning, HostIP: "10.0.3.17", PodIP: "10.128.14.201", StartTime: &started, QOSClass: corev1.PodQOSBurstable,
		HostIPs: []corev1.HostIP{{IP: "10.0.3.17"}}, PodIPs: []corev1.PodIP{{IP: "10.128.14.201"}},
	}
	for _, kind := range []corev1.PodConditionType{
		corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled,
	} {
		status.Conditions = append(status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: started})
	}
	for i := range p.Spec.Containers {
		c := &p.Spec.Containers[i]
		digest := strings.Repeat("4f9d1c7a", 8)
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: c.Image + "@sha256:" + digest, ContainerID: "containerd://" + digest,
			Ready: true, Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: started}},
		})
	}
	return status
}

func managed(manager, subresource string, at metav1.Time, fields string) metav1.ManagedFieldsEntry {
	return metav1.ManagedFieldsEntry{
		Manager: manager, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "v1", Time: &at,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields), Subresource: subresource,
	}
}

const (
	controllerFields = `{"f:metadata":{"f:annotations":{".":{},"f:prometheus.io/port":{},"f:prometheus.io/scrape":{}},"f:generateName":{},` +
		`"f:labels":{".":{},"f:app.kubernetes.io/name":{},"f:app.kubernetes.io/part-of":{},"f:pod-template-hash":{}},` +
		`"f:ownerReferences":{".":{},"k:{\"uid\":\"1c1e3c1e-7a59-4b0c-9f43-000000000001\"}":{}}},` +
		`"f:spec":{"f:containers":{"k:{\"name\":\"proxy\"}":{".":{},"f:args":{},"f:image":{},"f:imagePullPolicy":{},"f:name":{},` +
		`"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}}}},` +
		`"f:dnsPolicy":{},"f:restartPolicy":{},"f:schedulerName":{},"f:terminationGracePeriodSeconds":{},"f:volumes":{".":{},` +
		`"k:{\"name\":\"config\"}":{".":{},"f:configMap":{".":{},"f:name":{}},"f:name":{}}}}}`
	kubeletFields = `{"f:status":{"f:conditions":{"k:{\"type\":\"Ready\"}":{".":{},"f:lastProbeTime":{},"f:lastTransitionTime":{},"f:status":{},"f:type":{}}},` +
		`"f:containerStatuses":{},"f:hostIP":{},"f:hostIPs":{},"f:phase":{},"f:podIP":{},"f:podIPs":{},"f:startTime":{}}}`
)
