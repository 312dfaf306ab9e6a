package main

import (
	"math"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// fastest runs each work over and over, in batches of about the same time that
// take turns, and returns the nanoseconds of CPU per run of each one's fastest
// batch: the one that other programs of the machine disturbed least. In a full
// measurement a batch is so long that what runs in it lets garbage be collected.
func fastest(o options, works ...func() error) ([]float64, error) {
	batches, lasts := pick(o, 4, 7), pick(o, 150*time.Millisecond, time.Second)
	best := make([]float64, len(works))
	for i, work := range works { // warms up
		took, err := batch(lasts, work)
		if err != nil {
			return nil, err
		}
		best[i] = took
	}
	runtime.GC()
	for range batches - 1 {
		for i, work := range works {
			took, err := batch(lasts, work)
			if err != nil {
				return nil, err
			}
			best[i] = min(best[i], took)
		}
	}
	return best, nil
}

// batch runs work for a while and returns the nanoseconds of CPU per run, those of
// collecting its garbage included: others that wait for the same cores do not make
// it more. The clock is read seldom, where runs are short.
func batch(lasts time.Duration, work func() error) (float64, error) {
	began, from := time.Now(), spent()
	for done, step := 0, 1; ; step *= 2 {
		for range step {
			if err := work(); err != nil {
				return 0, err
			}
		}
		done += step
		if time.Since(began) >= lasts {
			return float64(spent()-from) / float64(done), nil
		}
	}
}

// spent is the CPU time that this process has used.
func spent() time.Duration {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		panic(err) // it fails for no process's own use
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
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
