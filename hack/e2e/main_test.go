// The end-to-end tests run the hub as the process that users run, against real
// API servers: a hub, the member east with Kubernetes' own quota controller,
// the member west whose local status the hub always keeps, and the member
// south that nobody looks after.
//
// They share these clusters, each test in a namespace of its own. What breaks
// something has Fault in its name and a member or a scene of its own.
package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// world is a scene with its members registered and the hub's process running.
type world struct {
	*scene.Scene

	hub *scene.Process
}

// shared is the world of all tests that break nothing. TestMain makes it.
var shared *world

// widgets are a custom resource that all shared members serve.
var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

func TestMain(m *testing.M) {
	flag.Parse()
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run runs the tests in the shared world. Nearly all of their time they wait
// for something, so that many can run at once.
func run(m *testing.M) (code int, err error) {
	atOnce := false
	flag.Visit(func(f *flag.Flag) { atOnce = atOnce || f.Name == "test.parallel" })
	if !atOnce {
		if err := flag.Set("test.parallel", "16"); err != nil {
			return 1, err
		}
	}
	dir, err := os.MkdirTemp("", "fleetquota-e2e-")
	if err != nil {
		return 1, err
	}
	defer func() {
		if code != 0 {
			fmt.Fprintln(os.Stderr, "the logs of the hub are in", dir)
			return
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	const patience = 20 * time.Minute // the first time, Kubernetes is built
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	shared, err = newWorld(ctx, dir)
	if shared != nil {
		defer func() { err = errors.Join(err, shared.Close()) }()
	}
	if err != nil {
		return 1, err
	}
	code = m.Run()
	if err := noLeaks(ctx, shared); err != nil {
		return 1, err
	}
	if _, err := shared.hub.Stop(); err != nil {
		return 1, fmt.Errorf("stop the hub: %w", err)
	}
	return code, nil
}

func newWorld(ctx context.Context, dir string) (*world, error) {
	members := map[string]scene.Registration{
		"east":  {Labels: map[string]string{"shared": "true", "region": "east"}},
		"west":  {Labels: map[string]string{"shared": "true", "region": "west"}, LocalStatus: "Always"},
		"south": {Labels: map[string]string{"shared": "true", "region": "south"}},
	}
	s, err := scene.Start(ctx, scene.Options{
		Dir: dir, Bin: filepath.Join(dir, "bin"), Members: []string{"east", "west", "south"}, Owned: true, Out: os.Stderr,
	})
	if err != nil {
		return nil, err
	}
	w := &world{Scene: s}
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return s.BuildHub(groupCtx) })
	for name, registration := range members {
		group.Go(func() error {
			return errors.Join(prepare(groupCtx, s.Member(name)), s.Register(groupCtx, s.Member(name), registration))
		})
	}
	if err := group.Wait(); err != nil {
		return w, err
	}
	// Only now, so that it knows the custom resources from the start: of those that come later it has no number for long.
	if err := s.Member("east").StartNativeQuota(ctx); err != nil {
		return w, err
	}
	w.hub, err = s.StartHub(ctx)
	return w, err
}

// prepare installs what the tests count beyond Kubernetes' own kinds.
func prepare(ctx context.Context, member *scene.Cluster) error {
	return errors.Join(
		member.Apply(ctx, crd(widgets)),
		member.Create(ctx, "", priorityClass("gold", 1000), priorityClass("silver", 100),
			runtimeClass("sandbox", "cpu", "250m", "memory", "120Mi")),
		member.Allow(ctx, widgets.GroupResource()),
	)
}
