package wire_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/randfill"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/evaluator/wire"
)

// message is an object of the API as it is sent.
type message interface {
	runtime.Object
	Marshal() ([]byte, error)
	Unmarshal(data []byte) error
}

type kind struct {
	schema.GroupResource

	make func() message
}

var kinds = []kind{
	{corev1.Resource("pods"), func() message { return &corev1.Pod{} }},
	{corev1.Resource("services"), func() message { return &corev1.Service{} }},
	{corev1.Resource("persistentvolumeclaims"), func() message { return &corev1.PersistentVolumeClaim{} }},
	{resourcev1.Resource("resourceclaims"), func() message { return &resourcev1.ResourceClaim{} }},
	{resourcev1.Resource("deviceclasses"), func() message { return &resourcev1.DeviceClass{} }},
}

var versions = []string{"v1.34.4", "v1.35.4", "v1.36.3", "v1.37.2"}

func setOf(version string) *evaluator.Set {
	served := make([]schema.GroupResource, len(kinds))
	for i, k := range kinds {
		served[i] = k.GroupResource
	}
	return evaluator.NewSet(version, served)
}

func encoded(tb testing.TB, obj message) []byte {
	tb.Helper()
	data, err := obj.Marshal()
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

// pick draws one of the values.
func pick[T any](c randfill.Continue, from ...T) T { return from[c.Intn(len(from))] }

// filler fills objects of the API with what a server could send, and often with
// what an evaluator looks for.
func filler(seed uint64) *randfill.Filler {
	source := rand.New(rand.NewPCG(seed, 7))
	resources := []corev1.ResourceName{
		"cpu", "memory", "ephemeral-storage", "storage", "hugepages-2Mi", "example.com/gpu", "deviceclass.resource.kubernetes.io/big",
		"kubernetes.io/batch", "weird",
	}
	return randfill.NewWithSeed(int64(source.Uint64())).NilChance(0.4).NumElements(0, 3).MaxDepth(14).Funcs(
		func(q *resource.Quantity, c randfill.Continue) {
			*q = resource.MustParse(pick(c, "0", "1", "100m", "1.5", "64Mi", "1e3", "7Ei", "1000E", "-1", "123456789123456789123", "1n"))
		},
		func(l *corev1.ResourceList, c randfill.Continue) {
			if c.Intn(4) == 0 {
				return
			}
			*l = corev1.ResourceList{}
			for range c.Intn(4) {
				var q resource.Quantity
				c.Fill(&q)
				(*l)[pick(c, resources...)] = q
			}
		},
		func(t *metav1.Time, c randfill.Continue) { *t = metav1.Unix(int64(c.Int31()), 0) },
		func(t *metav1.MicroTime, _ randfill.Continue) { *t = metav1.MicroTime{} },
		func(f *metav1.FieldsV1, _ randfill.Continue) { *f = *metav1.NewFieldsV1(`{"f:spec":{}}`) },
		func(r *runtime.RawExtension, _ randfill.Continue) { r.Raw = []byte(`{"a":1}`) },
		func(s *string, c randfill.Continue) {
			*s = pick(c, "", "a", "b", "gold", "Infeasible", "v1", "Pod", "é", c.String(20))
		},
		func(p *corev1.PodPhase, c randfill.Continue) {
			*p = pick(c, "", corev1.PodRunning, corev1.PodRunning, corev1.PodFailed, corev1.PodSucceeded)
		},
		func(q *corev1.PodQOSClass, c randfill.Continue) {
			*q = pick(c, "", "", corev1.PodQOSBestEffort, corev1.PodQOSBurstable)
		},
		func(t *corev1.PodConditionType, c randfill.Continue) {
			*t = pick(c, corev1.PodReady, corev1.PodResizePending)
		},
		func(p *corev1.ContainerRestartPolicy, c randfill.Continue) {
			*p = pick(c, corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyNever)
		},
		func(t *corev1.ServiceType, c randfill.Continue) {
			*t = pick(c, "", corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer)
		},
		func(m *resourcev1.DeviceAllocationMode, c randfill.Continue) {
			*m = pick(c, "", resourcev1.DeviceAllocationModeAll, resourcev1.DeviceAllocationModeExactCount)
		},
		func(m *metav1.ObjectMeta, c randfill.Continue) {
			c.FillNoCustom(m)
			m.Name, m.Namespace = fmt.Sprintf("n%d", c.Intn(1000)), fmt.Sprintf("ns%d", c.Intn(10))
			if c.Intn(4) != 0 {
				m.DeletionTimestamp = nil
			}
			for _, key := range []string{
				corev1.BetaStorageClassAnnotation, resourcev1.ExtendedResourceClaimAnnotation, metav1.InitialEventsAnnotationKey,
			} {
				if c.Intn(4) == 0 {
					m.Annotations = map[string]string{key: pick(c, "true", "gold", ""), "other": "x"}
				}
			}
		},
	)
}

// sameCharge says whether two charges are alike, now and later.
func sameCharge(a, b *evaluator.Charge) bool {
	if a == nil || b == nil {
		return a == b
	}
	same := func(a, b evaluator.Amount) bool { return a.Name == b.Name && a.Quantity.Cmp(b.Quantity) == 0 }
	return slices.EqualFunc(a.Amounts, b.Amounts, same) && a.Class == b.Class && a.Until.Equal(b.Until) && sameCharge(a.After, b.After)
}

// wantAsWhole checks that an object that was read from its message is what the
// evaluator finds in the whole object.
func wantAsWhole(tb testing.TB, set *evaluator.Set, k schema.GroupResource, full message, got *wire.Object) bool {
	tb.Helper()
	record, err := set.Record(k, full)
	if err != nil {
		tb.Fatal(err)
	}
	var charge evaluator.Charge
	if e, served := set.For(k); served {
		if charge, err = e.Charge(full, time.Time{}); err != nil {
			tb.Fatal(err)
		}
	}
	gotCharge, gotRecord, err := got.Cost()
	if err != nil {
		tb.Fatal(err)
	}
	fine := true
	if !sameCharge(&charge, &gotCharge) {
		tb.Errorf("%s by %s: the charge differs from the whole object's:\n%s", k, set.Rules(), cmp.Diff(charge, gotCharge))
		fine = false
	}
	if !record.Equal(gotRecord) {
		tb.Errorf("%s by %s: the record is %v, the whole object's %v", k, set.Rules(), gotRecord, record)
		fine = false
	}
	accessor, err := meta.Accessor(full)
	if err != nil {
		tb.Fatal(err)
	}
	want := []any{accessor.GetNamespace(), accessor.GetName(), accessor.GetResourceVersion(), accessor.GetCreationTimestamp().Time}
	if have := []any{got.Namespace, got.Name, got.Version, got.Created()}; !reflect.DeepEqual(have, want) {
		tb.Errorf("%s is %v, want %v", k, have, want)
		fine = false
	}
	ends := accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
	if (got.GetObjectMeta().GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true") != ends {
		tb.Errorf("%s ends the initial events: want %t", k, ends)
		fine = false
	}
	return fine
}
