package evaluator_test

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/evaluator"
)

// decodable is an object that can be read from the bytes that a watch brings.
type decodable interface {
	runtime.Object
	Unmarshal(data []byte) error
	Marshal() ([]byte, error)
}

// specials is the kinds whose objects are charged by what is in them.
var specials = []struct {
	kind schema.GroupResource
	make func() decodable
}{
	{podKind, func() decodable { return &corev1.Pod{} }},
	{serviceKind, func() decodable { return &corev1.Service{} }},
	{claimKind, func() decodable { return &corev1.PersistentVolumeClaim{} }},
	{deviceClaimKind, func() decodable { return &resourcev1.ResourceClaim{} }},
	{deviceClassKind, func() decodable { return &resourcev1.DeviceClass{} }},
}

// FuzzDecode reads an object of any kind from any bytes, as protobuf or as JSON,
// and charges it by the rules of a version.
func FuzzDecode(f *testing.F) {
	for i, seed := range []decodable{
		pod(container("app", list("cpu", "1500m", "example.com/gpu", "2"), list("memory", "7Ei")), sidecar(list("cpu", "1")),
			overhead(list("cpu", "100m")), podLevel(list("cpu", "3"), nil), holding("app", list("cpu", "2"), list("cpu", "3")),
			initContainer("setup", list("memory", "1e999999999")), infeasible, deleted(time.Minute, 30), activeDeadline(5), highPriority),
		service(corev1.ServiceTypeLoadBalancer, nil, 0, 30000),
		claim(asking("100000Gi"), allocated(list("storage", "1500m")), inClass("gold"), attributes("a", "b", "c")),
		deviceClaim("c", devices("big", 3), firstOf(option("small", resourcev1.DeviceAllocationModeAll, 0)), madeFor("1")),
		deviceClass("big", "example.com/gpu"),
	} {
		wire, err := seed.Marshal()
		if err != nil {
			f.Fatal(err)
		}
		text, err := json.Marshal(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), uint8(37), false, wire)
		f.Add(uint8(i), uint8(34), true, text)
	}
	absurd := regexp.MustCompile(`[eE]-[0-9]{4,}`) // merely reading such a quantity takes minutes
	f.Fuzz(func(t *testing.T, which, minor uint8, text bool, data []byte) {
		if absurd.Match(data) {
			return
		}
		special := specials[int(which)%len(specials)]
		object, again := special.make(), special.make()
		read := func(into decodable) error {
			if text {
				return json.Unmarshal(data, into)
			}
			return into.Unmarshal(data)
		}
		if read(object) != nil || read(again) != nil {
			return
		}
		version := "v1." + string('0'+rune(minor/10%10)) + string('0'+rune(minor%10))
		set := evaluator.NewSet(version, []schema.GroupResource{special.kind})
		record, err := set.Record(special.kind, object)
		if err != nil {
			t.Fatal(err)
		}
		found, served := set.For(special.kind)
		if served {
			charge, err := found.Charge(object, noon)
			if err != nil {
				t.Fatal(err)
			}
			wantWellFormed(t, charge)
			found.Constraints(object, []corev1.ResourceName{"cpu", "limits.memory"})
		}
		if dependent, ok := found.(evaluator.Dependent); ok {
			wantWellFormed(t, dependent.ChargeRecord(record, func(evaluator.Ref) []evaluator.Record { return []evaluator.Record{record} }))
		}
		if !reflect.DeepEqual(object, again) {
			t.Errorf("the object changed from %v to %v", again, object)
		}
	})
}

// wantWellFormed checks what every charge promises.
func wantWellFormed(tb testing.TB, charge evaluator.Charge) {
	tb.Helper()
	if charge.Until.IsZero() != (charge.After == nil) && charge.After == nil {
		tb.Errorf("an end at %v, and nothing after", charge.Until)
	}
	for c := &charge; c != nil; c = c.After {
		for i, amount := range c.Amounts {
			if i > 0 && c.Amounts[i-1].Name >= amount.Name {
				tb.Errorf("%q is not after %q", amount.Name, c.Amounts[i-1].Name)
			}
			if canonical := evaluator.Canonical(amount.Name); canonical != amount.Name {
				tb.Errorf("%q has the canonical name %q", amount.Name, canonical)
			}
		}
		if c.After != nil && c.After.Class != c.Class {
			tb.Errorf("the class changes from %v to %v", c.Class, c.After.Class)
		}
	}
	if last := charge.At(charge.Until.Add(1)); last.After != nil {
		tb.Errorf("after its end the charge has another: %v", last)
	}
}

// FuzzNames asks for any name in any version.
func FuzzNames(f *testing.F) {
	for _, name := range []string{
		"cpu", "requests.cpu", "limits.memory", "hugepages-2Mi", "count/pods", "services", "count/widgets.example.com", "requests.example.com/gpu",
		"gold.storageclass.storage.k8s.io/requests.storage", "big.deviceclass.resource.k8s.io/devices", "requests.deviceclass.resource.kubernetes.io/big",
		"hugepages-big.deviceclass.resource.k8s.io/devices", "",
	} {
		f.Add(name, "v1.37.2")
		f.Add(name, "1.34+")
	}
	all := []schema.GroupResource{podKind, serviceKind, claimKind, deviceClaimKind, deployKind}
	f.Fuzz(func(t *testing.T, text, version string) {
		set := evaluator.NewSet(version, all)
		if rules := set.Rules(); !slices.Contains([]string{"1.34", "1.35", "1.36", "1.37"}, rules) {
			t.Errorf("version %q has the rules of %q", version, rules)
		}
		name := corev1.ResourceName(text)
		canonical := evaluator.Canonical(name)
		if again := evaluator.Canonical(canonical); again != canonical {
			t.Errorf("%q is %q, and that is %q", name, canonical, again)
		}
		kinds := set.Kinds(name)
		if others := set.Kinds(canonical); !slices.Equal(kinds, others) {
			t.Errorf("%q counts %v, but %q counts %v", name, kinds, canonical, others)
		}
		if len(set.Needs(name)) > 0 && len(kinds) == 0 {
			t.Errorf("nothing counts %q, but something is needed for it", name)
		}
	})
}
