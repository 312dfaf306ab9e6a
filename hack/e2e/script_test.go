package e2e_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// step is one request of a script.
type step struct {
	what    string // for people
	do      func(ctx context.Context, member *scene.Cluster, namespace string) error
	refused string // the API refuses it with these words; empty: it lets it through
}

// The words of quota admission.
const (
	exceeded    = "exceeded quota"
	unspecified = "must specify"
)

// script is what one user does in a namespace with the quotas of scriptQuotas,
// and the kubelets and controllers for it: the same for the same seed, and each
// step with the same outcome. Users of other numbers do not meet. Of a hundred
// steps, about so many ask for too much.
func script(seed, user uint64, length, tooMuch int) []step {
	w := &writer{random: rand.New(rand.NewPCG(seed, user)), user: fmt.Sprintf("u%d", user), tooMuch: tooMuch}
	for len(w.steps) < length {
		w.next()
	}
	return w.steps
}

// writer writes a script, and knows what exists by then.
type writer struct {
	random  *rand.Rand
	user    string
	tooMuch int
	number  int
	steps   []step

	pods     []*scriptPod
	claims   []*scriptClaim
	services []string
	others   []scriptObject
	quotas   []*corev1.ResourceQuota
}

type scriptPod struct {
	name      string
	sized     bool  // it has requests and limits, and can be resized
	cpu       int64 // requested, in m
	scheduled bool
	running   bool
	ends      bool // it has a deadline
	pending   bool // its resize is held up; where it is infeasible, admission asks nothing for another
}

type scriptClaim struct {
	name       string
	gigabytes  int
	bound      bool
	expandable bool
	attributed bool
}

type scriptObject struct {
	resource schema.GroupVersionResource
	name     string
}

// expandable is the storage class whose claims can grow, and scriptNode the
// node of all pods that are scheduled.
const (
	expandable = "expandable"
	scriptNode = "stage"
)

// scriptStage is what scripts need beside namespaced objects.
func scriptStage() []runtime.Object {
	yes := true
	size := list("cpu", "10k", "memory", "10Ti", "pods", "10k")
	return []runtime.Object{
		&storagev1.StorageClass{ObjectMeta: named(expandable), Provisioner: "example.com/none", AllowVolumeExpansion: &yes},
		&corev1.Node{ObjectMeta: named(scriptNode), Status: corev1.NodeStatus{Capacity: size, Allocatable: size}},
	}
}

// next writes the next steps.
func (w *writer) next() {
	choices := []struct {
		weight int
		write  func()
	}{
		{24, w.createPod},
		{16, w.changePod},
		{10, w.deletePod},
		{6, w.createService},
		{7, w.changeService},
		{7, w.createClaim},
		{8, w.changeClaim},
		{10, w.createOther},
		{8, w.deleteOther},
		{4, w.changeQuota},
		{w.tooMuch, w.askTooMuch},
	}
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	at := w.random.IntN(total)
	for _, c := range choices {
		if at -= c.weight; at < 0 {
			c.write()
			return
		}
	}
}

func (w *writer) name(what string) string {
	w.number++
	return fmt.Sprintf("%s-%s-%d", w.user, what, w.number)
}

func (w *writer) chance(percent int) bool { return w.random.IntN(100) < percent }

func any1[T any](w *writer, from ...T) T { return from[w.random.IntN(len(from))] }

// take removes one of some.
func take[T any](w *writer, from *[]T) T {
	i := w.random.IntN(len(*from))
	taken := (*from)[i]
	*from = slices.Delete(*from, i, i+1)
	return taken
}

func (w *writer) write(steps ...step) { w.steps = append(w.steps, steps...) }

// object is one that has a name.
type object interface {
	runtime.Object
	metav1.Object
}

func (w *writer) create(object object) {
	w.write(step{what: fmt.Sprintf("create %T %s", object, object.GetName()), do: creation(object)})
}

func creation(objects ...runtime.Object) func(context.Context, *scene.Cluster, string) error {
	return func(ctx context.Context, member *scene.Cluster, namespace string) error {
		return member.Create(ctx, namespace, objects...)
	}
}

func deletion(resource schema.GroupVersionResource, name string) step {
	return step{
		what: fmt.Sprintf("delete %s %s", resource.Resource, name),
		do: func(ctx context.Context, member *scene.Cluster, namespace string) error {
			return member.Delete(ctx, resource, namespace, name)
		},
	}
}

// patching changes an object.
func patching(resource schema.GroupVersionResource, name, patch string, subresources ...string) step {
	return step{
		what: fmt.Sprintf("patch %s %s %v with %s", resource.Resource, name, subresources, patch),
		do: func(ctx context.Context, member *scene.Cluster, namespace string) error {
			_, err := member.Dynamic.Resource(resource).Namespace(namespace).Patch(ctx, name, types.MergePatchType,
				[]byte(patch), metav1.PatchOptions{}, subresources...)
			return err
		},
	}
}

// resizing asks for another size of a pod's only container.
func resizing(name, cpu, limit string) step {
	return step{
		what: fmt.Sprintf("resize pod %s to %s of %s", name, cpu, limit),
		do: func(ctx context.Context, member *scene.Cluster, namespace string) error {
			patch := fmt.Appendf(nil, `{"spec":{"containers":[{"name":"main","resources":{"requests":{"cpu":%q},"limits":{"cpu":%q}}}]}}`, cpu, limit)
			_, err := member.Kubernetes.CoreV1().Pods(namespace).Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "resize")
			return err
		},
	}
}

func milli(n int64) string { return fmt.Sprintf("%dm", n) }

// createPod makes a pod of some shape. It has requests and limits of cpu and
// memory in every container, as the quotas demand, or nothing.
func (w *writer) createPod() {
	p := &scriptPod{name: w.name("pod"), scheduled: w.chance(60), ends: w.chance(25), cpu: int64(10 + w.random.IntN(300))}
	var options []func(*corev1.Pod)
	if p.sized = w.chance(75); p.sized {
		options = w.shape(p)
	}
	if p.scheduled {
		options = append(options, func(pod *corev1.Pod) { pod.Spec.NodeName = scriptNode })
	}
	if p.ends {
		options = append(options, terminating)
	}
	if w.chance(40) {
		options = append(options, priority(any1(w, "gold", "silver")))
	}
	if w.chance(15) {
		options = append(options, affine)
	}
	w.pods = append(w.pods, p)
	w.create(pod(p.name, options...))
}

// shape gives a pod's containers their sizes.
func (w *writer) shape(p *scriptPod) []func(*corev1.Pod) {
	ask := []string{"cpu", milli(p.cpu), "memory", fmt.Sprintf("%dMi", 8+w.random.IntN(64))}
	most := []string{"cpu", "4", "memory", "1Gi"}
	if w.chance(25) {
		ask, most = append(ask, "ephemeral-storage", "1Gi"), append(most, "ephemeral-storage", "2Gi")
	}
	if w.chance(15) {
		ask, most = append(ask, "hugepages-2Mi", "4Mi"), append(most, "hugepages-2Mi", "4Mi")
	}
	if w.chance(15) {
		ask, most = append(ask, "nvidia.com/gpu", "2"), append(most, "nvidia.com/gpu", "2")
	}
	options := []func(*corev1.Pod){requests(ask...), limits(most...)}
	before := func(name string, add func(string, ...string) func(*corev1.Pod)) {
		p.sized = false // only pods of one container are resized
		options = append(options, add(name, "cpu", milli(int64(w.random.IntN(500))), "memory", "16Mi"), func(pod *corev1.Pod) {
			pod.Spec.InitContainers[len(pod.Spec.InitContainers)-1].Resources.Limits = list("cpu", "2", "memory", "1Gi")
		})
	}
	if w.chance(15) {
		before("first", initContainer)
	}
	if w.chance(15) {
		before("beside", sidecar)
	}
	if w.chance(10) {
		options = append(options, sandboxed)
	}
	if w.chance(10) {
		p.sized = false
		options = append(options, ofPod(list("cpu", "1500m"), list("cpu", "6", "memory", "6Gi")))
	}
	return options
}

// changePod is what users and kubelets do with a pod while it exists.
func (w *writer) changePod() {
	if len(w.pods) == 0 {
		return
	}
	p := any1(w, w.pods...)
	switch {
	case p.sized && p.scheduled && !p.running:
		p.running = true
		w.write(patching(pods, p.name, `{"status":`+statusOf(p.cpu, p.cpu, "")+`}`, "status"))
	case p.running && w.chance(75):
		w.resizePod(p)
	case !p.ends && w.chance(20):
		p.ends = true
		w.write(patching(pods, p.name, `{"spec":{"activeDeadlineSeconds":7200}}`))
	case w.chance(30):
		w.pods = slices.DeleteFunc(w.pods, func(other *scriptPod) bool { return other == p })
		w.others = append(w.others, scriptObject{pods, p.name}) // it stays, and counts as an object
		w.write(patching(pods, p.name, fmt.Sprintf(`{"status":{"phase":%q}}`, any1(w, "Succeeded", "Failed")), "status"))
	}
}

// statusOf is the status of a running pod that was given so much cpu, uses so
// much, and whose resize is held up for a reason.
func statusOf(allocated, actual int64, pending string) string {
	conditions := ""
	if pending != "" {
		conditions = fmt.Sprintf(`{"type":"PodResizePending","status":"True","reason":%q}`, pending)
	}
	return fmt.Sprintf(`{"phase":"Running","conditions":[%s],"containerStatuses":[{"name":"main","image":"image","imageID":"image","ready":true,`+
		`"restartCount":0,"state":{"running":{}},"allocatedResources":{"cpu":"%dm"},"resources":{"requests":{"cpu":"%dm"},"limits":{"cpu":"4"}}}]}`,
		conditions, allocated, actual)
}

// resizePod asks for another size, and lets the kubelet follow, some of the way
// or not at all.
func (w *writer) resizePod(p *scriptPod) {
	was := p.cpu
	p.cpu = int64(10 + w.random.IntN(900))
	w.write(resizing(p.name, milli(p.cpu), "4"))
	follows := []string{statusOf(p.cpu, was, ""), statusOf(p.cpu, p.cpu, "")}
	p.pending = false
	switch w.random.IntN(4) {
	case 0:
		follows, p.pending = follows[:w.random.IntN(2)], true
	case 1:
		p.pending = true
		follows = []string{statusOf(was, was, any1(w, "Infeasible", "Deferred"))}
	}
	for _, status := range follows {
		w.write(patching(pods, p.name, `{"status":`+status+`}`, "status"))
	}
}

func (w *writer) deletePod() {
	if len(w.pods) == 0 {
		return
	}
	p := take(w, &w.pods)
	if !p.scheduled || w.chance(50) {
		w.write(deletion(pods, p.name))
		return
	}
	grace := any1(w, int64(1), 3600) // some are gone for quota when the script has ended, some are not
	w.write(step{
		what: fmt.Sprintf("delete pod %s with a grace of %d s", p.name, grace),
		do: func(ctx context.Context, member *scene.Cluster, namespace string) error {
			return member.Kubernetes.CoreV1().Pods(namespace).Delete(ctx, p.name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
		},
	})
}

func (w *writer) createService() {
	name := w.name("service")
	w.services = append(w.services, name)
	w.create(service(name, any1(w, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer), 1+w.random.IntN(3)))
}

// changeService changes the type or the ports of a service, or deletes it.
func (w *writer) changeService() {
	switch {
	case len(w.services) == 0:
	case w.chance(25):
		w.write(deletion(services, take(w, &w.services)))
	case w.chance(50):
		kind := any1(w, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer)
		w.write(patching(services, any1(w, w.services...), fmt.Sprintf(`{"spec":{"type":%q}}`, kind)))
	default:
		var ports []string
		for i := range 1 + w.random.IntN(4) {
			ports = append(ports, fmt.Sprintf(`{"name":"n%d","port":%d}`, i, 90+i))
		}
		w.write(patching(services, any1(w, w.services...), fmt.Sprintf(`{"spec":{"ports":[%s]}}`, strings.Join(ports, ","))))
	}
}

func (w *writer) createClaim() {
	c := &scriptClaim{name: w.name("claim"), gigabytes: 1 + w.random.IntN(20), expandable: w.chance(60), attributed: w.chance(30)}
	class := any1(w, "", "gold")
	if c.expandable {
		class = expandable
	}
	object := claim(c.name, class, fmt.Sprintf("%dGi", c.gigabytes))
	object.Spec.VolumeName = "volume-of-" + c.name
	if c.attributed {
		attributes := any1(w, "fast", "slow")
		object.Spec.VolumeAttributesClassName = &attributes
	}
	w.claims = append(w.claims, c)
	w.create(object)
}

// changeClaim binds a claim, lets it grow and its volume follow, or deletes it.
func (w *writer) changeClaim() {
	if len(w.claims) == 0 {
		return
	}
	c := any1(w, w.claims...)
	switch {
	case w.chance(20):
		w.claims = slices.DeleteFunc(w.claims, func(other *scriptClaim) bool { return other == c })
		w.write(deletion(claims, c.name))
	case !c.bound:
		c.bound = true
		w.write(patching(claims, c.name, fmt.Sprintf(`{"status":{"phase":"Bound","capacity":{"storage":"%dGi"}}}`, c.gigabytes), "status"))
	case c.attributed && w.chance(30):
		w.write(patching(claims, c.name, fmt.Sprintf(`{"status":{"currentVolumeAttributesClassName":%q}}`, any1(w, "fast", "slow")), "status"))
	case w.chance(40): // a controller makes the volume larger than what is asked for
		w.write(patching(claims, c.name, fmt.Sprintf(`{"status":{"allocatedResources":{"storage":"%dGi"}}}`, c.gigabytes+w.random.IntN(10)), "status"))
	case c.expandable:
		c.gigabytes += 1 + w.random.IntN(10)
		w.write(patching(claims, c.name, fmt.Sprintf(`{"spec":{"resources":{"requests":{"storage":"%dGi"}}}}`, c.gigabytes)))
	}
}

// createOther makes an object of a kind that is only counted, or asks for
// devices.
func (w *writer) createOther() {
	core, name := corev1.SchemeGroupVersion, w.name("object")
	add := func(resource schema.GroupVersionResource) { w.others = append(w.others, scriptObject{resource, name}) }
	switch w.random.IntN(7) {
	case 0:
		add(core.WithResource("configmaps"))
		w.create(configMap(name))
	case 1:
		add(core.WithResource("secrets"))
		w.create(secret(name))
	case 2:
		add(core.WithResource("replicationcontrollers"))
		w.create(replicationController(name))
	case 3:
		add(deployments)
		w.create(deployment(name))
	case 4:
		add(resourcev1.SchemeGroupVersion.WithResource("resourceclaims"))
		w.create(deviceClaim(name, any1(w, "gold", "silver"), int64(1+w.random.IntN(3))))
	default:
		add(widgets)
		w.create(custom(widgets, name))
	}
}

func (w *writer) deleteOther() {
	if len(w.others) == 0 {
		return
	}
	object := take(w, &w.others)
	w.write(deletion(object.resource, object.name))
}

// changeQuota makes a quota, changes what it limits, or deletes it. The script
// goes on when the quota has been answered.
func (w *writer) changeQuota() {
	switch {
	case len(w.quotas) < 2:
		q := &corev1.ResourceQuota{ObjectMeta: named(w.name("quota")), Spec: corev1.ResourceQuotaSpec{Hard: w.someHard()}}
		w.quotas = append(w.quotas, q)
		w.create(q)
		w.write(answered(q.Name))
	case w.chance(25):
		q := take(w, &w.quotas)
		w.write(deletion(corev1.SchemeGroupVersion.WithResource("resourcequotas"), q.Name))
	default:
		name, hard := any1(w, w.quotas...).Name, w.someHard()
		w.write(step{
			what: fmt.Sprintf("limit %s to %s", name, text(hard)),
			do: func(ctx context.Context, member *scene.Cluster, namespace string) error {
				return rehard(ctx, member, namespace, name, func(*corev1.ResourceQuota) corev1.ResourceList { return hard })
			},
		}, answered(name))
	}
}

// rehard changes what a quota limits.
func rehard(ctx context.Context, member *scene.Cluster, namespace, name string, change func(*corev1.ResourceQuota) corev1.ResourceList) error {
	api := member.Kubernetes.CoreV1().ResourceQuotas(namespace)
	q, err := api.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	q.Spec.Hard = change(q)
	_, err = api.Update(ctx, q, metav1.UpdateOptions{})
	return err
}

// someHard limits some of what no pod need specify, far from what is used.
func (w *writer) someHard() corev1.ResourceList {
	hard := corev1.ResourceList{}
	for _, name := range slices.Sorted(maps.Keys(objectsHard())) {
		if w.chance(30) {
			hard[name] = resource.MustParse(fmt.Sprintf("%dTi", 5+w.random.IntN(5)))
		}
	}
	hard["pods"] = resource.MustParse(fmt.Sprint(1000 + w.random.IntN(1000)))
	return hard
}

// answered waits until the status of a quota is of its spec.
func answered(name string) step {
	return step{
		what: "wait for the status of quota " + name,
		do: func(ctx context.Context, member *scene.Cluster, namespace string) error {
			return scene.Eventually(ctx, soon, func(ctx context.Context) error {
				q, err := member.Kubernetes.CoreV1().ResourceQuotas(namespace).Get(ctx, name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				for resource := range q.Spec.Hard {
					if _, ok := q.Status.Used[resource]; !ok {
						return fmt.Errorf("quota %s: the use of %s is not known", name, resource)
					}
				}
				return same("hard of quota "+name, q.Status.Hard, q.Spec.Hard)
			})
		},
	}
}

// askTooMuch asks for what every quota refuses, however much is used.
func (w *writer) askTooMuch() {
	name := w.name("refused")
	huge := []string{"cpu", "5k", "memory", "1Gi"}
	refusals := []step{
		{what: "ask for too many devices", do: creation(deviceClaim(name, "gold", 3000)), refused: exceeded},
		{what: "create a pod that is too big", do: creation(pod(name, requests(huge...), limits(huge...))), refused: exceeded},
		{what: "create a pod without limits", do: creation(pod(name, requests("cpu", "1"))), refused: unspecified},
		{what: "create a cron job", do: creation(cronJob(name)), refused: exceeded},
		{what: "create a claim that is too big", do: creation(claim(name, "gold", "20Pi")), refused: exceeded},
	}
	for _, p := range w.pods {
		if p.running && !p.pending {
			much := resizing(p.name, "5k", "5k")
			much.refused = exceeded
			refusals = append(refusals, much)
			break
		}
	}
	w.write(any1(w, refusals...))
}

// objectsHard limits what is not about cpu and memory, far from what scripts
// use; one cron job is too much.
func objectsHard() corev1.ResourceList {
	hard := corev1.ResourceList{}
	for name := range everything() {
		switch name {
		case "cpu", "memory", "requests.cpu", "limits.cpu", "requests.memory", "limits.memory":
		default:
			hard[name] = ample(name)
		}
	}
	for _, name := range []corev1.ResourceName{
		"count/services", "count/persistentvolumeclaims", "count/resourcequotas", "count/replicationcontrollers",
		expandable + ".storageclass.storage.k8s.io/requests.storage", expandable + ".storageclass.storage.k8s.io/persistentvolumeclaims",
	} {
		hard[name] = ample(name)
	}
	hard["count/cronjobs.batch"] = resource.MustParse("0")
	return hard
}

// ample is more than scripts use.
func ample(name corev1.ResourceName) resource.Quantity {
	text := string(name)
	if strings.HasSuffix(text, "memory") || strings.HasSuffix(text, "storage") || strings.Contains(text, "hugepages") {
		return resource.MustParse("10Ti")
	}
	return resource.MustParse("2k")
}

func amples(names ...corev1.ResourceName) corev1.ResourceList {
	hard := corev1.ResourceList{}
	for _, name := range names {
		hard[name] = ample(name)
	}
	return hard
}

// scriptQuotas are the quotas that are there from the start: of every scope and
// operator, and of every kind of key.
func scriptQuotas() []*corev1.ResourceQuota {
	compute := amples("pods", "cpu", "memory", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
	some := amples("pods", "count/pods", "requests.cpu", "limits.memory")
	storage := amples("persistentvolumeclaims", "requests.storage", "gold.storageclass.storage.k8s.io/requests.storage",
		expandable+".storageclass.storage.k8s.io/persistentvolumeclaims")
	sized := corev1.ResourceQuotaScopeNotBestEffort // quotas on cpu demand that it is specified
	quota := func(name string, hard corev1.ResourceList, scopes ...corev1.ResourceQuotaScope) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{ObjectMeta: named(name), Spec: corev1.ResourceQuotaSpec{Hard: hard, Scopes: scopes}}
	}
	selecting := func(q *corev1.ResourceQuota, scope corev1.ResourceQuotaScope, operator corev1.ScopeSelectorOperator, values ...string) *corev1.ResourceQuota {
		q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: scope, Operator: operator, Values: values},
		}}
		return q
	}
	class, attributes := corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeVolumeAttributesClass
	in, notIn, exists, absent := corev1.ScopeSelectorOpIn, corev1.ScopeSelectorOpNotIn, corev1.ScopeSelectorOpExists, corev1.ScopeSelectorOpDoesNotExist
	return []*corev1.ResourceQuota{
		quota("objects", objectsHard()),
		quota(scriptDevices, amples("count/resourceclaims.resource.k8s.io", "gold.deviceclass.resource.k8s.io/devices")),
		quota("compute", compute, sized),
		quota("terminating", compute, corev1.ResourceQuotaScopeTerminating, sized),
		quota("not-terminating", some, corev1.ResourceQuotaScopeNotTerminating, sized),
		quota("best-effort", amples("pods"), corev1.ResourceQuotaScopeBestEffort),
		quota("terminating-best-effort", amples("pods"), corev1.ResourceQuotaScopeTerminating, corev1.ResourceQuotaScopeBestEffort),
		quota("far", some, corev1.ResourceQuotaScopeCrossNamespacePodAffinity, sized),
		selecting(quota("terminating-by-selector", amples("pods", "count/pods")), corev1.ResourceQuotaScopeTerminating, exists),
		selecting(quota("any-priority", some, sized), class, exists),
		selecting(quota("no-priority", some, sized), class, absent),
		selecting(quota("gold", some, sized), class, in, "gold", "platinum"),
		selecting(quota("not-gold", amples("pods")), class, notIn, "gold"),
		selecting(quota("any-attributes", storage), attributes, exists),
		selecting(quota("no-attributes", storage), attributes, absent),
		selecting(quota("fast", storage), attributes, in, "fast"),
		selecting(quota("not-fast", storage), attributes, notIn, "fast"),
	}
}

// scriptDevices is the quota on resource claims, which package count does not
// count.
const scriptDevices = "devices"
