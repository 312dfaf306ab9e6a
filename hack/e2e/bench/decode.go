package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetquota/fleetquota/hack/e2e/bench/figure"
	"github.com/fleetquota/fleetquota/hack/e2e/bench/sample"
)

// decoding measures reading a pod off a watch. Both sides use client-go's
// decoder, so that upstream's column is ours until we have one of our own.
func decoding(_ context.Context, o options) ([]figure.Row, error) {
	const different = 100
	pods := make([]*corev1.Pod, different)
	for i := range pods {
		pods[i] = sample.Pod(i)
	}
	w, err := newWire(pods)
	if err != nil {
		return nil, err
	}
	work := func() error {
		_, err := w.next()
		return err
	}
	times, err := fastest(pick(o, 5, 15), work)
	if err != nil {
		return nil, err
	}
	garbage, err := allocated(work)
	if err != nil {
		return nil, err
	}
	took := times[0]
	const kilo = 1000
	name := fmt.Sprintf("decode a pod of %s from the watch", figure.Bytes(float64(w.size)/different))
	return []figure.Row{
		{Name: name, Ours: took, Upstream: took, In: figure.Nanoseconds, Target: figure.Within(6 * time.Microsecond)},
		{Name: name + ", garbage", Ours: garbage, Upstream: garbage, In: figure.Bytes, Target: figure.AtMost(4 * kilo)},
	}, nil
}

// allocated is the bytes that one run of work allocates.
func allocated(work func() error) (float64, error) {
	const runs = 5000
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		if err := work(); err != nil {
			return 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / runs, nil
}
