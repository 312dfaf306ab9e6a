package main

import (
	"math"
	"runtime"
	"slices"
	"time"
)

// fastest runs each work over and over, in batches of about the same time that
// take turns, and returns the nanoseconds per run of each one's fastest batch:
// the one that other programs of the machine disturbed least.
func fastest(batches int, works ...func() error) ([]float64, error) {
	best := make([]float64, len(works))
	for i, work := range works { // warms up
		took, err := batch(work)
		if err != nil {
			return nil, err
		}
		best[i] = took
	}
	runtime.GC()
	for range batches - 1 {
		for i, work := range works {
			took, err := batch(work)
			if err != nil {
				return nil, err
			}
			best[i] = min(best[i], took)
		}
	}
	return best, nil
}

// batch runs work for a while and returns the nanoseconds per run. The clock is
// read seldom, where runs are short.
func batch(work func() error) (float64, error) {
	const lasts = 150 * time.Millisecond
	began := time.Now()
	for done, step := 0, 1; ; step *= 2 {
		for range step {
			if err := work(); err != nil {
				return 0, err
			}
		}
		done += step
		if took := time.Since(began); took >= lasts {
			return float64(took) / float64(done), nil
		}
	}
}

// quantile is the smallest of a sample that so large a part of it does not
// exceed.
func quantile(sample []time.Duration, part float64) time.Duration {
	sorted := slices.Sorted(slices.Values(sample))
	place := int(math.Ceil(part * float64(len(sorted))))
	return sorted[max(0, place-1)]
}

// heap is the bytes of all that is reachable.
func heap() float64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // what a first one finalizes, or keeps in pools, goes with a second
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc)
}
