package e2e_test

import (
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	pods        = corev1.SchemeGroupVersion.WithResource("pods")
	services    = corev1.SchemeGroupVersion.WithResource("services")
	claims      = corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	deployments = appsv1.SchemeGroupVersion.WithResource("deployments")
)

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// pod makes a pod of one container.
func pod(name string, options ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: named(name), Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "main", Image: "image"}},
	}}
	for _, option := range options {
		option(p)
	}
	return p
}

// requests of the pod's container, in names and quantities in turn.
func requests(pairs ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list(pairs...) }
}

func limits(pairs ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = list(pairs...) }
}

// initContainer adds a container that runs before the others and needs so much.
func initContainer(name string, pairs ...string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{
			Name: name, Image: "image", Resources: corev1.ResourceRequirements{Requests: list(pairs...)},
		})
	}
}

// sidecar adds an init container that goes on running.
func sidecar(name string, pairs ...string) func(*corev1.Pod) {
	always := corev1.ContainerRestartPolicyAlways
	return func(p *corev1.Pod) {
		initContainer(name, pairs...)(p)
		p.Spec.InitContainers[len(p.Spec.InitContainers)-1].RestartPolicy = &always
	}
}

// ofPod gives the pod resources as a whole, beside those of its containers.
func ofPod(requests, limits corev1.ResourceList) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Resources = &corev1.ResourceRequirements{Requests: requests, Limits: limits}
	}
}

// sandboxed runs the pod in a class that costs something by itself.
func sandboxed(p *corev1.Pod) {
	class := "sandbox"
	p.Spec.RuntimeClassName = &class
}

func runtimeClass(name string, pairs ...string) *nodev1.RuntimeClass {
	return &nodev1.RuntimeClass{ObjectMeta: named(name), Handler: name, Overhead: &nodev1.Overhead{PodFixed: list(pairs...)}}
}

func priority(class string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.PriorityClassName = class }
}

// terminating gives the pod an end, so that its scope is Terminating.
func terminating(p *corev1.Pod) {
	seconds := int64(3600)
	p.Spec.ActiveDeadlineSeconds = &seconds
}

// scheduled puts the pod on a node, which need not exist.
func scheduled(p *corev1.Pod) { p.Spec.NodeName = "node" }

func finalizer(p *corev1.Pod) { p.Finalizers = []string{"example.com/held"} }

// affine lets the pod ask for pods of another namespace.
func affine(p *corev1.Pod) {
	p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
			Namespaces:    []string{"elsewhere"}, TopologyKey: "kubernetes.io/hostname",
		}},
	}}
}

// service makes a service of a type with so many ports.
func service(name string, kind corev1.ServiceType, ports int) *corev1.Service {
	s := &corev1.Service{ObjectMeta: named(name), Spec: corev1.ServiceSpec{Type: kind}}
	if kind == corev1.ServiceTypeExternalName {
		s.Spec.ExternalName = "example.com"
	}
	for i := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: "p" + string(rune('a'+i)), Port: int32(80 + i)})
	}
	return s
}

// claim makes a PersistentVolumeClaim; the class may be empty.
func claim(name, class, size string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: named(name), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: list("storage", size)},
	}}
	if class != "" {
		c.Spec.StorageClassName = &class
	}
	return c
}

// deviceClaim asks for so many devices of a class.
func deviceClaim(name, class string, devices int64) *resourcev1.ResourceClaim {
	return &resourcev1.ResourceClaim{ObjectMeta: named(name), Spec: resourcev1.ResourceClaimSpec{Devices: resourcev1.DeviceClaim{
		Requests: []resourcev1.DeviceRequest{{
			Name:    "devices",
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: devices},
		}},
	}}}
}

func configMap(name string) *corev1.ConfigMap { return &corev1.ConfigMap{ObjectMeta: named(name)} }

func secret(name string) *corev1.Secret { return &corev1.Secret{ObjectMeta: named(name)} }

func template() corev1.PodTemplateSpec {
	labels := map[string]string{"app": "x"}
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod("x").Spec}
}

func deployment(name string) *appsv1.Deployment {
	return &appsv1.Deployment{ObjectMeta: named(name), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: template().Labels}, Template: template(),
	}}
}

func job(name string) *batchv1.Job {
	t := template()
	t.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{ObjectMeta: named(name), Spec: batchv1.JobSpec{Template: t}}
}

func cronJob(name string) *batchv1.CronJob {
	return &batchv1.CronJob{ObjectMeta: named(name), Spec: batchv1.CronJobSpec{
		Schedule: "0 0 1 1 *", JobTemplate: batchv1.JobTemplateSpec{Spec: job("x").Spec},
	}}
}

func replicationController(name string) *corev1.ReplicationController {
	t := template()
	return &corev1.ReplicationController{ObjectMeta: named(name), Spec: corev1.ReplicationControllerSpec{
		Selector: t.Labels, Template: &t,
	}}
}

func priorityClass(name string, value int32) *schedulingv1.PriorityClass {
	return &schedulingv1.PriorityClass{ObjectMeta: named(name), Value: value}
}

func resourceQuota(name string, pairs ...string) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{ObjectMeta: named(name), Spec: corev1.ResourceQuotaSpec{Hard: list(pairs...)}}
}

// custom makes an object of a custom resource.
func custom(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(resource.GroupVersion().WithKind(kindOf(resource)))
	u.SetName(name)
	return u
}

// kindOf is the kind of a custom resource of the tests.
func kindOf(resource schema.GroupVersionResource) string {
	singular := strings.TrimSuffix(resource.Resource, "s")
	return strings.ToUpper(singular[:1]) + singular[1:]
}

// crd defines a custom resource whose objects may hold anything.
func crd(resource schema.GroupVersionResource) *apiextensionsv1.CustomResourceDefinition {
	anything := true
	kind := kindOf(resource)
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
		ObjectMeta: named(resource.GroupResource().String()),
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: resource.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: resource.Resource, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List",
			},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: resource.Version, Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &anything,
				}},
			}},
		},
	}
}
