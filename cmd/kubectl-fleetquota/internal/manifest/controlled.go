package manifest

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// owner is how an object names its controller. Not by UID: files written by
// hand have none.
type owner struct {
	kind            schema.GroupKind
	namespace, name string
}

func ownerOf(o *Object) owner {
	return owner{o.Kind.GroupKind(), o.Namespace, o.Names[0]}
}

// controllerOf is the controller of an object; the zero value where it has none.
func controllerOf(o *Object) owner {
	accessor, ok := o.Value.(metav1.Object)
	if !ok {
		return owner{}
	}
	ref := metav1.GetControllerOfNoCopy(accessor)
	if ref == nil {
		return owner{}
	}
	group, err := schema.ParseGroupVersion(ref.APIVersion)
	if err != nil {
		return owner{}
	}
	return owner{group.WithKind(ref.Kind).GroupKind(), o.Namespace, ref.Name}
}

// isBetween says whether an object stands between a workload and its pods.
func isBetween(o *Object) bool {
	return slices.Contains([]string{"ReplicaSet", "Job", "ControllerRevision"}, o.Kind.Kind)
}

// dropPods leaves out the pods that a workload among the objects controls and
// that have not finished, with their claims. It returns the workloads of which
// what stands between them and their pods is in the files.
func (in *Input) dropPods() (parents map[owner]bool) {
	workloads := map[owner]*Object{}
	for _, o := range in.Workloads() {
		workloads[ownerOf(o)] = o
	}
	parents = map[owner]bool{}
	dropped := map[owner]bool{}
	count := map[*Object]int{}
	for _, o := range in.Objects {
		controller := controllerOf(o)
		pod, isPod := o.Value.(*corev1.Pod)
		switch workload := workloads[controller]; {
		case workload == nil:
		case isBetween(o):
			parents[controller] = true
		case !isPod:
		case pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed:
			dropped[ownerOf(o)] = true
			count[workload]++
		}
	}
	var kept []*Object
	for _, o := range in.Objects {
		if !dropped[ownerOf(o)] && !dropped[controllerOf(o)] {
			kept = append(kept, o)
		}
		if n := count[o]; n > 0 {
			in.Notes = append(in.Notes, o.Problem(fmt.Sprintf("pods of it in the files are left out, since it is expanded: %d", n)))
		}
	}
	in.Objects = kept
	return parents
}
