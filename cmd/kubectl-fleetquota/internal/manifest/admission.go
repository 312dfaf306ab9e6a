package manifest

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// admission is what a server fills into new objects from others that it has:
// here, from those in the files.
type admission struct {
	ranges   map[string][]*corev1.LimitRange // namespace -> its LimitRanges
	overhead map[string]corev1.ResourceList  // RuntimeClass -> what its pods cost besides their containers
	priority *schedulingv1.PriorityClass     // of pods that name none; nil: there is no default
	storage  *storagev1.StorageClass         // of claims that name none; nil: there is no default
}

// learn takes note of an object that decides what others get.
func (a *admission) learn(o *Object) {
	switch typed := o.Value.(type) {
	case *corev1.LimitRange:
		a.ranges[o.Namespace] = append(a.ranges[o.Namespace], completeRange(typed))
	case *nodev1.RuntimeClass:
		if typed.Overhead != nil {
			toMilli(typed.Overhead.PodFixed)
			a.overhead[typed.Name] = typed.Overhead.PodFixed
		}
	case *schedulingv1.PriorityClass:
		if typed.GlobalDefault && (a.priority == nil || typed.Value < a.priority.Value) {
			a.priority = typed
		}
	case *storagev1.StorageClass:
		if isDefault(typed) && (a.storage == nil || before(typed, a.storage)) {
			a.storage = typed
		}
	}
}

// isDefault says whether claims that name no class get this one.
func isDefault(class *storagev1.StorageClass) bool {
	return class.Annotations["storageclass.kubernetes.io/is-default-class"] == "true" ||
		class.Annotations["storageclass.beta.kubernetes.io/is-default-class"] == "true"
}

// before says which of two default classes is taken: the newest.
func before(a, b *storagev1.StorageClass) bool {
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(a.Name, b.Name)) < 0
}

// completeRange fills in what the API server stores of a LimitRange.
func completeRange(limits *corev1.LimitRange) *corev1.LimitRange {
	for i := range limits.Spec.Limits {
		one := &limits.Spec.Limits[i]
		if one.Type != corev1.LimitTypeContainer {
			continue
		}
		if one.Default == nil {
			one.Default = corev1.ResourceList{}
		}
		if one.DefaultRequest == nil {
			one.DefaultRequest = corev1.ResourceList{}
		}
		fill(one.Default, one.Max, anyResource)
		fill(one.DefaultRequest, one.Default, anyResource)
		fill(one.DefaultRequest, one.Min, anyResource)
	}
	return limits
}

// admit fills in what an object that is new gets from others.
func (a *admission) admit(value runtime.Object, namespace string) {
	switch typed := value.(type) {
	case *corev1.Pod:
		a.admitPod(typed, namespace)
	case *corev1.PersistentVolumeClaim:
		_, old := typed.Annotations[corev1.BetaStorageClassAnnotation]
		if !old && typed.Spec.StorageClassName == nil && a.storage != nil {
			typed.Spec.StorageClassName = new(a.storage.Name)
		}
	}
}

func (a *admission) admitPod(pod *corev1.Pod, namespace string) {
	if pod.Spec.PriorityClassName == "" && a.priority != nil {
		pod.Spec.PriorityClassName = a.priority.Name
	}
	if class := pod.Spec.RuntimeClassName; class != nil && len(pod.Spec.Overhead) == 0 {
		pod.Spec.Overhead = a.overhead[*class].DeepCopy()
	}
	for _, limits := range a.ranges[namespace] {
		requests, most := corev1.ResourceList{}, corev1.ResourceList{}
		for i := range limits.Spec.Limits {
			one := &limits.Spec.Limits[i]
			if one.Type == corev1.LimitTypeContainer {
				overwrite(requests, one.DefaultRequest)
				overwrite(most, one.Default)
			}
		}
		eachContainer(pod, func(resources *corev1.ResourceRequirements) {
			resources.Requests = filled(resources.Requests, requests)
			resources.Limits = filled(resources.Limits, most)
		})
	}
}

// overwrite copies all of a list to another.
func overwrite(list, from corev1.ResourceList) {
	for name, quantity := range from {
		list[name] = quantity.DeepCopy()
	}
}

// filled is a list, made if need be, with what it lacks and the other has.
func filled(list, from corev1.ResourceList) corev1.ResourceList {
	if list == nil && len(from) > 0 {
		list = corev1.ResourceList{}
	}
	fill(list, from, anyResource)
	return list
}

// eachContainer visits the resources of all containers and init containers.
func eachContainer(pod *corev1.Pod, visit func(*corev1.ResourceRequirements)) {
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			visit(&containers[i].Resources)
		}
	}
}

// isNew says whether an object has not been stored by any server yet.
func isNew(value runtime.Object) bool {
	accessor, ok := value.(metav1.Object)
	return ok && accessor.GetUID() == ""
}
