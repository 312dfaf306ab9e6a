package figure

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Machine describes what figures were measured on and with, the version of
// Kubernetes included.
func Machine(kubernetes string) string {
	parts := []string{
		fmt.Sprintf("%d cores", runtime.GOMAXPROCS(0)), cpu(), runtime.GOOS + "/" + runtime.GOARCH, runtime.Version(), "Kubernetes " + kubernetes,
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

// revision is the commit of the checkout.
func revision(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, "git", "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		return "without a commit"
	}
	return strings.TrimSpace(string(out))
}
