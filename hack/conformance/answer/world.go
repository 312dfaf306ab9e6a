// Package answer is the question that both sides are asked, and the form in
// which they answer.
//
// The question is a [World]: the objects of one namespace and quotas on it. It
// is passed on as one line of JSON, since each side is built with its own
// version of the API. The answer is text, line by line the same if the two sides
// agree.
//
// The module's own versions are the oldest that are compared: modules that build
// one side replace them.
package answer

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Namespace is where all objects of a World are.
const Namespace = "team-a"

// World is the objects of one namespace at one time.
type World struct {
	// Now is the time for pods. Claims look at their pods by the real clock
	// upstream, so whatever depends on the time of such a pod must be in the far
	// past or the far future.
	Now time.Time `json:"now"`

	Pods          []*corev1.Pod                   `json:"pods,omitempty"`
	Services      []*corev1.Service               `json:"services,omitempty"`
	VolumeClaims  []*corev1.PersistentVolumeClaim `json:"volumeClaims,omitempty"`
	DeviceClaims  []*resourcev1.ResourceClaim     `json:"deviceClaims,omitempty"`
	DeviceClasses []*resourcev1.DeviceClass       `json:"deviceClasses,omitempty"`
	Counts        map[string]int                  `json:"counts,omitempty"` // objects of kinds that are only counted, by resource.group

	// Quotas are to be summed; of each only the spec counts.
	Quotas []*corev1.ResourceQuota `json:"quotas,omitempty"`
	// Required is the names for which each object is asked what it leaves open.
	Required []corev1.ResourceName `json:"required,omitempty"`
}

// Special lists the kinds whose objects are charged one by one, in the order in
// which they are answered.
func Special() []schema.GroupResource {
	return []schema.GroupResource{
		corev1.Resource("pods"), corev1.Resource("services"), corev1.Resource("persistentvolumeclaims"),
		resourcev1.Resource("resourceclaims"),
	}
}

// Counted lists the kinds that are only counted.
func Counted() []schema.GroupResource {
	return []schema.GroupResource{
		corev1.Resource("configmaps"), corev1.Resource("secrets"), corev1.Resource("replicationcontrollers"), corev1.Resource("resourcequotas"),
		{Group: "apps", Resource: "deployments"},
		{Group: "example.com", Resource: "widgets"},
	}
}

// Objects is the objects of one of the special kinds.
func (w *World) Objects(kind schema.GroupResource) []runtime.Object {
	var objects []runtime.Object
	switch kind.Resource {
	case "pods":
		objects = asObjects(w.Pods)
	case "services":
		objects = asObjects(w.Services)
	case "persistentvolumeclaims":
		objects = asObjects(w.VolumeClaims)
	case "resourceclaims":
		objects = asObjects(w.DeviceClaims)
	case "deviceclasses":
		objects = asObjects(w.DeviceClasses)
	}
	return objects
}

func asObjects[T runtime.Object](typed []T) []runtime.Object {
	objects := make([]runtime.Object, 0, len(typed))
	for _, object := range typed {
		objects = append(objects, object)
	}
	return objects
}

// Size is how many objects a World holds.
func (w *World) Size() int {
	n := len(w.Pods) + len(w.Services) + len(w.VolumeClaims) + len(w.DeviceClaims) + len(w.DeviceClasses)
	for _, count := range w.Counts {
		n += count
	}
	return n
}

// Request is what somebody does to an object.
type Request struct {
	Verb        string // CREATE, UPDATE or DELETE, as admission calls it
	Subresource string
}

// Requests lists those that both sides are asked about.
func Requests() []Request {
	return []Request{
		{"CREATE", ""}, {"UPDATE", ""}, {"DELETE", ""}, {"UPDATE", "status"}, {"UPDATE", "resize"}, {"CREATE", "resize"}, {"UPDATE", "scale"},
	}
}

// Before is what the object with this place was before an update: another one,
// so that much of it changes.
func Before(objects []runtime.Object, i int) runtime.Object {
	return objects[(i+1)%len(objects)]
}
