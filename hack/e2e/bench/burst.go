package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/hack/e2e/bench/figure"
	"github.com/fleetquota/fleetquota/hack/e2e/bench/sample"
	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// Pods of bursts have numbers of their own.
const firstOfBurst = 1_000_000

// burst counts how often statuses are written while pods are deleted fast, in a
// member where Kubernetes' own controller keeps the local quota and in one where
// ours does. What admission writes is nobody's answer, and is left out; and it
// writes nothing when a pod is deleted.
func (f *fleet) burst(ctx context.Context, o options) ([]figure.Row, error) {
	const perSecond, ours = 40, "east"
	lasts := pick(o, 5*time.Second, 15*time.Second)
	pods := int(lasts.Seconds()) * perSecond
	progress("delete %d pods a second in two members, for %s", perSecond, lasts)
	members := []*scene.Cluster{f.scene.Member(native), f.scene.Member(ours)}
	if err := inEach(members, func(m *scene.Cluster) error { return makeBurst(ctx, m, pods) }); err != nil {
		return nil, fmt.Errorf("make the pods of a burst: %w", err)
	}
	const rest = 3 * time.Second
	if err := pass(ctx, rest); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := inEach(members, func(m *scene.Cluster) error { return deleteBurst(ctx, m, pods, time.Second/perSecond) }); err != nil {
		return nil, fmt.Errorf("delete the pods of a burst: %w", err)
	}
	took := time.Since(began)
	global, err := writes(f.scene.Hub, "fleetquotas/status", began, took)
	if err != nil {
		return nil, err
	}
	var local [2]float64 // of the members
	for i, member := range members {
		if local[i], err = writes(member, "resourcequotas/status", began, took); err != nil {
			return nil, err
		}
	}
	name := fmt.Sprintf("status writes, %d pods/s deleted in a member: ", perSecond)
	return []figure.Row{
		{Name: name + "FleetQuota", Ours: global, In: figure.PerSecond, Target: figure.AtMost(1)},
		{Name: name + "ResourceQuota", Ours: local[1], Upstream: local[0], In: figure.PerSecond},
	}, nil
}

// inEach does something in all members at once. Errors name the member.
func inEach(members []*scene.Cluster, do func(*scene.Cluster) error) error {
	errs := make([]error, len(members))
	var group sync.WaitGroup
	for i, member := range members {
		group.Go(func() {
			if err := do(member); err != nil {
				errs[i] = fmt.Errorf("member %s: %w", member.Name(), err)
			}
		})
	}
	group.Wait()
	return errors.Join(errs...)
}

func makeBurst(ctx context.Context, member *scene.Cluster, pods int) error {
	return eachPod(firstOfBurst, firstOfBurst+pods, 1, func(i int) error {
		_, err := member.Kubernetes.CoreV1().Pods(namespace).Create(ctx, sample.New(i), metav1.CreateOptions{})
		return err
	})
}

// deleteBurst deletes one pod after the other, at a pace that does not depend on
// how long each takes.
func deleteBurst(ctx context.Context, member *scene.Cluster, pods int, every time.Duration) error {
	began := time.Now()
	return eachPod(0, pods, 1, func(i int) error {
		if err := pass(ctx, time.Until(began.Add(time.Duration(i)*every))); err != nil {
			return err
		}
		return member.Kubernetes.CoreV1().Pods(namespace).Delete(ctx, sample.New(firstOfBurst+i).Name, *metav1.NewDeleteOptions(0))
	})
}

// writes is how often per second controllers have written a status in a time, from
// the first of these writes to the last.
func writes(server *scene.Cluster, resource string, began time.Time, took time.Duration) (float64, error) {
	const admission, fewest = "system:apiserver", 2
	all, err := server.Writes(began, func(w scene.Write) bool {
		return w.Resource == resource && w.User != admission && w.At.Before(began.Add(took))
	})
	if err != nil {
		return 0, err
	}
	if len(all) < fewest {
		return 0, fmt.Errorf("%d writes of %s to %s in %s", len(all), resource, server.Name(), took)
	}
	last := len(all) - 1
	return float64(last) / all[last].At.Sub(all[0].At).Seconds(), nil
}
