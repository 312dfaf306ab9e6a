package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
)

// options says how much to measure.
type options struct {
	short bool
	only  string // one group of figures; empty: all
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

// machine describes what the figures were measured on and with.
func machine(ctx context.Context) string {
	parts := []string{
		fmt.Sprintf("%d cores", runtime.GOMAXPROCS(0)), cpu(), runtime.GOOS + "/" + runtime.GOARCH, runtime.Version(),
		"Kubernetes " + kubernetesVersion(), "fleetquota " + revision(ctx),
	}
	return strings.Join(parts, ", ")
}

// cpu is the processor's name, where the system tells it.
func cpu() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown CPU"
	}
	for line := range strings.Lines(string(text)) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown CPU"
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

// revision is the commit of the checkout.
func revision(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "without a commit"
	}
	return strings.TrimSpace(string(out))
}
