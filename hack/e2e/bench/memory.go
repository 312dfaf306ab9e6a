package main

import (
	"context"
	"errors"
	"runtime"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetquota/fleetquota/hack/e2e/bench/figure"
)

// memoryPerPod measures what is kept of each pod that is watched.
func memoryPerPod(context.Context, options) ([]figure.Row, error) {
	const n, most = 50_000, 200
	progress("memory of %d pods", n)
	u, err := newOurs()
	if err != nil {
		return nil, err
	}
	keptByOurs, err := kept(n, u.set)
	if err != nil {
		return nil, err
	}
	used := u.used()
	if pods := used[corev1.ResourcePods]; pods.Cmp(*resource.NewQuantity(n, resource.DecimalSI)) != 0 {
		return nil, errors.New("our book does not hold all pods: two have one name")
	}
	runtime.KeepAlive(u)

	other := newUpstream()
	keptByUpstream, err := kept(n, other.set)
	if err != nil {
		return nil, err
	}
	if len(other.store.ListKeys()) != n {
		return nil, errors.New("upstream's cache does not hold all pods")
	}
	return []figure.Row{{Name: "memory per watched pod", Ours: keptByOurs, Upstream: keptByUpstream, In: figure.Bytes, Target: figure.AtMost(most)}}, nil
}

// kept is the bytes per pod that taking n pods leaves.
func kept(n int, set func(*corev1.Pod) error) (float64, error) {
	before := heap()
	err := fill(n, set)
	return (heap() - before) / float64(n), err
}
