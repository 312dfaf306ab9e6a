package federation_test

import (
	"math"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetquota/fleetquota/federation"
)

func TestEqual(t *testing.T) {
	cases := map[string]struct {
		a, b corev1.ResourceList
		want bool
	}{
		"values, not texts":       {list("cpu", "1", "memory", "1Gi"), list("memory", "1073741824", "cpu", "1000m"), true},
		"nil is empty":            {nil, list(), true},
		"absent is not zero":      {list("cpu", "0"), list(), false},
		"other names, same count": {list("cpu", "1"), list("pods", "1"), false},
		"other values":            {list("cpu", "1"), list("cpu", "1001m"), false},
		"beyond 64 bits":          {list("cpu", "20000000000000000000"), list("cpu", "20E"), true},
		"beyond all reckoning":    {list("cpu", "1"), list("cpu", "1e999999999"), false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := federation.Equal(c.a, c.b); got != c.want {
				t.Errorf("%v and %v: %v", c.a, c.b, got)
			}
		})
	}
}

func TestPercent(t *testing.T) {
	cases := map[string]struct {
		used, hard string
		want       int64
		known      bool
	}{
		"half":                       {"5", "10", 50, true},
		"rounded down":               {"9999999999", "10000000000", 99, true},
		"all":                        {"1000m", "1", 100, true},
		"more than all":              {"3", "2", 150, true},
		"nothing":                    {"0", "2", 0, true},
		"a limit of 0 has none":      {"1", "0", 0, false},
		"unknown use has none":       {"", "1", 0, false},
		"no limit has none":          {"1", "", 0, false},
		"the smallest amounts":       {"1n", "3n", 33, true},
		"units do not matter":        {"512Mi", "1Gi", 50, true},
		"beyond 64 bits":             {"15E", "100E", 15, true},
		"most of the largest memory": {"7Ei", "7Ei", 100, true},
		"of an absurd limit":         {"1", "1e999999999", 0, true},
		"too much to say":            {"9E", "1n", math.MaxInt64, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			used, hard := list(), list()
			if c.used != "" {
				used = list("x", c.used)
			}
			if c.hard != "" {
				hard = list("x", c.hard)
			}
			got, known := federation.Percent(used, hard, "x")
			if got != c.want || known != c.known {
				t.Errorf("%d, %v; want %d, %v", got, known, c.want, c.known)
			}
		})
	}
}
