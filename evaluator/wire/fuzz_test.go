package wire_test

import (
	"errors"
	"regexp"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/evaluator/wire"
)

var absurd = regexp.MustCompile(`[eE]-[0-9]{4,}`) // merely reading such a quantity takes minutes

// FuzzWireObject reads any bytes as an object of any kind: that is an error, or
// costs what the whole object costs, also when the charge is remembered.
func FuzzWireObject(f *testing.F) {
	for i, k := range kinds {
		for seed := range uint64(5) {
			obj := k.make()
			filler(seed).MaxDepth(8).Fill(obj)
			data, err := obj.Marshal()
			if err != nil {
				f.Fatal(err)
			}
			f.Add(uint8(i), uint8(seed), data)
		}
	}
	var sets []*evaluator.Set
	for _, version := range versions {
		sets = append(sets, setOf(version))
	}
	f.Fuzz(func(t *testing.T, which, version uint8, data []byte) {
		if absurd.Match(data) {
			return
		}
		k, set := kinds[int(which)%len(kinds)], sets[int(version)%len(sets)]
		if _, counted := set.For(k.GroupResource); !counted && !set.Special(k.GroupResource) {
			return
		}
		full := k.make()
		wrong := full.Unmarshal(data)
		reader := wire.NewCharges(0).Reader(k.GroupResource, set) // what is remembered would make each run another
		for range 2 {
			got, err := reader.Read(data)
			if err != nil {
				if !errors.Is(err, wire.ErrMalformed) {
					t.Fatal(err)
				}
				return
			}
			if wrong == nil {
				wantAsWhole(t, set, k.GroupResource, full, got)
			}
		}
	})
}

// FuzzWireBody decodes any bytes as the body of an answer and as an event of a
// watch.
func FuzzWireBody(f *testing.F) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "team"}}
	message, err := (&corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: []corev1.Pod{*pod}}).Marshal()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(append([]byte("k8s\x00"), append(field(1, field(1, []byte("v1")), field(2, []byte("PodList"))), field(2, message)...)...))
	f.Add(append([]byte("k8s\x00"), append(field(1, field(1, []byte("v1")), field(2, []byte("Status"))), field(2)...)...))
	f.Add(append(field(1, []byte("ADDED")), field(2, field(1, encoded(f, pod)))...))
	f.Add([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"}}`))
	serializer := wire.NewCharges(1<<20).Reader(corev1.Resource("pods"), setOf("v1.37.2")).Serializer(scheme.Codecs.WithoutConversion())
	f.Fuzz(func(t *testing.T, data []byte) {
		if absurd.Match(data) {
			return
		}
		for _, info := range serializer.SupportedMediaTypes() {
			obj, _, err := serializer.DecoderToVersion(info.Serializer, corev1.SchemeGroupVersion).Decode(data, nil, nil)
			if err != nil {
				continue
			}
			switch obj.(type) {
			case *wire.Object, *wire.List, *metav1.Status:
			default:
				t.Errorf("it decodes a %T", obj)
			}
		}
		var event metav1.WatchEvent
		for _, info := range serializer.SupportedMediaTypes() {
			if info.StreamSerializer != nil {
				info.StreamSerializer.Decode(data, nil, &event)
			}
		}
	})
}
