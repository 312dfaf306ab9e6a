package main

import (
	"testing"
	"time"
)

func TestQuantiles(t *testing.T) {
	sample := []time.Duration{5, 1, 4, 2, 3}
	for q, want := range map[float64]time.Duration{0: 1, 0.5: 3, 0.99: 5, 1: 5} {
		if got := quantile(sample, q); got != want {
			t.Errorf("quantile %v = %d, want %d", q, got, want)
		}
	}
}
