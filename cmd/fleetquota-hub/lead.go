package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"

	"github.com/fleetquota/fleetquota/controller"
)

// lead serves health and metrics, and runs the controller while this process
// leads. It returns when ctx ends, when something fails, or when the lead is
// lost: a process that has led does not wait to lead again, it starts anew.
func (o *options) lead(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	logger.Info("Starting", "version", version, "hub", o.controller.Hub.Host, "namespace", o.controller.Namespace)
	state := &state{}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return serve(ctx, "health probes", o.health, health(state)) })
	group.Go(func() error { return serve(ctx, "metrics", o.metrics, metrics()) })
	group.Go(func() error {
		defer state.ended.Store(true)
		if !o.leaderElect {
			return o.control(ctx, state)
		}
		return o.elect(ctx, state)
	})
	err := group.Wait()
	if errors.Is(err, errStopped) {
		err = nil
	}
	logger.Info("Stopped")
	return err
}

// errStopped ends the group when the controller has ended because it was asked
// to.
var errStopped = errors.New("stopped")

// state is what the probes ask.
type state struct {
	leading, ended atomic.Bool
	standby        atomic.Bool
}

func (o *options) control(ctx context.Context, state *state) error {
	state.leading.Store(true)
	if err := controller.Run(ctx, o.controller); err != nil {
		return err
	}
	return errStopped
}

// elect runs the controller while this process holds the lease. The lease only
// keeps two processes from doing the same work; nothing rests on it for
// correctness.
func (o *options) elect(ctx context.Context, state *state) error {
	lock, err := o.lock()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	result := make(chan error, 1)
	state.standby.Store(true)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, ReleaseOnCancel: true, Name: "fleetquota-hub",
		LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				result <- o.control(ctx, state)
				cancel()
			},
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("elect a leader: %w", err)
	}
	stopped := ctx.Done()
	elector.Run(ctx)
	if !state.leading.Load() {
		return errStopped
	}
	select {
	case <-stopped:
		return <-result
	default:
		return errors.Join(errors.New("the lease was lost: another process may lead now"), <-result)
	}
}

func (o *options) lock() (resourcelock.Interface, error) {
	config := rest.CopyConfig(o.controller.Hub)
	config.Timeout = 3 * time.Second // also bounds how long giving the lease back can take
	api, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the hub: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("find a name for this process: %w", err)
	}
	identity := fmt.Sprintf("%s_%d", host, os.Getpid())
	return resourcelock.New(resourcelock.LeasesResourceLock, o.controller.Namespace, "fleetquota-hub",
		api.CoreV1(), api.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity})
}
