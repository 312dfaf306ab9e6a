// Command fleet runs a handful of real Kubernetes clusters on this machine:
//
//	fleet up                        starts hub, eu-1, us-1 and ap-1
//	fleet freeze eu-1               lets one of them hang
//	fleet kubeconfig us-1 >config   gives access to one
//	fleet down                      removes them all
//
// What it does is in the package fleet below; see there for its promises.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit status.
func run(args []string, out, errOut io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	cmd := newCommand(out, errOut)
	cmd.SetArgs(args)
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintf(errOut, "fleet: %v\n", err)
		return 1
	}
	return 0
}
