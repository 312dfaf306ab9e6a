// Command kubectl-fleetquota shows global quotas and the clusters that share
// them, and registers clusters at the hub. On the PATH it is a plugin of
// kubectl (kubectl fleetquota); it also runs alone.
//
// It reads the API of fleetquota at the hub and keeps nothing of its own. What
// the hub does not know is printed as unknown, never as zero. Tokens are never
// printed. One command, usage, reads files, and asks the hub only when it is to
// say whether they fit.
//
// Reading order: root.go, get.go, amount.go, describe.go, clusters.go, join.go,
// usage.go, against.go.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// version is set by the build: -ldflags "-X main.version=v1.2.3".
var version string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args, shell{
		IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr},
		now:       time.Now,
		patience:  tokenPatience,
	})
	stop()
	os.Exit(code)
}
