package wire_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/evaluator/wire"
)

// Each field of an object is changed by itself. If one that decides were not cut
// out, the charge that is remembered of another object would be found.
func TestNoFieldThatDecidesIsLeftOut(t *testing.T) {
	for _, k := range kinds[:3] {
		changed := 0
		for seed := range uint64(2) {
			base := k.make()
			rich(base, seed)
			changed += mutateAll(t, k, base)
		}
		t.Logf("%s: %d changes of one field change the charge", k, changed)
		if changed < 8 {
			t.Errorf("%s: only %d changes of a field changed the charge", k, changed)
		}
	}
}

// rich makes an object with something in every field.
func rich(obj message, seed uint64) {
	filler(seed).NilChance(0).NumElements(1, 1).Fill(obj)
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return
	}
	pod.DeletionTimestamp = nil
	pod.Spec.EphemeralContainers, pod.Spec.Volumes = pod.Spec.EphemeralContainers[:0], pod.Spec.Volumes[:0]
	for _, containers := range []*[]corev1.Container{&pod.Spec.Containers, &pod.Spec.InitContainers} {
		more := (*containers)[0].DeepCopy()
		more.Env, more.Lifecycle, more.StartupProbe, more.LivenessProbe, more.ReadinessProbe = nil, nil, nil, nil, nil
		*containers = []corev1.Container{*more.DeepCopy(), *more}
	}
	pod.Status.Phase, pod.Status.QOSClass = corev1.PodRunning, ""
	pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
		RequiredDuringSchedulingIgnoredDuringExecution:  []corev1.PodAffinityTerm{{TopologyKey: "x"}},
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 1}},
	}, PodAntiAffinity: &corev1.PodAntiAffinity{}}
	name := func(i int) string { return fmt.Sprint("c", i) }
	for i := range pod.Spec.Containers {
		pod.Spec.Containers[i].Name = name(i)
	}
	for i := range pod.Spec.InitContainers {
		pod.Spec.InitContainers[i].Name = name(10 + i)
	}
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].Name = name(i)
	}
	for i := range pod.Status.InitContainerStatuses {
		pod.Status.InitContainerStatuses[i].Name = name(10 + i)
	}
	if seed%2 == 0 {
		pod.Spec.Resources, pod.Status.Conditions = nil, nil
	}
}

// mutateAll changes each field of the object and back, and compares each time.
// It counts the changes that change a charge.
func mutateAll(t *testing.T, k kind, base message) int {
	t.Helper()
	charges := wire.NewCharges(0)
	var sets []*evaluator.Set
	var readers []*wire.Reader
	for _, version := range versions {
		sets = append(sets, setOf(version))
		readers = append(readers, charges.Reader(k.GroupResource, sets[len(sets)-1]))
	}
	compare := func() string {
		data, full := encoded(t, base), k.make()
		if err := full.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		var costs strings.Builder
		for i, set := range sets {
			got, err := readers[i].Read(data)
			if err != nil {
				t.Fatal(err)
			}
			if !wantAsWhole(t, set, k.GroupResource, full, got) {
				t.Fatalf("of %v", full)
			}
			charge, _, _ := got.Cost()
			fmt.Fprint(&costs, charge.Class, charge.Until)
			for _, amount := range charge.Amounts {
				fmt.Fprint(&costs, amount.Name, amount.Quantity.AsDec())
			}
		}
		return costs.String()
	}
	before, changed := compare(), 0
	eachField(reflect.ValueOf(base).Elem(), func() {
		if compare() != before {
			changed++
		}
	})
	return changed
}

// eachField calls changed after each change of one field below a value.
func eachField(v reflect.Value, changed func()) {
	try := func(to reflect.Value) {
		was := reflect.New(v.Type()).Elem()
		was.Set(v)
		v.Set(to)
		changed()
		v.Set(was)
	}
	switch q := v.Interface().(type) {
	case resource.Quantity:
		for _, text := range []string{"0", "3", "5000E", "-2"} {
			try(reflect.ValueOf(resource.MustParse(text)))
		}
		return
	case corev1.ResourceList:
		for _, name := range []corev1.ResourceName{"cpu", "memory", "storage", "example.com/gpu", "hugepages-1Gi"} {
			more := q.DeepCopy()
			if more == nil {
				more = corev1.ResourceList{}
			}
			more[name] = resource.MustParse("7000E")
			try(reflect.ValueOf(more))
		}
		try(reflect.Zero(v.Type()))
		return
	}
	eachPlain(v, try, changed)
}

func eachPlain(v reflect.Value, try func(reflect.Value), changed func()) {
	switch v.Kind() { //nolint:exhaustive // no message has others
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Tag.Get("protobuf") != "" {
				eachField(v.Field(i), changed)
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			eachField(v.Elem(), changed)
		}
		try(reflect.Zero(v.Type()))
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		for i := range v.Len() {
			eachField(v.Index(i), changed)
		}
		try(reflect.Zero(v.Type()))
		try(reflect.Append(v, reflect.Zero(v.Type().Elem())))
	case reflect.Map:
		try(reflect.Zero(v.Type()))
	case reflect.String:
		texts := []string{"", "c0", corev1.PodReasonInfeasible}
		if v.Type() != reflect.TypeFor[string]() {
			texts = []string{
				"", "z", string(corev1.PodFailed), string(corev1.PodQOSBestEffort), string(corev1.PodResizePending),
				string(corev1.ContainerRestartPolicyAlways), string(corev1.ServiceTypeLoadBalancer), string(corev1.ServiceTypeNodePort),
			}
		}
		for _, text := range texts {
			try(reflect.ValueOf(text).Convert(v.Type()))
		}
	case reflect.Bool:
		try(reflect.ValueOf(!v.Bool()).Convert(v.Type()))
	case reflect.Int32, reflect.Int64:
		for _, n := range []int64{-1, 0, 1} {
			try(reflect.ValueOf(n).Convert(v.Type()))
		}
	}
}
