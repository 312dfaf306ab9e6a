package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/evaluator/wire"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/hack/e2e/bench/figure"
	"github.com/fleetquota/fleetquota/hack/e2e/bench/sample"
)

// Each FleetQuota governs so many pods in each member.
const podsEach = 20

// global is what the hub keeps of many members and FleetQuotas, and what it does
// between a change and the body of the request that writes a status.
type global struct {
	ledger  *federation.Ledger
	members []string
	books   []*federation.Book // of the members, in their order
	quotas  cache.Indexer
	moved   string // the namespace that the last change has moved

	watch *watched[*wire.Object]
	taken int // changes
	bytes int // of the last body
}

// newGlobal makes members with pods in so many namespaces, each of which has a
// FleetQuota, all of them reported.
func newGlobal(members, quotas int) (*global, error) {
	g := &global{quotas: cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})}
	g.ledger = federation.NewLedger(func(m federation.Move) { g.moved = m.Namespace })
	reader := newReader()
	if err := g.fill(reader, members, quotas); err != nil {
		return nil, err
	}
	for i := range quotas {
		quota := &v1alpha1.FleetQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: team(i), Name: quotaName, Generation: 1},
			Spec:       v1alpha1.FleetQuotaSpec{Hard: tenKeys()},
		}
		if err := g.report(quota); err != nil {
			return nil, err
		}
	}
	var err error
	g.watch, err = newWatched[*wire.Object](changing(quotas), reader.Serializer(full()))
	return g, err
}

func team(i int) string { return fmt.Sprintf("team-%04d", i) }

// fill makes the members with their pods.
func (g *global) fill(reader *wire.Reader, members, quotas int) error {
	pods, err := charged(reader)
	if err != nil {
		return err
	}
	everywhere := func(yield func(federation.Object) bool) {
		for quota := range quotas {
			for _, pod := range pods {
				pod.Namespace = team(quota)
				if !yield(pod) {
					return
				}
			}
		}
	}
	empty := []schema.GroupResource{
		corev1.Resource("services"), corev1.Resource("persistentvolumeclaims"), {Group: "apps", Resource: "deployments"},
	}
	set := evaluator.NewSet(kubernetesVersion(), append(empty, podKind()))
	for i := range members {
		name := fmt.Sprintf("member-%03d", i)
		g.ledger.Mark(name, federation.Reach{Phase: v1alpha1.Live})
		book := g.ledger.Open(name, set, nil)
		for _, kind := range empty {
			book.Replace(kind, func(func(federation.Object) bool) {})
		}
		book.Replace(podKind(), everywhere)
		g.members, g.books = append(g.members, name), append(g.books, book)
	}
	return nil
}

// charged is the pods of one namespace, with what they cost.
func charged(reader *wire.Reader) (pods []federation.Object, err error) {
	for i := range podsEach {
		pod := sample.Pod(i)
		message, err := pod.Marshal()
		if err != nil {
			return nil, err
		}
		slim, err := reader.Read(message)
		if err != nil {
			return nil, err
		}
		charge, record, err := slim.Cost()
		if err != nil {
			return nil, err
		}
		pods = append(pods, federation.Object{Name: pod.Name, Created: slim.Created(), Charge: charge, Record: record})
	}
	return pods, nil
}

// changing is pods of namespaces all over, each of which is resized and then is as
// before: every event moves a sum, in whatever member.
func changing(quotas int) []*corev1.Pod {
	const changes = 100
	var events []*corev1.Pod
	for i := range changes {
		pod := sample.Pod(i % podsEach)
		pod.Namespace = team(i * max(1, quotas/changes) % quotas)
		events = append(events, resized(pod), pod)
	}
	return events
}

// take notes one event of a watch, and returns the FleetQuota that it touches.
func (g *global) take() (*v1alpha1.FleetQuota, error) {
	pod, err := g.watch.next()
	if err != nil {
		return nil, err
	}
	charge, record, err := pod.Cost()
	if err != nil {
		return nil, err
	}
	const pair = 2 // the pod that is resized is put back in the same member
	book := g.books[g.taken/pair%len(g.books)]
	g.taken++
	g.moved = ""
	book.Set(podKind(), federation.Object{
		Namespace: pod.Namespace, Name: pod.Name, Created: pod.Created(), Charge: charge.At(time.Now()), Record: record,
	})
	touched, err := g.quotas.ByIndex(cache.NamespaceIndex, g.moved)
	if err != nil {
		return nil, err
	}
	if g.moved != pod.Namespace || len(touched) != 1 {
		return nil, fmt.Errorf("a change in %s has moved %q, with %d quotas", pod.Namespace, g.moved, len(touched))
	}
	quota, ok := touched[0].(*v1alpha1.FleetQuota)
	if !ok {
		return nil, fmt.Errorf("a %T among the quotas", touched[0])
	}
	return quota, nil
}

// sum takes an event and asks for the new sum.
func (g *global) sum() error {
	quota, err := g.take()
	if err != nil {
		return err
	}
	_, err = g.usage(quota)
	return err
}

// change takes an event and reports.
func (g *global) change() error {
	quota, err := g.take()
	if err != nil {
		return err
	}
	return g.report(quota)
}

// usage is what a quota's status is made from.
func (g *global) usage(quota *v1alpha1.FleetQuota) (federation.Usage, error) {
	everything, err := evaluator.NewSelector(quota.Spec.Scopes, quota.Spec.ScopeSelector)
	if err != nil {
		return federation.Usage{}, err
	}
	keys := slices.Sorted(maps.Keys(quota.Spec.Hard))
	return g.ledger.Usage(federation.Question{Namespace: quota.Namespace, Resources: keys, Selector: everything}, g.members), nil
}

// report finds a quota's status and writes the body of the request, as the hub's
// reporter does.
func (g *global) report(quota *v1alpha1.FleetQuota) error {
	usage, err := g.usage(quota)
	if err != nil {
		return err
	}
	now := time.Now()
	status := federation.Report(quota, usage.Recall(quota.Status.Clusters, now), federation.Enforcement{}, now)
	if federation.Same(status, quota.Status) {
		return errors.New("a change has not changed the status")
	}
	update := quota.DeepCopy()
	update.Status = status
	body, err := json.Marshal(update)
	if err != nil {
		return err
	}
	g.bytes = len(body)
	return g.quotas.Update(update)
}

// manyQuotas measures what a change costs with 1,000 quotas, each of a namespace of
// its own: in one cluster beside upstream, and up to the status of many clusters.
func manyQuotas(ctx context.Context, o options) ([]figure.Row, error) {
	const members, many = 10, 1000
	status, err := reports(o, [][2]int{{members, 1}, {members, many}, {many, 1}})
	if err != nil || ctx.Err() != nil {
		return nil, errors.Join(err, ctx.Err())
	}
	alone, err := newGlobal(1, many)
	if err != nil {
		return nil, err
	}
	sum, err := fastest(o, alone.sum)
	if err != nil {
		return nil, err
	}
	progress("one change among %d namespaces of %d pods, upstream", many, podsEach)
	recount, err := recountOfMany(o, many)
	if err != nil {
		return nil, fmt.Errorf("upstream: %w", err)
	}
	const flat, ask, row = 1.5, 0.1, 600
	name := fmt.Sprintf("one pod change and its status, %d members, %d quotas", members, many)
	wide := fmt.Sprintf("status of %d members, the %d rows that matter most", many, federation.MaxRows)
	return []figure.Row{
		{
			Name: fmt.Sprintf("one pod change and a quota's new sum, %d quotas of %d pods each", many, podsEach),
			Ours: sum[0], Upstream: recount, In: figure.Nanoseconds, Target: figure.RatioAtMost(ask),
		},
		{Name: name, Ours: status[1].time, In: figure.Nanoseconds},
		{Name: name + " against 1", Ours: status[1].time / status[0].time, In: figure.Factor, Target: figure.AtMost(flat)},
		{Name: fmt.Sprintf("one pod change and its status, %d members, 1 quota", many), Ours: status[2].time, In: figure.Nanoseconds},
		{Name: wide, Ours: status[2].bytes, In: figure.Bytes, Target: figure.AtMost(row * federation.MaxRows)},
	}, nil
}

// reported is what a change and its status cost.
type reported struct {
	time  float64 // nanoseconds
	bytes float64 // of the body that is sent
}

// reports measures a change and its status with so many members and FleetQuotas,
// in turns.
func reports(o options, sizes [][2]int) ([]reported, error) {
	var hubs []*global
	var works []func() error
	for _, size := range sizes {
		progress("one change and its status, %d members and %d FleetQuotas", size[0], size[1])
		g, err := newGlobal(size[0], size[1])
		if err != nil {
			return nil, err
		}
		hubs, works = append(hubs, g), append(works, g.change)
	}
	times, err := fastest(o, works...)
	if err != nil {
		return nil, err
	}
	var results []reported
	for i, g := range hubs {
		results = append(results, reported{time: times[i], bytes: float64(g.bytes)})
	}
	return results, nil
}

// recountOfMany is what Kubernetes' quota controller does about one change where
// one cluster has many namespaces: it recounts one of them.
func recountOfMany(o options, namespaces int) (float64, error) {
	u := newUpstream()
	for namespace := range namespaces {
		for i := range podsEach {
			pod := sample.Pod(i)
			pod.Namespace = team(namespace)
			if err := u.set(pod); err != nil {
				return 0, err
			}
		}
	}
	w, err := newWatched[*corev1.Pod](changing(namespaces), full())
	if err != nil {
		return 0, err
	}
	times, err := fastest(o, func() error { return u.change(w) })
	if err != nil {
		return 0, err
	}
	return times[0], nil
}
