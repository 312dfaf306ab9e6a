package synthetic

import (
	"cmp"
	"net/http"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// kind is what discovery says of one kind.
type kind struct {
	schema.GroupVersionResource

	name       string // as in Pod
	namespaced bool
	status     bool // it has a status of its own to write
	example    runtime.Object
	zip        *zippers
}

func (k *kind) kind() schema.GroupVersionKind { return k.GroupVersion().WithKind(k.name) }

// listKind is the kind of a list of a kind.
func (f form) listKind(k kind) schema.GroupVersionKind {
	of := f.kindOf(k.kind())
	of.Kind += "List"
	return of
}

// kinds are all that members serve, in the order of discovery.
func kinds() []kind {
	core := corev1.SchemeGroupVersion
	all := []kind{
		{GroupVersionResource: core.WithResource("configmaps"), name: "ConfigMap", namespaced: true, example: &corev1.ConfigMap{}},
		{GroupVersionResource: core.WithResource("namespaces"), name: "Namespace", example: &corev1.Namespace{}},
		{GroupVersionResource: core.WithResource("persistentvolumeclaims"), name: "PersistentVolumeClaim", namespaced: true, example: &corev1.PersistentVolumeClaim{}},
		{GroupVersionResource: core.WithResource("pods"), name: "Pod", namespaced: true, example: &corev1.Pod{}},
		{GroupVersionResource: core.WithResource("replicationcontrollers"), name: "ReplicationController", namespaced: true, example: &corev1.ReplicationController{}},
		{GroupVersionResource: core.WithResource("resourcequotas"), name: "ResourceQuota", namespaced: true, status: true, example: &corev1.ResourceQuota{}},
		{GroupVersionResource: core.WithResource("secrets"), name: "Secret", namespaced: true, example: &corev1.Secret{}},
		{GroupVersionResource: core.WithResource("services"), name: "Service", namespaced: true, example: &corev1.Service{}},
		{GroupVersionResource: appsv1.SchemeGroupVersion.WithResource("daemonsets"), name: "DaemonSet", namespaced: true, example: &appsv1.DaemonSet{}},
		{GroupVersionResource: appsv1.SchemeGroupVersion.WithResource("deployments"), name: "Deployment", namespaced: true, example: &appsv1.Deployment{}},
		{GroupVersionResource: appsv1.SchemeGroupVersion.WithResource("replicasets"), name: "ReplicaSet", namespaced: true, example: &appsv1.ReplicaSet{}},
		{GroupVersionResource: appsv1.SchemeGroupVersion.WithResource("statefulsets"), name: "StatefulSet", namespaced: true, example: &appsv1.StatefulSet{}},
		{GroupVersionResource: batchv1.SchemeGroupVersion.WithResource("cronjobs"), name: "CronJob", namespaced: true, example: &batchv1.CronJob{}},
		{GroupVersionResource: batchv1.SchemeGroupVersion.WithResource("jobs"), name: "Job", namespaced: true, example: &batchv1.Job{}},
		{GroupVersionResource: resourcev1.SchemeGroupVersion.WithResource("deviceclasses"), name: "DeviceClass", example: &resourcev1.DeviceClass{}},
		{GroupVersionResource: resourcev1.SchemeGroupVersion.WithResource("resourceclaims"), name: "ResourceClaim", namespaced: true, example: &resourcev1.ResourceClaim{}},
	}
	zip := &zippers{}
	for i := range all {
		all[i].zip = zip
	}
	return all
}

// served is a table of any kind of object.
type served interface {
	serve(w http.ResponseWriter, r *http.Request, q question)
	forget()
}

// thing is an object that is kept as it is. Nobody changes it.
type thing struct {
	namespace, name string
	value           runtime.Object
}

func lessThing(a, b thing) bool {
	if c := cmp.Compare(a.namespace, b.namespace); c != 0 {
		return c < 0
	}
	return a.name < b.name
}

// things are the codec of all kinds but pods.
type things struct{ kind kind }

func (things) key(t thing) (namespace, name string) { return t.namespace, t.name }

func (things) find(namespace, name string) thing { return thing{namespace: namespace, name: name} }

func (c things) object(t thing, f form) object {
	o, err := f.encode(c.kind.kind(), t.value)
	if err != nil {
		panic(err) // all of Kubernetes' types can be encoded
	}
	return o
}

// set notes an object of a kind other than pods, as a new one or in place of
// one. The caller holds the lock, and gives the value away.
func (m *Member) set(t *table[thing], value metav1.Object) {
	before, known := t.history.objects.Get(thing{namespace: value.GetNamespace(), name: value.GetName()})
	m.store.revision++
	value.SetResourceVersion(strconv.FormatUint(m.store.revision, 10))
	now := thing{namespace: value.GetNamespace(), name: value.GetName(), value: value.(runtime.Object)} //nolint:errcheck,forcetypeassert // all are
	what := added
	if known {
		what = modified
	}
	t.history.note(event[thing]{revision: m.store.revision, what: what, before: before, now: now})
}

// pods are the codec of pods.
type pods struct {
	shape  *shape
	member uint32
}

func (c pods) key(p pod) (namespace, name string) { return c.shape.key(p) }

func (c pods) object(p pod, f form) object { return c.shape.object(c.member, p, f) }

func (c pods) find(namespace, name string) pod {
	number, ok := c.shape.numberOf(namespace, name)
	if !ok {
		return pod{number: maxNumber} // there is none
	}
	return pod{number: number}
}
