package evaluator_test

import (
	"math"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/evaluator"
)

var (
	deviceClaimKind = schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}
	deviceClassKind = schema.GroupResource{Group: "resource.k8s.io", Resource: "deviceclasses"}
)

type deviceClaimOption func(*resourcev1.ResourceClaim)

func deviceClaim(name string, options ...deviceClaimOption) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: name, CreationTimestamp: metav1.NewTime(noon)}}
	for _, option := range options {
		option(c)
	}
	return c
}

func exactly(class string, mode resourcev1.DeviceAllocationMode, n int64) deviceClaimOption {
	return func(c *resourcev1.ResourceClaim) {
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, resourcev1.DeviceRequest{
			Exactly: &resourcev1.ExactDeviceRequest{DeviceClassName: class, AllocationMode: mode, Count: n},
		})
	}
}

// devices asks for n devices of a class.
func devices(class string, n int64) deviceClaimOption {
	return exactly(class, resourcev1.DeviceAllocationModeExactCount, n)
}

func adminAccess(c *resourcev1.ResourceClaim) {
	for _, request := range c.Spec.Devices.Requests {
		request.Exactly.AdminAccess = new(true)
	}
}

func option(class string, mode resourcev1.DeviceAllocationMode, n int64) resourcev1.DeviceSubRequest {
	return resourcev1.DeviceSubRequest{DeviceClassName: class, AllocationMode: mode, Count: n}
}

func firstOf(options ...resourcev1.DeviceSubRequest) deviceClaimOption {
	return func(c *resourcev1.ResourceClaim) {
		c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, resourcev1.DeviceRequest{FirstAvailable: options})
	}
}

func unknownRequest(c *resourcev1.ResourceClaim) {
	c.Spec.Devices.Requests = append(c.Spec.Devices.Requests, resourcev1.DeviceRequest{Name: "of the future"})
}

// madeFor marks a claim as made for the extended resources of the pod p with a UID.
func madeFor(uid types.UID) deviceClaimOption {
	return func(c *resourcev1.ResourceClaim) {
		c.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: uid, Controller: new(true)}}
	}
}

func made(since time.Duration) deviceClaimOption {
	return func(c *resourcev1.ResourceClaim) { c.CreationTimestamp = metav1.NewTime(noon.Add(since)) }
}

func changed(change func(*resourcev1.ResourceClaim)) deviceClaimOption { return change }

func deviceClass(name, extended string) *resourcev1.DeviceClass {
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if extended != "" {
		class.Spec.ExtendedResourceName = &extended
	}
	return class
}

// gpuPod is a pod of this UID that asks for extended resources.
func gpuPod(uid types.UID, requests corev1.ResourceList, options ...podOption) *corev1.Pod {
	p := pod(container("app", requests))
	p.UID = uid
	for _, option := range options {
		option(p)
	}
	return p
}

func naming(claim string) podOption {
	return func(p *corev1.Pod) {
		p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: claim}
	}
}

// world is records by what they are found by, as a book keeps them.
type world map[evaluator.Ref][]evaluator.Record

func worldOf(tb testing.TB, set *evaluator.Set, objects []runtime.Object) world {
	tb.Helper()
	w := world{}
	for _, object := range objects {
		kind := podKind
		switch object.(type) {
		case *resourcev1.ResourceClaim:
			kind = deviceClaimKind
		case *resourcev1.DeviceClass:
			kind = deviceClassKind
		}
		record, err := set.Record(kind, object)
		if err != nil {
			tb.Fatal(err)
		}
		for _, ref := range record.Refs {
			w[ref] = append(w[ref], record)
		}
	}
	return w
}

func (w world) lookup(ref evaluator.Ref) []evaluator.Record { return w[ref] }

// dependentCharge charges a claim in the world of the objects and itself.
func dependentCharge(tb testing.TB, version string, c *resourcev1.ResourceClaim, others ...runtime.Object) evaluator.Charge {
	tb.Helper()
	set := evaluator.NewSet(version, []schema.GroupResource{podKind, deviceClaimKind, deviceClassKind})
	found, _ := set.For(deviceClaimKind)
	dependent, ok := found.(evaluator.Dependent)
	if !ok {
		tb.Fatalf("%T depends on nothing", found)
	}
	record, err := set.Record(deviceClaimKind, c)
	if err != nil {
		tb.Fatal(err)
	}
	w := worldOf(tb, set, append(others, c))
	asked := map[evaluator.Ref]bool{}
	charge := dependent.ChargeRecord(record, func(ref evaluator.Ref) []evaluator.Record {
		asked[ref] = true
		return w.lookup(ref)
	})
	for ref := range asked {
		if !slices.Contains(record.DependsOn, ref) {
			tb.Errorf("the charge looks up %+v, which it does not depend on", ref)
		}
	}
	return charge
}

func TestDeviceClaimCharge(t *testing.T) {
	const all, count = resourcev1.DeviceAllocationModeAll, resourcev1.DeviceAllocationModeExactCount
	tests := map[string]struct {
		claim *resourcev1.ResourceClaim
		want  corev1.ResourceList // devices by class
	}{
		"a claim that asks for nothing costs itself": {
			claim: deviceClaim("c"),
		},
		"devices of a class": {
			claim: deviceClaim("c", devices("big", 3)),
			want:  list("big", "3"),
		},
		"all requests together": {
			claim: deviceClaim("c", devices("big", 3), devices("small", 1), devices("big", 2)),
			want:  list("big", "5", "small", "1"),
		},
		"all devices are as many as a claim can hold": {
			claim: deviceClaim("c", exactly("big", all, 0)),
			want:  list("big", "32"),
		},
		"an unknown mode costs nothing, but names the class": {
			claim: deviceClaim("c", exactly("big", "Some", 5)),
			want:  list("big", "0"),
		},
		"admin access costs the same": {
			claim: deviceClaim("c", devices("big", 3), adminAccess),
			want:  list("big", "3"),
		},
		"the first available may be the most of each class": {
			claim: deviceClaim("c", firstOf(option("big", count, 1), option("small", count, 2), option("big", count, 4), option("small", count, 1))),
			want:  list("big", "4", "small", "2"),
		},
		"the first available may be all": {
			claim: deviceClaim("c", firstOf(option("big", count, 40), option("small", all, 0)), devices("small", 1)),
			want:  list("big", "40", "small", "33"),
		},
		"an option of an unknown mode does not name the class": {
			claim: deviceClaim("c", firstOf(option("big", "Some", 4))),
		},
		"options come before an exact request": {
			claim: deviceClaim("c", firstOf(option("small", count, 1)), changed(func(c *resourcev1.ResourceClaim) {
				c.Spec.Devices.Requests[0].Exactly = &resourcev1.ExactDeviceRequest{DeviceClassName: "big", AllocationMode: count, Count: 1}
			})),
			want: list("small", "1"),
		},
		"a request of an unknown form costs nothing": {
			claim: deviceClaim("c", unknownRequest),
		},
		"more than fits an int64": {
			claim: deviceClaim("c", devices("big", math.MaxInt64), devices("big", math.MaxInt64)),
			want:  list("big", "18446744073709551614"),
		},
		"a class without a name has no extended resource": {
			claim: deviceClaim("c", devices("", 2)),
			want:  list("", "2"),
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			want := list("count/resourceclaims.resource.k8s.io", "1")
			for class, n := range test.want {
				want[class+".deviceclass.resource.k8s.io/devices"] = n
				if class != "" && !n.IsZero() {
					want["requests.deviceclass.resource.kubernetes.io/"+class] = n
				}
			}
			got := charge(t, deviceClaimKind, test.claim)
			wantAmounts(t, got.Amounts, want)
			if got.Class != (evaluator.Class{}) || got.After != nil {
				t.Errorf("got %+v, want no scope and no end", got)
			}
		})
	}
	if err := forKind(t, deviceClaimKind).Constraints(nil, []corev1.ResourceName{"big.deviceclass.resource.k8s.io/devices"}); err != nil {
		t.Error(err)
	}
}

func TestDeviceClaimCostsWhatItsPodHasNotPaid(t *testing.T) {
	const gpu, implicit = "requests.example.com/gpu", "requests.deviceclass.resource.kubernetes.io/big"
	mine := func(options ...deviceClaimOption) *resourcev1.ResourceClaim {
		return deviceClaim("mine", append([]deviceClaimOption{devices("big", 3), madeFor("1")}, options...)...)
	}
	named := deviceClass("big", "example.com/gpu")
	tests := map[string]struct {
		claim *resourcev1.ResourceClaim
		world []runtime.Object
		want  corev1.ResourceList // beside the claim and three devices of the class big
	}{
		"the class names an extended resource": {
			claim: mine(), world: []runtime.Object{named},
			want: list(implicit, "3", gpu, "3"),
		},
		"a class that names none": {
			claim: mine(), world: []runtime.Object{deviceClass("big", "")},
			want: list(implicit, "3"),
		},
		"another class": {
			claim: mine(), world: []runtime.Object{deviceClass("small", "example.com/gpu")},
			want: list(implicit, "3"),
		},
		"a pod that asks for the named resource": {
			claim: mine(), world: []runtime.Object{named, gpuPod("1", list("example.com/gpu", "3"))},
			want: list(implicit, "3"),
		},
		"a pod that asks for the implicit resource": {
			claim: mine(), world: []runtime.Object{named, gpuPod("1", list("deviceclass.resource.kubernetes.io/big", "2"))},
			want: list(implicit, "1", gpu, "3"),
		},
		"a pod that asks for more": {
			claim: mine(), world: []runtime.Object{named, gpuPod("1", list("example.com/gpu", "5", "deviceclass.resource.kubernetes.io/big", "5"))},
			want: list(),
		},
		"a pod that asks through a sidecar": {
			claim: mine(), world: []runtime.Object{named, gpuPod("1", nil, sidecar(list("example.com/gpu", "1")))},
			want: list(implicit, "3", gpu, "2"),
		},
		"a pod that asks for other things": {
			claim: mine(), world: []runtime.Object{named, gpuPod("1", list("cpu", "3", "example.com/nic", "3"))},
			want: list(implicit, "3", gpu, "3"),
		},
		"a pod that has ended": {
			claim: mine(), world: []runtime.Object{named, gpuPod("1", list("example.com/gpu", "3"), phase(corev1.PodFailed))},
			want: list(implicit, "3", gpu, "3"),
		},
		"another pod of this name": {
			claim: mine(), world: []runtime.Object{named, gpuPod("2", list("example.com/gpu", "3"))},
			want: list(implicit, "3", gpu, "3"),
		},
		"a pod whose status names the claim": {
			claim: mine(), world: []runtime.Object{
				named, gpuPod("1", list("example.com/gpu", "3"), naming("mine")),
				deviceClaim("elder", devices("big", 3), madeFor("1"), made(-time.Hour)),
			},
			want: list(implicit, "3"),
		},
		"a pod whose status names another claim": {
			claim: mine(), world: []runtime.Object{named, gpuPod("1", list("example.com/gpu", "3"), naming("other"))},
			want: list(implicit, "3", gpu, "3"),
		},
		"a pod that names none, and an older claim": {
			claim: mine(), world: []runtime.Object{
				named, gpuPod("1", list("example.com/gpu", "3")),
				deviceClaim("zz", devices("big", 3), madeFor("1"), made(-time.Second)),
			},
			want: list(implicit, "3", gpu, "3"),
		},
		"a pod that names none, and a younger claim": {
			claim: mine(), world: []runtime.Object{
				named, gpuPod("1", list("example.com/gpu", "3")),
				deviceClaim("aa", devices("big", 3), madeFor("1"), made(time.Second)),
			},
			want: list(implicit, "3"),
		},
		"a pod that names none, and a claim of the same age with a name before": {
			claim: mine(), world: []runtime.Object{
				named, gpuPod("1", list("example.com/gpu", "3")), deviceClaim("aa", devices("big", 3), madeFor("1")),
			},
			want: list(implicit, "3", gpu, "3"),
		},
		"an older claim that was not made for a pod": {
			claim: mine(), world: []runtime.Object{
				named, gpuPod("1", list("example.com/gpu", "3")), deviceClaim("aa", devices("big", 3), made(-time.Hour)),
			},
			want: list(implicit, "3"),
		},
		"a claim that was made for no pod": {
			claim: mine(changed(func(c *resourcev1.ResourceClaim) { c.Annotations = nil })),
			world: []runtime.Object{named, gpuPod("1", list("example.com/gpu", "3"))},
			want:  list(implicit, "3", gpu, "3"),
		},
		"a claim that somebody else owns": {
			claim: mine(changed(func(c *resourcev1.ResourceClaim) { c.OwnerReferences[0].Kind = "Job" })),
			world: []runtime.Object{named, gpuPod("1", list("example.com/gpu", "3"))},
			want:  list(implicit, "3", gpu, "3"),
		},
		"a claim whose owner is of another version": {
			claim: mine(changed(func(c *resourcev1.ResourceClaim) { c.OwnerReferences[0].APIVersion = "v2" })),
			world: []runtime.Object{named, gpuPod("1", list("example.com/gpu", "3"))},
			want:  list(implicit, "3", gpu, "3"),
		},
		"a claim whose owner does not control it": {
			claim: mine(changed(func(c *resourcev1.ResourceClaim) { c.OwnerReferences[0].Controller = nil })),
			world: []runtime.Object{named, gpuPod("1", list("example.com/gpu", "3"))},
			want:  list(implicit, "3", gpu, "3"),
		},
	}
	for sentence, test := range tests {
		t.Run(sentence, func(t *testing.T) {
			got := dependentCharge(t, "v1.37.2", test.claim, test.world...)
			test.want["count/resourceclaims.resource.k8s.io"] = list("n", "1")["n"]
			test.want["big.deviceclass.resource.k8s.io/devices"] = list("n", "3")["n"]
			wantAmounts(t, got.Amounts, test.want)
			if got.After != nil {
				t.Errorf("the charge ends at %v", got.Until)
			}
		})
	}
}

func TestDeviceClassesThatNameOneResourceAreSummed(t *testing.T) {
	got := dependentCharge(t, "v1.37.2", deviceClaim("c", devices("old", 1), devices("new", 2)),
		deviceClass("old", "example.com/gpu"), deviceClass("new", "example.com/gpu"))
	wantAmounts(t, got.Amounts, list(
		"count/resourceclaims.resource.k8s.io", "1",
		"old.deviceclass.resource.k8s.io/devices", "1", "new.deviceclass.resource.k8s.io/devices", "2",
		"requests.deviceclass.resource.kubernetes.io/old", "1", "requests.deviceclass.resource.kubernetes.io/new", "2",
		"requests.example.com/gpu", "3"))
}

func TestDeviceClaimPaysAgainOncePodIsStuck(t *testing.T) {
	mine := deviceClaim("mine", devices("big", 1), madeFor("1"))
	got := dependentCharge(t, "v1.37.2", mine, gpuPod("1", list("deviceclass.resource.kubernetes.io/big", "1"), deleted(time.Minute, 30)))
	if want := noon.Add(90 * time.Second); !got.Until.Equal(want) || got.After == nil {
		t.Fatalf("got an end at %v, want one at %v", got.Until, want)
	}
	paid := list("count/resourceclaims.resource.k8s.io", "1", "big.deviceclass.resource.k8s.io/devices", "1")
	wantAmounts(t, got.At(got.Until).Amounts, paid)
	paid["requests.deviceclass.resource.kubernetes.io/big"] = list("n", "1")["n"]
	wantAmounts(t, got.At(got.Until.Add(1)).Amounts, paid)
}

func TestClaimsAreNotExtendedResourcesBefore136(t *testing.T) {
	mine := deviceClaim("mine", devices("big", 3), madeFor("1"))
	for _, version := range []string{"v1.34.4", "v1.35.4"} {
		got := dependentCharge(t, version, mine, deviceClass("big", "example.com/gpu"), gpuPod("1", list("example.com/gpu", "1")))
		wantAmounts(t, got.Amounts, list("count/resourceclaims.resource.k8s.io", "1", "big.deviceclass.resource.k8s.io/devices", "3"))
		set := evaluator.NewSet(version, []schema.GroupResource{podKind, deviceClaimKind, deviceClassKind})
		if kinds := set.Kinds("requests.example.com/gpu"); !slices.Equal(kinds, []schema.GroupResource{podKind}) {
			t.Errorf("%s: got %v", version, kinds)
		}
		if needs := set.Needs("requests.example.com/gpu"); needs != nil {
			t.Errorf("%s: needs %v", version, needs)
		}
	}
}

func TestSetNeeds(t *testing.T) {
	all := served(podKind, deviceClaimKind, deviceClassKind)
	for name, want := range map[corev1.ResourceName][]schema.GroupResource{
		"requests.example.com/gpu":                        {deviceClassKind},
		"requests.deviceclass.resource.kubernetes.io/big": {deviceClassKind},
		"big.deviceclass.resource.k8s.io/devices":         nil, // whatever the class is
		"count/resourceclaims.resource.k8s.io":            nil,
		"requests.cpu":                                    nil,
		"pods":                                            nil,
	} {
		if got := all.Needs(name); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	if got := served(podKind).Needs("requests.example.com/gpu"); got != nil {
		t.Errorf("without claims: got %v", got)
	}
}

func TestRecord(t *testing.T) {
	records := func(kind schema.GroupResource, obj runtime.Object) evaluator.Record {
		t.Helper()
		record, err := served(podKind, serviceKind, deviceClaimKind).Record(kind, obj)
		if err != nil {
			t.Fatal(err)
		}
		return record
	}
	gpus := list("example.com/gpu", "1")
	zero := map[string]evaluator.Record{
		"a pod without extended resources":       records(podKind, pod(container("app", list("cpu", "1")))),
		"a pod that has ended":                   records(podKind, gpuPod("1", gpus, phase(corev1.PodSucceeded))),
		"a pod with a resource of Kubernetes":    records(podKind, gpuPod("1", list("kubernetes.io/x", "1"))),
		"a class that names no resource":         records(deviceClassKind, deviceClass("big", "")),
		"a service":                              records(serviceKind, service(corev1.ServiceTypeClusterIP, nil)),
		"a kind of which nothing at all is read": records(deployKind, nil),
	}
	for sentence, record := range zero {
		if !record.IsZero() || !record.Equal(evaluator.Record{}) {
			t.Errorf("%s: got %+v, want nothing", sentence, record)
		}
	}
	if record, err := served(podKind).Record(deviceClassKind, deviceClass("big", "example.com/gpu")); err != nil || record.IsZero() {
		t.Errorf("before claims are served: got %+v, %v", record, err)
	}
	for _, kind := range []schema.GroupResource{podKind, deviceClaimKind, deviceClassKind} {
		if _, err := served(deviceClaimKind).Record(kind, &corev1.Secret{}); err == nil {
			t.Errorf("a secret passed for one of %v", kind)
		}
	}
	if _, err := forKind(t, deviceClaimKind).Charge(&corev1.Secret{}, noon); err == nil {
		t.Error("a secret was charged as a claim")
	}

	different := []evaluator.Record{
		{},
		records(podKind, gpuPod("1", gpus)),
		records(podKind, gpuPod("2", gpus)),
		records(podKind, gpuPod("1", list("example.com/gpu", "2"))),
		records(podKind, gpuPod("1", gpus, naming("a"))),
		records(podKind, gpuPod("1", gpus, naming("b"))),
		records(podKind, gpuPod("1", gpus, deleted(0, 1))),
		records(deviceClassKind, deviceClass("big", "example.com/gpu")),
		records(deviceClassKind, deviceClass("big", "example.com/nic")),
		records(deviceClassKind, deviceClass("small", "example.com/gpu")),
		records(deviceClaimKind, deviceClaim("a")),
		records(deviceClaimKind, deviceClaim("b")),
		records(deviceClaimKind, deviceClaim("a", made(time.Second))),
		records(deviceClaimKind, deviceClaim("a", devices("big", 1))),
		records(deviceClaimKind, deviceClaim("a", madeFor("1"))),
		records(deviceClaimKind, deviceClaim("a", madeFor("2"))),
	}
	for i, a := range different {
		for j, b := range different {
			if a.Equal(b) != (i == j) {
				t.Errorf("records %d and %d: equal is %t", i, j, a.Equal(b))
			}
		}
	}
	// What is read of a pod may stand anywhere in it.
	for sentence, p := range map[string]*corev1.Pod{
		"overhead":  pod(overhead(gpus)),
		"allocated": pod(container("app", nil), holding("app", gpus, nil)),
		"actual":    pod(container("app", nil), holding("app", nil, gpus)),
		"init":      pod(initContainer("setup", gpus)),
	} {
		if records(podKind, p).IsZero() {
			t.Errorf("%s: nothing was kept", sentence)
		}
	}
}
