// Package recorder records all versions of the objects by which the limit of a
// FleetQuota is divided among members, and proves from them that the promise was
// held: the limits in force never added up to more than the global limit.
//
// A [Recorder] watches; a [History] is what it has seen, as plain values;
// [History.Check] is the proof, and [History.Measure] says how well headroom
// followed demand. A watch that breaks is taken up where it was. Where the server
// does not know that version any more, because it was restarted, the versions
// between are read one by one from the history that etcd keeps; what cannot be
// read is a [Gap] of the History, and no proof.
package recorder

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// Options says what is recorded.
type Options struct {
	Namespace, Name string                       // of the FleetQuota
	Resource        corev1.ResourceName          // of its limit
	Hub             dynamic.Interface            // required
	Members         map[string]dynamic.Interface // required
	Recounts        bool                         // of the History
}

// Recorder records. Its methods may be called from many goroutines.
type Recorder struct {
	resource corev1.ResourceName
	streams  []*stream

	mu      sync.Mutex // guards all below
	history History
	pods    map[string]map[string]struct{} // member -> names of pods that count
}

// New makes a Recorder that has seen what there is now.
func New(ctx context.Context, o Options) (*Recorder, error) {
	r := &Recorder{
		resource: o.Resource,
		history:  History{Quotas: map[string][]Quota{}, Pods: map[string][]Pods{}, Moments: map[string][]Moment{}, Recounts: o.Recounts},
		pods:     map[string]map[string]struct{}{},
	}
	quotas, pods := corev1.SchemeGroupVersion.WithResource("resourcequotas"), corev1.SchemeGroupVersion.WithResource("pods")
	hub, one := v1alpha1.SchemeGroupVersion, "metadata.name="+o.Name
	r.streams = []*stream{
		{of: "FleetQuota", api: o.Hub.Resource(hub.WithResource("fleetquotas")).Namespace(o.Namespace), selector: one, note: r.noteHard},
		{
			of: "FleetGrant", api: o.Hub.Resource(hub.WithResource("fleetgrants")).Namespace(o.Namespace), selector: one,
			note: r.noteRecord, looked: r.noteMoment(""),
		},
	}
	for member, api := range o.Members {
		r.pods[member] = map[string]struct{}{}
		r.streams = append(r.streams, &stream{
			of: "ResourceQuota in " + member, api: api.Resource(quotas).Namespace(o.Namespace), selector: one,
			note: r.noteQuota(member), looked: r.noteMoment(member),
		})
		r.streams = append(r.streams, &stream{
			of: "pods in " + member, api: api.Resource(pods).Namespace(o.Namespace), note: r.notePod(member), restart: r.restartPods(member),
		})
	}
	for _, s := range r.streams {
		s.gap = r.noteGap
		if err := s.begin(ctx); err != nil {
			return nil, fmt.Errorf("begin to record %s: %w", s.of, err)
		}
	}
	return r, nil
}

// Run records until ctx ends.
func (r *Recorder) Run(ctx context.Context) {
	var group sync.WaitGroup
	for _, s := range r.streams {
		group.Go(func() { s.follow(ctx) })
		if s.looked != nil {
			group.Go(func() { s.look(ctx) })
		}
	}
	group.Wait()
}

// CaughtUp says whether all versions of now have been seen. All servers must be
// within reach.
func (r *Recorder) CaughtUp(ctx context.Context) error {
	for _, s := range r.streams {
		now, err := s.list(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("look at %s: %w", s.of, err)
		}
		for i := range now.Items {
			if version := versionOf(&now.Items[i]); s.seen() < version {
				return fmt.Errorf("%s: version %d has been seen, and the newest is %d", s.of, s.seen(), version)
			}
		}
	}
	return nil
}

// History is what was seen so far.
func (r *Recorder) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.history
	h.Hard, h.Records, h.Gaps = slices.Clone(h.Hard), slices.Clone(h.Records), slices.Clone(h.Gaps)
	h.Tries, h.Wants = slices.Clone(h.Tries), slices.Clone(h.Wants)
	h.Quotas, h.Pods, h.Moments = map[string][]Quota{}, map[string][]Pods{}, map[string][]Moment{}
	for member, quotas := range r.history.Quotas {
		h.Quotas[member] = slices.Clone(quotas)
	}
	for member, pods := range r.history.Pods {
		h.Pods[member] = slices.Clone(pods)
	}
	for cluster, moments := range r.history.Moments {
		h.Moments[cluster] = slices.Clone(moments)
	}
	return h
}

// Tried notes the answer to a creation.
func (r *Recorder) Tried(try Try) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Tries = append(r.history.Tries, try)
}

// Wanted notes what a member wants.
func (r *Recorder) Wanted(want Want) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Wants = append(r.history.Wants, want)
}

func (r *Recorder) noteGap(gap Gap) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Gaps = append(r.history.Gaps, gap)
}

func (r *Recorder) noteMoment(cluster string) func(Moment) {
	return func(m Moment) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.history.Moments[cluster] = append(r.history.Moments[cluster], m)
	}
}

// amount is that of the resource in a list.
func (r *Recorder) amount(list corev1.ResourceList) int64 {
	quantity, ok := list[r.resource]
	if !ok {
		return Absent
	}
	return quantity.Value()
}

// change is one version of an object.
type change struct {
	at     time.Time
	object *unstructured.Unstructured
	gone   bool
}

func (r *Recorder) noteHard(c change) error {
	var quota v1alpha1.FleetQuota
	if err := into(c.object, &quota); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Hard = append(r.history.Hard, Hard{At: c.at, Version: versionOf(c.object), Hard: r.amount(quota.Spec.Hard)})
	return nil
}

func (r *Recorder) noteRecord(c change) error {
	record := Record{At: c.at, Version: versionOf(c.object), Rows: map[string]Row{}}
	if !c.gone {
		var grant v1alpha1.FleetGrant
		if err := into(c.object, &grant); err != nil {
			return err
		}
		record.UID, record.Hard = string(grant.UID), r.amount(grant.Spec.Hard)
		for i := range grant.Spec.Members {
			row := &grant.Spec.Members[i]
			record.Rows[row.Cluster] = Row{
				Revision: row.Revision, State: string(row.State), Granted: r.amount(row.Granted), Target: r.amount(row.Target),
			}
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Records = append(r.history.Records, record)
	return nil
}

func (r *Recorder) noteQuota(member string) func(change) error {
	return func(c change) error {
		quota := Quota{At: c.at, Version: versionOf(c.object), Hard: Absent, Limit: Absent, Used: Absent}
		if !c.gone {
			var local corev1.ResourceQuota
			if err := into(c.object, &local); err != nil {
				return err
			}
			quota.Mark = local.Annotations[v1alpha1.AnnotationGrant]
			quota.Hard, quota.Limit, quota.Used = r.amount(local.Spec.Hard), r.amount(local.Status.Hard), r.amount(local.Status.Used)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.history.Quotas[member] = append(r.history.Quotas[member], quota)
		return nil
	}
}

// notePod counts as quota does: a pod that is marked as deleted, with no grace
// left, counts no more, though it is stored for some milliseconds.
func (r *Recorder) notePod(member string) func(change) error {
	return func(c change) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		if grace := c.object.GetDeletionGracePeriodSeconds(); c.gone || grace != nil && *grace == 0 {
			delete(r.pods[member], c.object.GetName())
		} else {
			r.pods[member][c.object.GetName()] = struct{}{}
		}
		r.history.Pods[member] = append(r.history.Pods[member], Pods{At: c.at, Version: versionOf(c.object), Count: int64(len(r.pods[member]))})
		return nil
	}
}

// restartPods begins anew after a gap: from one version until another nothing is
// known.
func (r *Recorder) restartPods(member string) func(after uint64, now *unstructured.UnstructuredList) {
	return func(after uint64, now *unstructured.UnstructuredList) {
		r.mu.Lock()
		defer r.mu.Unlock()
		clear(r.pods[member])
		for i := range now.Items {
			if grace := now.Items[i].GetDeletionGracePeriodSeconds(); grace == nil || *grace > 0 {
				r.pods[member][now.Items[i].GetName()] = struct{}{}
			}
		}
		at := time.Now()
		r.history.Pods[member] = append(
			r.history.Pods[member],
			Pods{At: at, Version: after + 1, Count: Absent},
			Pods{At: at, Version: number(now.GetResourceVersion()), Count: int64(len(r.pods[member]))},
		)
	}
}

func into(from *unstructured.Unstructured, to any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, to)
}

func versionOf(object metav1.Object) uint64 { return number(object.GetResourceVersion()) }

// number is a resourceVersion: a revision of etcd.
func number(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0 // it is empty
	}
	return n
}
