package main

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/hack/fleet/fleet"
)

// act once lets a member hang, as if its network were gone, so that one sees
// what becomes of its numbers.
func (d *demo) act(ctx context.Context, happening *news) {
	const (
		name   = "ap-1"
		before = 30 * time.Second // of ordinary life
		moment = 12 * time.Second // to look at what is stale
	)
	happening.announce("In half a minute " + name + " will be frozen, to show what happens to its numbers.")
	if !pause(ctx, before) {
		return
	}
	cluster := d.scene.Member(name)
	if info, err := cluster.Info(ctx); err != nil || info.Status != fleet.Running {
		happening.announce("") // somebody else is at it
		return
	}
	if err := cluster.Freeze(ctx); err != nil {
		happening.announce("The demo could not freeze " + name + ": " + err.Error())
		return
	}
	happening.announce(name + " is frozen: within 25 s its numbers are marked stale, and still count. The others go on.")
	d.await(ctx, name, v1alpha1.Stale)
	pause(ctx, moment)
	if err := cluster.Thaw(context.WithoutCancel(ctx)); err != nil {
		happening.announce("The demo could not thaw " + name + ": " + err.Error())
		return
	}
	happening.announce(name + " goes on again: soon its numbers are live.")
	if d.await(ctx, name, v1alpha1.Live) {
		happening.announce(name + " was frozen for a while and is live again. Freeze a member yourself: see below.")
	}
}

// await waits until a member is in a phase, but not for ever.
func (d *demo) await(ctx context.Context, name string, phase v1alpha1.Phase) bool {
	const (
		patience = 45 * time.Second
		every    = 500 * time.Millisecond
	)
	limit := time.Now().Add(patience)
	for time.Now().Before(limit) {
		member, err := d.scene.Hub.Quota.Members().Get(ctx, name, metav1.GetOptions{})
		if err == nil && member.Status.Phase == phase {
			return true
		}
		if !pause(ctx, every) {
			return false
		}
	}
	return false
}

// pause waits, and says whether ctx lasted as long.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
