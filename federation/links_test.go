package federation_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

var (
	deviceClaims  = schema.GroupResource{Group: "resource.k8s.io", Resource: "resourceclaims"}
	deviceClasses = schema.GroupResource{Group: "resource.k8s.io", Resource: "deviceclasses"}

	withDevices = evaluator.NewSet("v1.37.2", []schema.GroupResource{pods, deviceClaims, configMaps})
)

const (
	gpu      = corev1.ResourceName("requests.example.com/gpu")
	implicit = corev1.ResourceName("requests.deviceclass.resource.kubernetes.io/big")
	devices  = corev1.ResourceName("big.deviceclass.resource.k8s.io/devices")
)

// object is what tests hand over.
type object interface {
	runtime.Object
	metav1.Object
}

// linked is an object as an observer hands it over, with its record. What it
// costs by itself is left out where that depends on others.
func linked(kind schema.GroupResource, obj object) federation.Object {
	record, err := withDevices.Record(kind, obj)
	if err != nil {
		panic(err)
	}
	o := federation.Object{Namespace: obj.GetNamespace(), Name: obj.GetName(), Record: record}
	if kind == pods {
		o.Charge = charged(pods, obj, time.Time{}).Charge
	}
	return o
}

func withUID(uid types.UID) podOption {
	return func(p *corev1.Pod) { p.UID = uid }
}

// deviceClaim is a claim for devices of the class big, made for pod p.
func deviceClaim(name string, n int64, owner types.UID) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
	c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Exactly: &resourcev1.ExactDeviceRequest{
		DeviceClassName: "big", AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: n,
	}}}
	if owner != "" {
		c.Annotations = map[string]string{resourcev1.ExtendedResourceClaimAnnotation: "true"}
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: owner, Controller: new(true)}}
	}
	return c
}

// deviceClass is the class big, which names an extended resource or none.
func deviceClass(extended string) *resourcev1.DeviceClass {
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "big"}}
	if extended != "" {
		class.Spec.ExtendedResourceName = &extended
	}
	return class
}

// devicesBook is a book of a member that has nothing yet.
func devicesBook() (*federation.Ledger, *federation.Book, *moves) {
	told := &moves{}
	ledger := federation.NewLedger(told.note)
	ledger.Mark("eu", live)
	book := ledger.Open("eu", withDevices, nil)
	for _, kind := range []schema.GroupResource{pods, deviceClaims, deviceClasses} {
		book.Replace(kind, nothing)
	}
	told.take()
	return ledger, book, told
}

func TestAClaimIsChargedAgainWhenWhatItDependsOnChanges(t *testing.T) {
	ledger, book, told := devicesBook()
	step := func(change, wantGPU, wantImplicit string) {
		t.Helper()
		if got := len(told.take()); got == 0 {
			t.Errorf("%s: nobody was told", change)
		}
		wantUsed(t, ledger, ask(gpu, implicit, devices), list(string(gpu), wantGPU, string(implicit), wantImplicit, string(devices), "3"))
	}
	book.Set(deviceClaims, linked(deviceClaims, deviceClaim("c", 3, "1")))
	step("a claim comes", "0", "3")
	book.Set(deviceClasses, linked(deviceClasses, deviceClass("example.com/gpu")))
	step("its class names a resource", "3", "3")
	book.Set(pods, linked(pods, pod("p", withUID("1"), requests("example.com/gpu", "2"))))
	step("its pod pays for two", "3", "3")
	book.Set(pods, linked(pods, pod("p", withUID("1"), requests("example.com/gpu", "7"))))
	step("its pod pays for more", "7", "3")
	book.Set(pods, linked(pods, pod("p", withUID("2"), requests("example.com/gpu", "2"))))
	step("another pod of this name", "5", "3")
	book.Delete(pods, "a", "p")
	step("no pod", "3", "3")
	book.Set(pods, linked(pods, pod("p", withUID("1"), requests("example.com/gpu", "2"), deleted(noon, 5))))
	step("its pod is being deleted", "3", "3")
	if at, want := book.Next(), noon.Add(5*time.Second+1); !at.Equal(want) {
		t.Errorf("next is %v, want %v", at, want)
	}
	told.take()
	book.Expire(noon.Add(5*time.Second + 1))
	step("its pod is stuck, and costs nothing more", "3", "3")
	book.Set(pods, linked(pods, pod("p", withUID("1"), requests("example.com/gpu", "1"), deleted(noon, 5))))
	wantUsed(t, ledger, ask(gpu), list(string(gpu), "4")) // the pod costs until the next look at the clock; the claim knows better
	told.take()
	book.Expire(noon.Add(5*time.Second + 1))
	step("the pod no more", "3", "3")
	book.Drop(deviceClasses)
	book.Replace(deviceClasses, nothing)
	step("no class", "0", "3")
}

func TestAnAmountIsUnknownUntilWhatItDependsOnIs(t *testing.T) {
	ledger := federation.NewLedger(nil)
	ledger.Mark("eu", live)
	book := ledger.Open("eu", withDevices, nil)
	book.Replace(pods, nothing)
	book.Replace(deviceClaims, nothing)
	if part := ledger.Part(ask(gpu), "eu"); part.Phase != v1alpha1.NeverSynced || len(part.Used) > 0 {
		t.Errorf("without device classes: %+v", part)
	}
	if part := ledger.Part(ask(devices), "eu"); part.Phase != v1alpha1.Live {
		t.Errorf("devices do not depend on their class: %+v", part)
	}
	book.Replace(deviceClasses, nothing)
	if part := ledger.Part(ask(gpu), "eu"); part.Phase != v1alpha1.Live {
		t.Errorf("with them: %+v", part)
	}
	book.Fail(deviceClasses, "Forbidden")
	if part := ledger.Part(ask(gpu), "eu"); part.Phase != v1alpha1.Partial || part.Reason != "Forbidden" || len(part.Unknown) != 1 {
		t.Errorf("once they cannot be listed: %+v", part)
	}
}

func TestClaimsAreChargedOnceTheirEvaluatorIsKnown(t *testing.T) {
	ledger := federation.NewLedger(nil)
	book := ledger.Open("eu", served, nil)
	book.Replace(deviceClaims, slices.Values([]federation.Object{linked(deviceClaims, deviceClaim("c", 3, ""))}))
	book.Learn(withDevices)
	wantUsed(t, ledger, ask(devices), list(string(devices), "3"))
}

// Whatever comes in whatever order, claims cost what they cost in a book that is
// filled anew.
func TestDependentChargesAreEqualToARecount(t *testing.T) {
	kinds := rapid.SampledFrom([]schema.GroupResource{pods, deviceClaims, deviceClasses})
	rapid.Check(t, func(t *rapid.T) {
		ledger, book, _ := devicesBook()
		objects := map[schema.GroupResource]map[string]federation.Object{pods: {}, deviceClaims: {}, deviceClasses: {}}
		now := noon
		book.Expire(now)
		t.Repeat(map[string]func(*rapid.T){
			"Set": func(t *rapid.T) {
				kind := kinds.Draw(t, "kind")
				o := drawLinked(t, kind)
				objects[kind][o.Name] = o
				book.Set(kind, o)
			},
			"Delete": func(t *rapid.T) {
				kind := kinds.Draw(t, "kind")
				o := drawLinked(t, kind)
				delete(objects[kind], o.Name)
				book.Delete(kind, o.Namespace, o.Name)
			},
			"Replace": func(t *rapid.T) {
				kind := kinds.Draw(t, "kind")
				objects[kind] = map[string]federation.Object{}
				for range rapid.IntRange(0, 3).Draw(t, "objects") {
					o := drawLinked(t, kind)
					objects[kind][o.Name] = o
				}
				book.Replace(kind, maps.Values(objects[kind]))
			},
			"Drop": func(t *rapid.T) {
				kind := kinds.Draw(t, "kind")
				objects[kind] = map[string]federation.Object{}
				book.Drop(kind)
				book.Replace(kind, nothing)
			},
			"Expire": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(0, 8).Draw(t, "seconds")) * time.Second)
			},
			"": func(t *rapid.T) {
				book.Expire(now)
				again, recount, _ := devicesBook()
				for _, kind := range rapid.Permutation([]schema.GroupResource{pods, deviceClaims, deviceClasses}).Draw(t, "order") {
					recount.Replace(kind, maps.Values(objects[kind]))
				}
				recount.Expire(now)
				q := ask("pods", gpu, implicit, devices, "count/resourceclaims.resource.k8s.io")
				got, want := ledger.Part(q, "eu").Used, again.Part(q, "eu").Used
				if !federation.Equal(got, want) {
					t.Fatalf("(-recount +ledger):\n%s", cmp.Diff(want, got))
				}
			},
		})
	})
}

func drawLinked(t *rapid.T, kind schema.GroupResource) federation.Object {
	switch kind {
	case deviceClasses:
		return linked(kind, deviceClass(rapid.SampledFrom([]string{"", "example.com/gpu"}).Draw(t, "extended")))
	case deviceClaims:
		owner := rapid.SampledFrom([]types.UID{"", "1", "2"}).Draw(t, "owner")
		return linked(kind, deviceClaim(rapid.SampledFrom([]string{"c", "d", "e"}).Draw(t, "name"), rapid.Int64Range(0, 3).Draw(t, "count"), owner))
	}
	p := pod("p", withUID(rapid.SampledFrom([]types.UID{"1", "2"}).Draw(t, "uid")))
	if maybe(t, "asks") {
		requests(rapid.SampledFrom([]string{"example.com/gpu", "deviceclass.resource.kubernetes.io/big"}).Draw(t, "resource"), "2")(p)
	}
	if maybe(t, "deleted") {
		deleted(noon.Add(time.Duration(rapid.IntRange(-5, 20).Draw(t, "seconds"))*time.Second), 2)(p)
	}
	if maybe(t, "names a claim") {
		p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{
			ResourceClaimName: rapid.SampledFrom([]string{"c", "d"}).Draw(t, "claim"),
		}
	}
	return linked(kind, p)
}
