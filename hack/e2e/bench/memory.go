package main

import (
	"context"
	"errors"
	"fmt"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	apiruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetquota/fleetquota/hack/e2e/bench/figure"
)

// memoryPerPod measures what is kept of each pod that is watched, the charges
// that are remembered included, among three numbers of pods and from one to the
// next.
func memoryPerPod(_ context.Context, o options) ([]figure.Row, error) {
	const most = 200
	sizes := pick(o, []int{5_000, 20_000, 50_000}, []int{10_000, 50_000, 200_000})
	var rows []figure.Row
	var before float64
	for i, n := range sizes {
		took, err := keptByOurs(n)
		if err != nil {
			return nil, err
		}
		rows = append(rows, figure.Row{Name: fmt.Sprintf("memory per watched pod, of %d", n), Ours: took / float64(n), In: figure.Bytes, Target: figure.AtMost(most)})
		if i > 0 {
			more := (took - before) / float64(n-sizes[i-1])
			rows = append(rows, figure.Row{Name: fmt.Sprintf("memory per pod more, from %d to %d", sizes[i-1], n), Ours: more, In: figure.Bytes, Target: figure.AtMost(most)})
		}
		before = took
	}
	n := pick(o, 20_000, 50_000)
	took, err := keptByUpstream(n)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		rows[i].Upstream = took / float64(n)
	}
	return rows, nil
}

// keptByOurs is the bytes that n pods take in all that we keep.
func keptByOurs(n int) (float64, error) {
	progress("memory of %d pods, ours", n)
	u := newOurs()
	before := heap()
	reader := newReader()
	_, err := kept(n, reader.Serializer(full()), u.set)
	took := heap() - before
	if err != nil {
		return 0, err
	}
	used := u.used()
	if pods := used[corev1.ResourcePods]; pods.Cmp(*resource.NewQuantity(int64(n), resource.DecimalSI)) != 0 {
		return 0, errors.New("our book does not hold all pods: two have one name")
	}
	runtime.KeepAlive(u)
	runtime.KeepAlive(reader)
	return took, nil
}

// keptByUpstream is the bytes that n pods take in the cache of Kubernetes' quota
// controller.
func keptByUpstream(n int) (float64, error) {
	progress("memory of %d pods, upstream", n)
	u := newUpstream()
	took, err := kept(n, full(), u.set)
	if err != nil {
		return 0, err
	}
	if len(u.store.ListKeys()) != n {
		return 0, errors.New("upstream's cache does not hold all pods")
	}
	return took, nil
}

// kept is the bytes that taking n pods leaves.
func kept[T apiruntime.Object](n int, serializer apiruntime.NegotiatedSerializer, set func(T) error) (float64, error) {
	before := heap()
	err := fill(n, serializer, set)
	return heap() - before, err
}
