package main

import (
	"context"
	"fmt"
	"runtime"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// decoding measures reading a pod off a watch. Both sides use client-go's
// decoder, so that upstream's column is ours until we have one of our own.
func decoding(_ context.Context, o options) ([]row, error) {
	const sample = 100
	pods := make([]*corev1.Pod, sample)
	for i := range pods {
		pods[i] = pod(i)
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
	name := fmt.Sprintf("decode a pod of %s from the watch", bytes(float64(w.size)/sample))
	return []row{
		{name: name, ours: took, upstream: took, in: nanoseconds, target: within(6 * time.Microsecond)},
		{name: name + ", garbage", ours: garbage, upstream: garbage, in: bytes, target: atMost(4 * kilo)},
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
