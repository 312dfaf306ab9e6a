package manifest

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// MaxExpanded is how many objects all workloads together may be expanded to.
const MaxExpanded = 1_000_000

// NodesUnknown is a number of nodes that is not known.
const NodesUnknown = -1

// Workloads lists the objects that [Input.Expand] would make others of.
func (in *Input) Workloads() []*Object {
	var all []*Object
	for _, o := range in.Objects {
		switch o.Value.(type) {
		case *appsv1.Deployment, *appsv1.ReplicaSet, *appsv1.StatefulSet, *appsv1.DaemonSet,
			*batchv1.Job, *batchv1.CronJob, *corev1.ReplicationController:
			all = append(all, o)
		}
	}
	return all
}

// Expand adds what controllers make of the objects: of workloads their pods at
// full strength, and what stands between the two; of pods the claims for their
// volumes and devices. So many nodes run a pod of each DaemonSet. Pods in the
// files that such a workload controls are left out, unless they have finished:
// what is made of it stands for them.
func (in *Input) Expand(nodes int) {
	e := expansion{in: in, nodes: nodes, stored: map[key]bool{}, parents: in.dropPods()}
	for _, o := range in.Objects {
		e.stored[key{o.Resource, o.Namespace, o.Names[0]}] = true
	}
	for _, o := range in.Objects {
		e.expand(o)
	}
	in.Objects = append(in.Objects, e.made...)
}

// expansion is one run of Expand.
type expansion struct {
	in      *Input
	nodes   int
	stored  map[key]bool   // what the files hold
	parents map[owner]bool // see [Input.dropPods]
	made    []*Object
	count   int
}

// expand makes what the controller of one object makes.
func (e *expansion) expand(o *Object) {
	switch w := o.Value.(type) {
	case *corev1.Pod:
		e.claims(o, w, []string{o.Names[0]})
	case *appsv1.Deployment:
		if e.parents[ownerOf(o)] {
			return // its ReplicaSets are in the files
		}
		e.between(o, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"), &appsv1.ReplicaSet{})
		e.pods(o, &w.Spec.Template, e.virtual(o, e.asked(o, "spec.replicas", w.Spec.Replicas)))
	case *appsv1.ReplicaSet:
		e.pods(o, &w.Spec.Template, e.virtual(o, e.asked(o, "spec.replicas", w.Spec.Replicas)))
	case *corev1.ReplicationController:
		if w.Spec.Template != nil {
			e.pods(o, w.Spec.Template, e.virtual(o, e.asked(o, "spec.replicas", w.Spec.Replicas)))
		}
	case *appsv1.StatefulSet:
		e.statefulSet(o, w)
	case *appsv1.DaemonSet:
		e.daemonSet(o, w)
	case *batchv1.Job:
		e.pods(o, &w.Spec.Template, e.virtual(o, e.parallel(o, "spec", &w.Spec, &w.Status)))
	case *batchv1.CronJob:
		e.cronJob(o, w)
	}
}

// cronJob makes one Job and its pods, unless there are Jobs of it already.
func (e *expansion) cronJob(o *Object, cron *batchv1.CronJob) {
	if e.parents[ownerOf(o)] || (cron.Spec.Suspend != nil && *cron.Spec.Suspend) {
		return
	}
	job := &cron.Spec.JobTemplate.Spec
	e.between(o, batchv1.SchemeGroupVersion.WithKind("Job"), &batchv1.Job{})
	e.pods(o, &job.Template, e.virtual(o, e.parallel(o, "spec.jobTemplate.spec", job, &batchv1.JobStatus{})))
}

// daemonSet makes a pod for each node: as many as was asked for, else as many
// as its status says.
func (e *expansion) daemonSet(o *Object, set *appsv1.DaemonSet) {
	nodes := e.nodes
	if nodes == NodesUnknown && set.Status.ObservedGeneration > 0 {
		nodes = int(set.Status.DesiredNumberScheduled)
	}
	if nodes < 0 {
		e.in.Bad = append(e.in.Bad, o.Problem("it runs a pod on each node that it selects: say on how many with --nodes"))
		return
	}
	e.between(o, appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), &appsv1.ControllerRevision{})
	e.pods(o, &set.Spec.Template, e.virtual(o, nodes))
}

// statefulSet makes pods, whose names are known, and their claims.
func (e *expansion) statefulSet(o *Object, set *appsv1.StatefulSet) {
	e.between(o, appsv1.SchemeGroupVersion.WithKind("ControllerRevision"), &appsv1.ControllerRevision{})
	n := e.asked(o, "spec.replicas", set.Spec.Replicas)
	if !e.room(o, n*(1+len(set.Spec.VolumeClaimTemplates))) {
		return
	}
	first := 0
	if set.Spec.Ordinals != nil {
		first = int(set.Spec.Ordinals.Start)
	}
	names := make([]string, 0, n)
	for i := range n {
		names = append(names, fmt.Sprintf("%s-%d", set.Name, first+i))
	}
	e.pods(o, &set.Spec.Template, names)
	for i := range set.Spec.VolumeClaimTemplates {
		template := set.Spec.VolumeClaimTemplates[i].DeepCopy()
		claims := make([]string, 0, n)
		for _, name := range names {
			claims = append(claims, template.Name+"-"+name)
		}
		e.add(o, corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), template, claims)
	}
}

// between makes the one object that stands between a workload and its pods,
// unless the files have one.
func (e *expansion) between(o *Object, kind schema.GroupVersionKind, value made) {
	if !e.parents[ownerOf(o)] {
		e.add(o, kind, value, e.virtual(o, 1))
	}
}

// pods makes pods of a template.
func (e *expansion) pods(o *Object, template *corev1.PodTemplateSpec, names []string) {
	pod := &corev1.Pod{ObjectMeta: *template.ObjectMeta.DeepCopy(), Spec: *template.Spec.DeepCopy()}
	e.add(o, corev1.SchemeGroupVersion.WithKind("Pod"), pod, names)
	e.claims(o, pod, names)
}

// made is what can be an object of the API.
type made interface {
	metav1.Object
	runtime.Object
}

// add adds objects that differ by name alone, but for those that are stored.
func (e *expansion) add(from *Object, kind schema.GroupVersionKind, value made, names []string) {
	o := &Object{
		Kind: kind, Resource: e.in.kinds.resource(kind.GroupKind()), Namespace: from.Namespace,
		Value: value, From: from.String(), item: from.item,
	}
	for _, name := range names {
		if !e.stored[key{o.Resource, o.Namespace, name}] {
			o.Names = append(o.Names, name)
		}
	}
	if len(o.Names) == 0 || !e.room(from, len(o.Names)) {
		return
	}
	e.count += len(o.Names)
	value.SetNamespace(from.Namespace)
	value.GetObjectKind().SetGroupVersionKind(kind)
	e.in.store(value, from.Namespace)
	e.made = append(e.made, o)
}

// room says whether so many objects more can be made, and refuses them if not.
func (e *expansion) room(o *Object, more int) bool {
	if more <= MaxExpanded-e.count {
		return true
	}
	e.in.Bad = append(e.in.Bad, o.Problem(fmt.Sprintf("it makes too many objects: at most %d are expanded in all", MaxExpanded)))
	return false
}

// virtual names objects whose names nobody knows, as no stored object is named;
// none of them where there is no room for all.
func (e *expansion) virtual(o *Object, n int) []string {
	if !e.room(o, n) {
		return nil
	}
	names := make([]string, 0, n)
	for i := range n {
		names = append(names, fmt.Sprintf("%s/%s/%d", o.Resource, o.Names[0], i))
	}
	return names
}

// asked is how many a field of a workload asks for; 1 where it does not say.
func (e *expansion) asked(o *Object, field string, n *int32) int {
	switch {
	case n == nil:
		return 1
	case *n < 0:
		e.in.Bad = append(e.in.Bad, o.Problem(fmt.Sprintf("%s: %d is negative", field, *n)))
		return 0
	}
	return int(*n)
}

// parallel is how many pods a job runs at once. The path is that of its spec.
func (e *expansion) parallel(o *Object, path string, spec *batchv1.JobSpec, status *batchv1.JobStatus) int {
	if spec.Suspend != nil && *spec.Suspend {
		return 0
	}
	for _, c := range status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return 0
		}
	}
	n := e.asked(o, path+".parallelism", spec.Parallelism)
	if spec.Completions != nil {
		n = min(n, max(0, int(*spec.Completions-status.Succeeded)))
	}
	return n
}
