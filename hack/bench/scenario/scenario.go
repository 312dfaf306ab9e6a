// Package scenario measures the hub with a synthetic fleet: a real API server as
// the hub, the hub's program as users run it, and members that are played by a
// process of its own, so that what the hub uses is the hub's alone.
//
// Every total that the hub reports is compared with what the fleet knows. A wrong
// one is an error, not a figure.
package scenario

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/hack/bench/process"
	"github.com/fleetquota/fleetquota/hack/bench/synthetic"
	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// Options says what a run is made of.
type Options struct {
	Members    int
	Pods       int           // in each member
	Namespaces int           // each with one FleetQuota; default DefaultNamespaces
	Plain      bool          // members are asked not to compress
	Rates      []int         // changes per second, one rate after the other
	Churn      time.Duration // how long each rate lasts; default 30s
	Rest       time.Duration // between the first right totals and what is called at rest; default 3m
	Patience   time.Duration // for the first right totals; default 5m
	Bin        string        // where programs are built; default a folder that is removed
	Out        io.Writer     // progress for people; default none
}

// DefaultNamespaces is how many namespaces there are where nothing is said.
const DefaultNamespaces = 10

func (o Options) complete() Options {
	const churn, rest, patience = 30 * time.Second, 3 * time.Minute, 5 * time.Minute
	if o.Namespaces == 0 {
		o.Namespaces = DefaultNamespaces
	}
	if o.Churn == 0 {
		o.Churn = churn
	}
	if o.Rest == 0 {
		o.Rest = rest
	}
	if o.Patience == 0 {
		o.Patience = patience
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	return o
}

// Result is what was measured. All of it is the hub's process alone, where it
// does not say otherwise.
type Result struct {
	Synced   time.Duration // from its start until all totals were right
	SyncCPU  time.Duration // that it used until then
	SyncPeak int64         // its largest RSS until then
	RSS      int64         // its RSS afterwards, at rest
	Peak     int64         // its largest RSS of all
	Fleet    synthetic.Stats
	Quotas   int // FleetQuotas
	Rates    []Rate
}

// Rate is what a rate of changes costs.
type Rate struct {
	Asked   int     // changes per second
	Made    float64 // that the fleet could make
	CPU     float64 // of one core
	Writes  float64 // of statuses, per second, all FleetQuotas together
	Busiest float64 // of them the most for one FleetQuota, from its first to its last
	Settled time.Duration
}

// run is a scenario under way.
type run struct {
	Options

	scene  *scene.Scene
	player *player
	hub    *scene.Process
	began  time.Time
}

// Run plays a scenario from its start to its end.
func Run(ctx context.Context, o Options) (result Result, err error) {
	dir, err := os.MkdirTemp("", "fleetquota-bench-")
	if err != nil {
		return result, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	r := &run{Options: o.complete()}
	if r.Bin == "" {
		r.Bin = filepath.Join(dir, "bin")
	}
	result.Quotas = r.Namespaces
	defer func() { err = errors.Join(err, r.close()) }() //nolint:contextcheck // it must work after ctx has ended
	if err := r.set(ctx, dir); err != nil {
		return result, err
	}
	if err := r.sync(ctx, &result); err != nil {
		return result, fmt.Errorf("wait for the first right totals: %w", err)
	}
	for _, perSecond := range o.Rates {
		rate, err := r.change(ctx, perSecond)
		if err != nil {
			return result, fmt.Errorf("change %d pods a second: %w", perSecond, err)
		}
		result.Rates = append(result.Rates, rate)
	}
	use, err := process.Of(r.hub.PID())
	if err != nil {
		return result, err
	}
	result.Peak = use.Peak
	result.Fleet, err = r.player.stats()
	return result, err
}

// set starts all but the hub's program.
func (r *run) set(ctx context.Context, dir string) (err error) {
	r.say("start a hub and %d members with %d pods each", r.Members, r.Pods)
	r.scene, err = scene.Start(ctx, scene.Options{Dir: filepath.Join(dir, "scene"), Bin: r.Bin, Out: r.Out, Owned: true})
	if err != nil {
		return err
	}
	if err := r.scene.BuildHub(ctx); err != nil {
		return err
	}
	if r.player, err = play(ctx, r.scene.Root, dir, r.Options); err != nil {
		return err
	}
	for i := range r.Namespaces {
		if err := r.makeQuota(ctx, fmt.Sprintf("team-%03d", i)); err != nil {
			return fmt.Errorf("make a FleetQuota: %w", err)
		}
	}
	for _, member := range r.player.members {
		if err := r.register(ctx, member); err != nil {
			return fmt.Errorf("register %s: %w", member.Name, err)
		}
	}
	return nil
}

const quotaName = "compute"

// keys are what each FleetQuota limits.
func keys() []corev1.ResourceName {
	return []corev1.ResourceName{"pods", "count/pods", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory"}
}

func (r *run) makeQuota(ctx context.Context, namespace string) error {
	if err := r.scene.Hub.CreateNamespace(ctx, namespace); err != nil {
		return err
	}
	hard := corev1.ResourceList{}
	for _, key := range keys() {
		const plenty = 1 << 50
		hard[key] = *resource.NewQuantity(plenty, resource.DecimalSI)
	}
	quota := &v1alpha1.FleetQuota{ObjectMeta: metav1.ObjectMeta{Name: quotaName}, Spec: v1alpha1.FleetQuotaSpec{Hard: hard}}
	_, err := r.scene.Hub.Quota.Quotas(namespace).Create(ctx, quota, metav1.CreateOptions{})
	return err
}

func (r *run) register(ctx context.Context, member synthetic.Address) error {
	kubeconfig, err := os.ReadFile(member.Kubeconfig)
	if err != nil {
		return err
	}
	if r.Plain {
		if kubeconfig, err = plain(kubeconfig); err != nil {
			return err
		}
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: member.Name, Labels: map[string]string{"fleetquota.io/member": "true"},
			Annotations: map[string]string{"fleetquota.io/local-status": string(v1alpha1.LocalNever)},
		},
		Data: map[string][]byte{"kubeconfig": kubeconfig},
	}
	_, err = r.scene.Hub.Kubernetes.CoreV1().Secrets(scene.Namespace).Create(ctx, secret, metav1.CreateOptions{})
	return err
}

// plain is a kubeconfig that asks for no compression.
func plain(kubeconfig []byte) ([]byte, error) {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		return nil, err
	}
	for _, cluster := range config.Clusters {
		cluster.DisableCompression = true
	}
	return clientcmd.Write(*config)
}

// sync starts the hub's program and waits until all totals are right, and then
// until it has come to rest.
func (r *run) sync(ctx context.Context, result *Result) (err error) {
	r.began = time.Now()
	if r.hub, err = r.scene.StartHub(ctx); err != nil {
		return err
	}
	if result.Synced, err = r.await(ctx, r.began); err != nil {
		return err
	}
	use, err := process.Of(r.hub.PID())
	if err != nil {
		return err
	}
	result.SyncCPU, result.SyncPeak = use.CPU, use.Peak
	r.say("all totals are right after %s; the hub used %s of CPU and %d MiB at most", result.Synced, use.CPU, use.Peak>>20)
	result.RSS, err = r.rest(ctx)
	return err
}

// rest is the RSS of the hub when it has had nothing to do for a while. A Go
// program that allocates nothing collects garbage every two minutes, and then
// takes some seconds to give memory back: before that it is as large as its peak.
func (r *run) rest(ctx context.Context) (int64, error) {
	const looks = 6
	var use process.Use
	for range looks {
		if err := pass(ctx, r.Rest/looks); err != nil {
			return 0, err
		}
		var err error
		if use, err = process.Of(r.hub.PID()); err != nil {
			return 0, err
		}
		r.say("at rest: %d MiB", use.RSS>>20)
	}
	return use.RSS, nil
}

// await waits until all totals are right, and says how long that took since a
// time. It looks seldom enough to cost next to nothing.
func (r *run) await(ctx context.Context, since time.Time) (time.Duration, error) {
	const every = 200 * time.Millisecond
	patience, cancel := context.WithTimeout(ctx, r.Patience)
	defer cancel()
	for {
		wrong := r.right(ctx)
		if wrong == nil {
			return time.Since(since), nil
		}
		if err := r.hub.Ended(); err != nil {
			return 0, errors.Join(err, wrong)
		}
		if err := pass(patience, every); err != nil {
			return 0, fmt.Errorf("%w: %w", err, wrong)
		}
	}
}

// right compares every total with the fleet's own.
func (r *run) right(ctx context.Context) error {
	quotas, err := r.scene.Hub.Quota.Quotas(metav1.NamespaceAll).List(ctx, metav1.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return err
	}
	truth, err := r.player.truth()
	if err != nil {
		return err
	}
	if len(quotas.Items) != len(truth) {
		return fmt.Errorf("%d FleetQuotas for %d namespaces", len(quotas.Items), len(truth))
	}
	for i := range quotas.Items {
		use := truth[quotas.Items[i].Namespace]
		if err := agrees(&quotas.Items[i], use.List()); err != nil {
			return err
		}
	}
	return nil
}

// agrees says whether a FleetQuota is complete and reports these numbers.
func agrees(quota *v1alpha1.FleetQuota, truth corev1.ResourceList) error {
	for i := range quota.Status.Conditions {
		c := &quota.Status.Conditions[i]
		if c.Type == v1alpha1.ConditionUsageComplete && c.Status != metav1.ConditionTrue {
			return fmt.Errorf("%s/%s is not complete: %s: %s", quota.Namespace, quota.Name, c.Reason, c.Message)
		}
	}
	for _, key := range keys() {
		used, known := quota.Status.Used[key]
		want := truth[key]
		if !known || used.Cmp(want) != 0 {
			return fmt.Errorf("%s/%s reports %s of %s, and it is %s", quota.Namespace, quota.Name, used.String(), key, want.String())
		}
	}
	return nil
}

// change lets the fleet churn, and measures what that costs the hub.
func (r *run) change(ctx context.Context, perSecond int) (rate Rate, err error) {
	r.say("change %d pods a second for %s", perSecond, r.Churn)
	before, made, err := r.look()
	if err != nil {
		return rate, err
	}
	began := time.Now()
	if err := r.player.churn(perSecond); err != nil {
		return rate, err
	}
	if err := pass(ctx, r.Churn); err != nil {
		return rate, err
	}
	if err := r.player.churn(0); err != nil {
		return rate, err
	}
	stopped := time.Now()
	after, all, err := r.look()
	if err != nil {
		return rate, err
	}
	lasted := stopped.Sub(began).Seconds()
	rate = Rate{Asked: perSecond, Made: float64(all-made) / lasted, CPU: (after.CPU - before.CPU).Seconds() / lasted}
	if rate.Settled, err = r.await(ctx, stopped); err != nil {
		return rate, err
	}
	writes, err := r.scene.Hub.Writes(began, func(w scene.Write) bool {
		return w.User == scene.HubUser && w.Resource == "fleetquotas/status" && w.At.Before(stopped)
	})
	rate.Writes, rate.Busiest = float64(len(writes))/lasted, busiest(writes)
	return rate, err
}

// busiest is how often per second the FleetQuota that was written most often was.
// They have one name, each in a namespace of its own.
func busiest(writes []scene.Write) float64 {
	times := map[string][]time.Time{} // namespace ->
	for _, w := range writes {
		times[w.Namespace] = append(times[w.Namespace], w.At)
	}
	most := 0.0
	for _, of := range times {
		if last := len(of) - 1; last > 0 {
			most = max(most, float64(last)/of[last].Sub(of[0]).Seconds())
		}
	}
	return most
}

// look is what the hub uses, and how many changes the fleet has made.
func (r *run) look() (hub process.Use, changes int64, err error) {
	stats, err := r.player.stats()
	if err != nil {
		return hub, 0, err
	}
	hub, err = process.Of(r.hub.PID())
	return hub, stats.Changes, err
}

// close ends everything, in the order in which it is used.
func (r *run) close() error {
	var errs []error
	if r.hub != nil && r.hub.Ended() == nil {
		_, err := r.hub.Stop()
		errs = append(errs, err)
	}
	if r.player != nil {
		errs = append(errs, r.player.close())
	}
	if r.scene != nil {
		errs = append(errs, r.scene.Close())
	}
	return errors.Join(errs...)
}

func (r *run) say(format string, args ...any) { fmt.Fprintf(r.Out, "bench: "+format+"\n", args...) }

// pass waits.
func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
