package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/fleetquota/fleetquota/evaluator/wire"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/hack/e2e/bench/figure"
	"github.com/fleetquota/fleetquota/hack/e2e/bench/sample"
)

// costs is what one change of a pod costs in a namespace of some size, in
// nanoseconds.
type costs struct {
	pods     int
	change   float64 // decode the pod, charge it, note it
	note     float64 // of it the ledger
	ask      float64 // add up what a quota uses
	upstream float64 // decode the pod, cache it, recount the namespace
}

// costOfChange measures how much work the change of one pod is.
func costOfChange(ctx context.Context, o options) ([]figure.Row, error) {
	all := []costs{{pods: 100}, {pods: 10_000}, {pods: 50_000}}
	if err := measureOurs(all, o); err != nil {
		return nil, fmt.Errorf("ours: %w", err)
	}
	for i := range all {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		progress("one change among %d pods, upstream", all[i].pods)
		if err := all[i].measureUpstream(o); err != nil {
			return nil, fmt.Errorf("upstream, among %d pods: %w", all[i].pods, err)
		}
	}
	return costRows(all), nil
}

func costRows(all []costs) []figure.Row {
	const ledger, flat, ask = 2 * time.Microsecond, 1.5, 0.01
	var rows []figure.Row
	for _, c := range all {
		rows = append(rows, figure.Row{
			Name: fmt.Sprintf("one pod change, decode included, %d pods", c.pods),
			Ours: c.change, Upstream: c.upstream, In: figure.Nanoseconds, Target: figure.Within(10 * time.Microsecond),
		})
	}
	few, many := all[0], all[len(all)-1]
	rows = append(rows, figure.Row{
		Name: fmt.Sprintf("one pod change, %d pods against %d", many.pods, few.pods),
		Ours: many.change / few.change, Upstream: many.upstream / few.upstream, In: figure.Factor, Target: figure.AtMost(flat),
	})
	for _, c := range []costs{few, many} {
		rows = append(rows, figure.Row{
			Name: fmt.Sprintf("of it the ledger alone, %d pods", c.pods), Ours: c.note, In: figure.Nanoseconds, Target: figure.Within(ledger),
		})
	}
	return append(rows, figure.Row{
		Name: fmt.Sprintf("one pod change and a quota's new sum, %d pods", many.pods),
		Ours: many.change + many.ask, Upstream: many.upstream, In: figure.Nanoseconds, Target: figure.RatioAtMost(ask),
	})
}

// measureOurs measures all sizes in turns, so that what disturbs one disturbs
// the others too.
func measureOurs(all []costs, o options) error {
	var changing, noting, asking []func() error
	for _, c := range all {
		progress("one change among %d pods, ours", c.pods)
		u := newOurs()
		serializer := newReader().Serializer(full())
		if err := fill(c.pods, serializer, u.set); err != nil {
			return err
		}
		w, err := changes[*wire.Object](c.pods, serializer)
		if err != nil {
			return err
		}
		note, err := notes(c.pods, u)
		if err != nil {
			return err
		}
		changing = append(changing, func() error { return u.change(w) })
		noting = append(noting, note)
		asking = append(asking, u.ask)
	}
	times, err := fastest(o, slices.Concat(changing, noting, asking)...)
	if err != nil {
		return err
	}
	for i := range all {
		all[i].change, all[i].note, all[i].ask = times[i], times[len(all)+i], times[2*len(all)+i]
	}
	return nil
}

// change takes one event of a watch.
func (u *ours) change(w *watched[*wire.Object]) error {
	pod, err := w.next()
	if err != nil {
		return err
	}
	return u.set(pod)
}

// ask asks for a quota's sum.
func (u *ours) ask() error {
	if used := u.used(); len(used) != len(podKeys()) {
		return fmt.Errorf("the sum lacks keys: %v", used)
	}
	return nil
}

// measureUpstream measures one size, with upstream's cache alone in memory.
func (c *costs) measureUpstream(o options) error {
	u := newUpstream()
	if err := fill(c.pods, full(), u.set); err != nil {
		return err
	}
	w, err := changes[*corev1.Pod](c.pods, full())
	if err != nil {
		return err
	}
	times, err := fastest(o, func() error { return u.change(w) })
	if err != nil {
		return err
	}
	c.upstream = times[0]
	return nil
}

// change takes one event of a watch and recounts.
func (u *upstream) change(w *watched[*corev1.Pod]) error {
	pod, err := w.next()
	if err != nil {
		return err
	}
	if err := u.set(pod); err != nil {
		return err
	}
	_, err = u.used(pod.Namespace)
	return err
}

// changes is a watch on which 100 of n pods are resized, and back, and so on:
// each event moves the sums, and no pod is of the kind that costs little to
// charge.
func changes[T runtime.Object](n int, serializer runtime.NegotiatedSerializer) (*watched[T], error) {
	const changing = 100
	var before, after []*corev1.Pod
	for i := range changing {
		p := sample.Pod(i * n / changing)
		before, after = append(before, p), append(after, resized(p))
	}
	return newWatched[T](append(after, before...), serializer)
}

// resized is the pod with more of everything in its first container.
func resized(p *corev1.Pod) *corev1.Pod {
	const milliCPU, memory = 750, 1 << 30
	after := p.DeepCopy()
	after.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: sample.Amounts(milliCPU, memory), Limits: sample.Amounts(milliCPU, memory)}
	return after
}

// notes is work that notes the same changes for all n pods in random order,
// with charges that are at hand as a reader gives them.
func notes(n int, u *ours) (func() error, error) {
	states := [2][]federation.Object{make([]federation.Object, n), make([]federation.Object, n)}
	reader := newReader()
	order := rand.New(rand.NewPCG(1, 2)).Perm(n) //nolint:gosec // the same order in each run
	for place, i := range order {
		before := sample.Pod(i)
		for state, p := range []*corev1.Pod{resized(before), before} {
			message, err := p.Marshal()
			if err != nil {
				return nil, err
			}
			slim, err := reader.Read(message)
			if err != nil {
				return nil, err
			}
			charge, _, err := slim.Cost()
			if err != nil {
				return nil, err
			}
			states[state][place] = federation.Object{Namespace: p.Namespace, Name: p.Name, Charge: charge}
		}
	}
	at, state := 0, 0
	return func() error {
		u.book.Set(podKind(), states[state][at])
		if at++; at == n {
			at, state = 0, 1-state
		}
		return nil
	}, nil
}
