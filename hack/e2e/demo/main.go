// Command demo shows fleetquota at work on this machine: a hub, three member
// clusters with teams that use them, and the totals as they change.
//
//	demo up          until Ctrl-C; then nothing is left
//	demo down        stops a demo that runs, and removes what a crashed one left
//
// The clusters are real etcd and kube-apiserver processes, built when they are
// missing. All of them end with the demo, however that ends (on Linux).
//
// To read it: up in stage.go is the whole evening in order, table.go what is
// seen, churn.go and act.go what happens meanwhile.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

const usage = `Usage:
  demo up [--for DURATION]   start it, and show totals until Ctrl-C or for that long
  demo down                  stop it, and remove what it left

Its files are in bin/demo of the repository.
`

// Exit statuses besides 0.
const (
	exitError       = 1
	exitUsage       = 2
	exitInterrupted = 130
)

func main() {
	ctx, stop := interrupts(os.Stderr)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run returns the exit status.
func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	command, limit, err := parse(args)
	if err != nil {
		fmt.Fprintf(errOut, "demo: %v\n%s", err, usage)
		return exitUsage
	}
	root, err := findRoot()
	if err == nil {
		d := &demo{root: root, dir: filepath.Join(root, "bin", "demo"), out: out, limit: limit}
		err = command(d, ctx)
	}
	switch {
	case err == nil:
		return 0
	case errors.Is(context.Cause(ctx), errInterrupted):
		fmt.Fprintln(errOut, "demo: interrupted before it was up")
		return exitInterrupted
	default:
		fmt.Fprintf(errOut, "demo: %v\n", err)
		return exitError
	}
}

// parse reads the command line.
func parse(args []string) (command func(*demo, context.Context) error, limit time.Duration, err error) {
	if len(args) == 0 {
		return nil, 0, errors.New("up or down?")
	}
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	if args[0] == "up" {
		flags.DurationVar(&limit, "for", 0, "")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return nil, 0, err
	}
	switch {
	case flags.NArg() > 0:
		return nil, 0, fmt.Errorf("unknown argument %q", flags.Arg(0))
	case limit < 0:
		return nil, 0, fmt.Errorf("--for %s is negative", limit)
	case args[0] == "up":
		return (*demo).up, limit, nil
	case args[0] == "down":
		return (*demo).down, 0, nil
	default:
		return nil, 0, fmt.Errorf("unknown command %q", args[0])
	}
}

// errInterrupted is the cause of the end that a person or a parent asks for.
var errInterrupted = errors.New("interrupted")

// interrupts ends the context with the first signal, or when whoever started
// us is gone, and the process with the second signal.
func interrupts(errOut io.Writer) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	parent := os.Getppid()
	go func() {
		orphaned := time.NewTicker(time.Second)
		defer orphaned.Stop()
		for ctx.Err() == nil {
			select {
			case <-signals:
				fmt.Fprintln(errOut, "\nStopping. Ctrl-C again ends at once.")
				cancel(errInterrupted)
			case <-orphaned.C:
				if os.Getppid() != parent {
					cancel(errInterrupted)
				}
			}
		}
		<-signals
		fmt.Fprintln(errOut, "Ended at once. make demo-down removes what is left.")
		os.Exit(exitInterrupted)
	}()
	return ctx, func() { cancel(nil) }
}

// findRoot is the repository that holds the working directory.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "hack", "fleet", "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not inside a checkout of fleetquota")
		}
		dir = parent
	}
}
