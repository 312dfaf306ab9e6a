package main

import (
	"fmt"
	"os"
	"runtime/debug"

	"github.com/fleetquota/fleetquota/hack/e2e/bench/figure"
)

// options says how much to measure.
type options struct {
	short bool
	only  string // one group of figures; empty: all

	rows     string // file that keeps the figures; empty: print them
	growth   string // folder for curves; empty: measure figures
	output   figure.Output
	profiles figure.Profiles
}

// pick is how much of something a short run does, or a full one.
func pick[T any](o options, short, full T) T {
	if o.short {
		return short
	}
	return full
}

// progress tells people what takes long.
func progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}

// kubernetesVersion is that of the upstream code in this program, which is also
// that of the newest clusters of hack/fleet.
func kubernetesVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, module := range info.Deps {
		if module.Path == "k8s.io/kubernetes" {
			return module.Version
		}
	}
	return "unknown"
}
