package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/hack/e2e/bench/figure"
	"github.com/fleetquota/fleetquota/hack/e2e/bench/sample"
	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// The members. In native Kubernetes' own quota controller keeps the status of
// local quotas, in the others ours does.
const (
	native    = "native"
	quotaName = "compute"
)

func memberNames() []string { return []string{native, "east", "west"} }

// onRealClusters measures the hub as users run it, on real API servers.
func onRealClusters(ctx context.Context, o options) (rows []figure.Row, err error) {
	dir, err := os.MkdirTemp("", "fleetquota-bench-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	progress("start a hub and %d members: half a minute once Kubernetes is built, and 10 minutes before", len(memberNames()))
	s, err := scene.Start(ctx, scene.Options{Dir: dir, Members: memberNames(), Native: []string{native}, Out: os.Stderr, Owned: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }() //nolint:contextcheck // it must work after ctx has ended
	hub, err := s.StartHub(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		_, stopped := hub.Stop()
		err = errors.Join(err, stopped)
	}()
	f := &fleet{scene: s, pods: pick(o, 300, 15_000)}
	if err := f.furnish(ctx); err != nil {
		return nil, err
	}
	for _, measure := range []func(context.Context, options) ([]figure.Row, error){f.latency, f.statusSize, f.idleWrites, f.burst} {
		more, err := measure(ctx, o)
		if err != nil {
			return rows, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// fleet is a hub and its members, with pods in them and quotas over those.
type fleet struct {
	scene *scene.Scene
	pods  int // in all members together
}

// furnish makes the pods, the quotas and the registrations, and waits until all
// numbers are right.
func (f *fleet) furnish(ctx context.Context) error {
	progress("make %d pods", f.pods)
	if err := inEach(f.members(), func(m *scene.Cluster) error { return f.furnishMember(ctx, m) }); err != nil {
		return err
	}
	if err := makeNamespace(ctx, f.scene.Hub); err != nil {
		return err
	}
	quota := &v1alpha1.FleetQuota{ObjectMeta: metav1.ObjectMeta{Name: quotaName}, Spec: v1alpha1.FleetQuotaSpec{Hard: tenKeys()}}
	if _, err := f.scene.Hub.Quota.Quotas(namespace).Create(ctx, quota, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("make the FleetQuota: %w", err)
	}
	const patience, rest = time.Minute, 3 * time.Second
	if err := scene.Eventually(ctx, patience, f.settled); err != nil {
		return fmt.Errorf("wait for the first right numbers: %w", err)
	}
	return pass(ctx, rest)
}

// members are the members in the order of their places.
func (f *fleet) members() (all []*scene.Cluster) {
	for _, name := range memberNames() {
		all = append(all, f.scene.Member(name))
	}
	return all
}

func (f *fleet) furnishMember(ctx context.Context, member *scene.Cluster) error {
	if err := makeNamespace(ctx, member); err != nil {
		return err
	}
	if err := f.makePods(ctx, member); err != nil {
		return err
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: quotaName}, Spec: corev1.ResourceQuotaSpec{Hard: tenKeys()}}
	if _, err := member.Kubernetes.CoreV1().ResourceQuotas(namespace).Create(ctx, quota, metav1.CreateOptions{}); err != nil {
		return err
	}
	mode := v1alpha1.LocalAlways
	if member.Name() == native {
		mode = v1alpha1.LocalNever
	}
	return f.scene.Register(ctx, member, scene.Registration{LocalStatus: string(mode)})
}

func makeNamespace(ctx context.Context, c *scene.Cluster) error {
	object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	_, err := c.Kubernetes.CoreV1().Namespaces().Create(ctx, object, metav1.CreateOptions{})
	return err
}

// makePods makes the member's share of the pods: every third one, from its
// place on.
func (f *fleet) makePods(ctx context.Context, member *scene.Cluster) error {
	place := slices.Index(memberNames(), member.Name())
	return eachPod(place, f.pods, len(memberNames()), func(i int) error {
		_, err := member.Kubernetes.CoreV1().Pods(namespace).Create(ctx, sample.New(i), metav1.CreateOptions{})
		return err
	})
}

// eachPod does something with the pods of these numbers, four at a time.
func eachPod(from, to, step int, do func(i int) error) error {
	const workers = 4
	numbers := make(chan int)
	errs := make([]error, workers)
	var group sync.WaitGroup
	for worker := range workers {
		group.Go(func() {
			for i := range numbers {
				if errs[worker] == nil {
					errs[worker] = do(i)
				}
			}
		})
	}
	for i := from; i < to; i += step {
		numbers <- i
	}
	close(numbers)
	group.Wait()
	return errors.Join(errs...)
}

// share is how many pods the member at a place has at first.
func (f *fleet) share(place int) int64 {
	members := len(memberNames())
	return int64((f.pods - place + members - 1) / members)
}

// settled says whether the hub and all members report every pod.
func (f *fleet) settled(ctx context.Context) error {
	quota, err := f.scene.Hub.Quota.Quotas(namespace).Get(ctx, quotaName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if used := podsOf(quota.Status.Used); used != int64(f.pods) || len(quota.Status.Used) != len(tenKeys()) {
		return fmt.Errorf("the FleetQuota reports %d pods of %d: %+v", used, f.pods, quota.Status)
	}
	for place, member := range f.members() {
		quota, err := member.Kubernetes.CoreV1().ResourceQuotas(namespace).Get(ctx, quotaName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if used := podsOf(quota.Status.Used); used != f.share(place) {
			return fmt.Errorf("the ResourceQuota in %s reports %d pods of %d", member.Name(), used, f.share(place))
		}
	}
	return nil
}

// podsOf is how many pods a list reports; -1 when it does not say.
func podsOf(used corev1.ResourceList) int64 { return amountOf(used, corev1.ResourcePods) }

// amountOf is how much of something a list reports; -1 when it does not say.
func amountOf(used corev1.ResourceList, key corev1.ResourceName) int64 {
	amount, known := used[key]
	if !known {
		return -1
	}
	return amount.Value()
}

// tenKeys is a limit on ten things that nothing here reaches.
func tenKeys() corev1.ResourceList {
	hard := corev1.ResourceList{}
	for _, key := range append(podKeys(), "services", "persistentvolumeclaims", "requests.storage", "count/deployments.apps") {
		const plenty = 1 << 50
		hard[key] = *resource.NewQuantity(plenty, resource.DecimalSI)
	}
	return hard
}
