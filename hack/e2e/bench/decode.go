package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetquota/fleetquota/evaluator/wire"
	"github.com/fleetquota/fleetquota/hack/e2e/bench/figure"
	"github.com/fleetquota/fleetquota/hack/e2e/bench/sample"
)

// decoding measures reading a pod off a watch: ours finds out what it costs
// meanwhile, and upstream's does not.
func decoding(_ context.Context, o options) ([]figure.Row, error) {
	const different = 100
	pods := make([]*corev1.Pod, different)
	for i := range pods {
		pods[i] = sample.Pod(i)
	}
	slim, err := newWatched[*wire.Object](pods, newReader().Serializer(full()))
	if err != nil {
		return nil, err
	}
	whole, err := newWatched[*corev1.Pod](pods, full())
	if err != nil {
		return nil, err
	}
	works := []func() error{
		func() error { _, err := slim.next(); return err },
		func() error { _, err := whole.next(); return err },
	}
	times, err := fastest(o, works...)
	if err != nil {
		return nil, err
	}
	var garbage [2]float64
	for i, work := range works {
		if garbage[i], err = allocated(work); err != nil {
			return nil, err
		}
	}
	const kilo = 1000
	name := fmt.Sprintf("decode a pod of %s from the watch", figure.Bytes.Text(float64(whole.size)/different))
	return []figure.Row{
		{Name: name, Ours: times[0], Upstream: times[1], In: figure.Nanoseconds, Target: figure.Within(6 * time.Microsecond)},
		{Name: name + ", garbage", Ours: garbage[0], Upstream: garbage[1], In: figure.Bytes, Target: figure.AtMost(4 * kilo)},
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
