// Command conformance compares what fleetquota and Kubernetes charge for the
// same objects, which it makes up.
//
// Each minor version of Kubernetes answers in a process of its own, built from
// v1.34 to v1.37 below: only there is code of Kubernetes itself. Package gen
// makes namespaces full of objects and quotas, package ours answers for
// fleetquota, package answer has the question and the form of an answer, and
// package check compares, shrinks what differs, and records answers.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/fleetquota/fleetquota/hack/conformance/check"
)

// The objects whose answers are recorded for versions that are not compared live.
const (
	recordedSeed    = 1
	recordedObjects = 50_000
)

func main() {
	versions := flag.String("versions", "1.34,1.35,1.36,1.37", "minor versions of Kubernetes")
	objects := flag.Int("objects", 1_000_000, "compare at least so many objects with each")
	seed := flag.Uint64("seed", 1, "which objects")
	record := flag.Bool("record", false, "record answers for the tests, in place of comparing")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	do := makeRecord
	if !*record {
		do = func(ctx context.Context, minor, folder string) error {
			return compare(ctx, minor, folder, *seed, *objects)
		}
	}
	if err := run(ctx, strings.Split(*versions, ","), do); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run does something with each version, in a folder that is removed again.
func run(ctx context.Context, versions []string, do func(ctx context.Context, minor, folder string) error) error {
	folder, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	for _, minor := range versions {
		if err := do(ctx, minor, folder); err != nil {
			return err
		}
	}
	return nil
}

func compare(ctx context.Context, minor, folder string, seed uint64, objects int) error {
	release, err := check.Release(minor)
	if err != nil {
		return err
	}
	fmt.Printf("Kubernetes %s: building its evaluators (usually half a minute; 5 minutes the first time), then comparing\n", release)
	began := time.Now()
	result, coverage, err := check.Live(ctx, minor, folder, seed, objects)
	if err != nil {
		return err
	}
	fmt.Printf("Kubernetes %s: %s: no difference (%v)\nStatements of its evaluators that have answered:\n%s\n",
		release, &result, time.Since(began).Round(time.Second), coverage)
	return nil
}

func makeRecord(ctx context.Context, minor, folder string) error {
	program, err := check.Build(ctx, minor, folder)
	if err != nil {
		return err
	}
	upstream, err := check.Start(ctx, program, folder)
	if err != nil {
		return err
	}
	made, err := check.Make(upstream, minor, recordedSeed, recordedObjects)
	if err != nil {
		return err
	}
	if err := upstream.Stop(); err != nil {
		return err
	}
	fmt.Printf("Kubernetes %s: recorded in %s\n", made.Kubernetes, check.RecordFile(minor))
	return made.Write(minor)
}
