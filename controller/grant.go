package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/fleetquota/fleetquota/clusters"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// begin makes the record. If there was one before, any member that has ever had a
// row in any record may hold anything.
func (f *enforcer) begin(ctx context.Context, quota *v1alpha1.FleetQuota) error {
	now, err := f.hub.fleet.Quotas(quota.Namespace).Get(ctx, quota.Name, metav1.GetOptions{}) // the cache may be behind
	if err != nil {
		return fmt.Errorf("read FleetQuota %s/%s: %w", quota.Namespace, quota.Name, err)
	}
	grant := &v1alpha1.FleetGrant{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: quota.Namespace, Name: quota.Name, Finalizers: []string{v1alpha1.GrantFinalizer},
			OwnerReferences: []metav1.OwnerReference{ownedBy(quota)},
		},
		Spec: v1alpha1.FleetGrantSpec{Hard: federation.Governed(quota.Spec.Hard), WhenRemoved: quota.Spec.Distribution.WhenRemoved},
	}
	if now.UID != quota.UID {
		return nil // it was made anew, and the cache will say so
	}
	if now.Status.GrantUID != "" {
		klog.FromContext(ctx).Info("The record of grants was lost: nothing is raised until all who may hold one have confirmed", "quota", klog.KObj(now))
		if grant.Spec.Members, err = f.hub.roster.holders(ctx); err != nil {
			return err
		}
	}
	_, err = f.hub.fleet.Grants(quota.Namespace).Create(ctx, grant, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("create FleetGrant %s/%s: %w", quota.Namespace, quota.Name, err)
	}
	return nil
}

func ownedBy(quota *v1alpha1.FleetQuota) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: "FleetQuota", Name: quota.Name, UID: quota.UID,
	}
}

// record writes the record, on the version that was read. It fails with a conflict
// if that has changed.
func (t *task) record(ctx context.Context, spec v1alpha1.FleetGrantSpec) error {
	if equality.Semantic.DeepEqual(spec, t.grant.Spec) {
		return nil
	}
	if err := t.check(spec); err != nil {
		return err
	}
	before := federation.Record{Spec: t.grant.Spec}
	for i := range spec.Members {
		if cluster := spec.Members[i].Cluster; before.Row(cluster) == nil {
			if err := t.hub.roster.hold(ctx, cluster); err != nil {
				return err
			}
		}
	}
	update := t.grant.DeepCopy()
	update.Spec = spec
	if t.quota != nil {
		update.OwnerReferences = []metav1.OwnerReference{ownedBy(t.quota)}
		if update.DeletionTimestamp == nil && !slices.Contains(update.Finalizers, v1alpha1.GrantFinalizer) {
			update.Finalizers = append(update.Finalizers, v1alpha1.GrantFinalizer)
		}
	}
	now, err := t.hub.fleet.Grants(t.key.Namespace).Update(ctx, update, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("write FleetGrant %s: %w", t.key, err)
	}
	after := federation.Record{Spec: spec}
	for i := range t.grant.Spec.Members {
		if cluster := t.grant.Spec.Members[i].Cluster; after.Row(cluster) == nil {
			t.hub.roster.queue.Add(cluster) // it may be free to leave
		}
	}
	bound(now)
	t.grant = now
	return nil
}

// check refuses a record that breaks the promise, whatever has made it.
func (t *task) check(spec v1alpha1.FleetGrantSpec) error {
	if t.quota == nil || t.quota.Spec.Distribution.Mode == v1alpha1.Shared {
		return nil // there is no promise
	}
	if err := (federation.Record{Spec: spec}).Check(); err != nil {
		t.hub.metrics.violations.Inc()
		return fmt.Errorf("refuse to write FleetGrant %s: %w", t.key, err)
	}
	return nil
}

// end deletes the record of what is divided no more, once it is empty.
func (t *task) end(ctx context.Context) error {
	if t.quota != nil || len(t.grant.Spec.Members) > 0 {
		return nil
	}
	api := t.hub.fleet.Grants(t.key.Namespace)
	uid, version := t.grant.UID, t.grant.ResourceVersion
	if t.grant.DeletionTimestamp == nil {
		err := api.Delete(ctx, t.key.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version}})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete FleetGrant %s: %w", t.key, err)
		}
		return nil // the rest follows once that is seen
	}
	update := t.grant.DeepCopy()
	update.Finalizers = slices.DeleteFunc(update.Finalizers, func(name string) bool { return name == v1alpha1.GrantFinalizer })
	_, err := api.Update(ctx, update, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("release FleetGrant %s: %w", t.key, err)
	}
	return nil
}

// fanOut is how many members are read or written at one time for one FleetQuota.
const fanOut = 32

// read reads the quotas of members from the members themselves. Who gives no
// answer is left out, and left alone for a while.
func (t *task) read(ctx context.Context, clusters []string) map[string]localQuota {
	found := map[string]localQuota{}
	var mu sync.Mutex // guards found
	t.each(ctx, clusters, func(ctx context.Context, cluster string) error {
		q, err := t.members[cluster].read(ctx, t.key)
		if err == nil && q.noNamespace && t.quota != nil && t.quota.Spec.Distribution.CreateNamespaces {
			q.noNamespace, err = false, t.members[cluster].makeNamespace(ctx, t.key.Namespace)
		}
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		found[cluster] = q
		return nil
	})
	return found
}

// send sends what the record allows. Who was read, and has taken what there was to
// send, has done all that it was asked.
func (t *task) send(ctx context.Context, writes []federation.Write, read map[string]localQuota) {
	byCluster := map[string]federation.Write{}
	var clusters []string
	for _, w := range writes {
		byCluster[w.Cluster] = w
		clusters = append(clusters, w.Cluster)
	}
	failed := t.each(ctx, clusters, func(ctx context.Context, cluster string) error {
		err := t.members[cluster].send(ctx, t.key, byCluster[cluster], read[cluster], t.quota)
		if errors.Is(err, errOvertaken) {
			t.queue.AddAfter(t.key, gather)
			return nil
		}
		return err
	})
	for cluster := range read {
		if !failed[cluster] {
			t.done(cluster)
		}
	}
}

// each does something with each of some members that can be written to, side by
// side. Where it fails it is logged, and the member is left alone for a while.
func (t *task) each(ctx context.Context, clusters []string, do func(context.Context, string) error) (failed map[string]bool) {
	failed = map[string]bool{}
	var mu sync.Mutex // guards failed
	var group errgroup.Group
	group.SetLimit(fanOut)
	for _, cluster := range clusters {
		if t.members[cluster] == nil {
			continue
		}
		group.Go(func() error {
			within, cancel := context.WithTimeout(ctx, answerWithin)
			defer cancel()
			err := do(within, cluster)
			if err == nil {
				return nil
			}
			t.failed(cluster, err)
			mu.Lock()
			failed[cluster] = true
			mu.Unlock()
			if ctx.Err() == nil {
				klog.FromContext(ctx).Info("Cannot bring a share to a member, will try again", "quota", t.key, "member", cluster, "err", err)
			}
			return nil
		})
	}
	group.Wait() //nolint:errcheck,gosec // none is returned
	return failed
}

// hold marks a FleetMember before it gets its first row: it cannot vanish while it
// holds a grant, and is known to have had one if the record is lost.
func (r *roster) hold(ctx context.Context, cluster string) error {
	have, err := r.hub.fleet.Members().Get(ctx, cluster, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read FleetMember %s: %w", cluster, err)
	}
	if have.DeletionTimestamp != nil {
		return fmt.Errorf("FleetMember %s is being deleted: it gets no share", cluster)
	}
	if slices.Contains(have.Finalizers, v1alpha1.MemberFinalizer) {
		return nil
	}
	have.Finalizers = append(have.Finalizers, v1alpha1.MemberFinalizer)
	if _, err := r.hub.fleet.Members().Update(ctx, have, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil {
		return fmt.Errorf("hold FleetMember %s: %w", cluster, err)
	}
	return nil
}

// holders are rows for the members that may hold a grant, connected or not.
func (r *roster) holders(ctx context.Context) ([]v1alpha1.Grant, error) {
	members, err := r.hub.fleet.Members().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list FleetMembers: %w", err)
	}
	var rows []v1alpha1.Grant
	for i := range members.Items {
		if slices.Contains(members.Items[i].Finalizers, v1alpha1.MemberFinalizer) {
			rows = append(rows, v1alpha1.Grant{Cluster: members.Items[i].Name, State: v1alpha1.Recovering})
		}
	}
	return rows, nil
}

// fenced are the members of which a person has said that they can use nothing.
func (r *roster) fenced() []string {
	var names []string
	for _, member := range r.informer.in("") {
		if member.Annotations[v1alpha1.AnnotationFenced] == marked {
			names = append(names, member.Name)
		}
	}
	return names
}

// writable are the members that can be written to now.
func (r *roster) writable() map[string]*shares {
	r.mu.Lock()
	defer r.mu.Unlock()
	members := map[string]*shares{}
	for name, m := range r.members {
		if m.engaged != nil && m.state.Reach == clusters.Live && m.engaged.shares.HasSynced() {
			members[name] = m.engaged.shares
		}
	}
	return members
}

// vanished are the members of a record of which there is no FleetMember any more:
// somebody has taken its finalizer off. Nobody will ever answer for them.
func (r *roster) vanished(grant *v1alpha1.FleetGrant) []string {
	var names []string
	for i := range grant.Spec.Members {
		if name := grant.Spec.Members[i].Cluster; r.informer.get(types.NamespacedName{Name: name}) == nil {
			names = append(names, name)
		}
	}
	return names
}

// current fails with a conflict if what a pass goes by is behind: the FleetQuota, or
// who is fenced. It is asked after the record was read, so that whoever has gone by
// something newer has changed the record, and the pass fails.
func (t *task) current(ctx context.Context) error {
	now, err := t.hub.fleet.Quotas(t.key.Namespace).Get(ctx, t.key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		now = nil
	case err != nil:
		return fmt.Errorf("read FleetQuota %s: %w", t.key, err)
	}
	if now = dividing(now); !t.isOf(now) {
		return t.behind("FleetQuota")
	}
	for _, cluster := range t.fenced {
		if !t.holds(cluster) {
			continue
		}
		member, err := t.hub.fleet.Members().Get(ctx, cluster, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err) && now == nil: // vanished
		case err != nil:
			return fmt.Errorf("read FleetMember %s: %w", cluster, err)
		case member.Annotations[v1alpha1.AnnotationFenced] != marked:
			return t.behind("FleetMember " + cluster)
		}
	}
	return nil
}

// isOf says whether a pass goes by this FleetQuota, and by the record that it names.
func (t *task) isOf(now *v1alpha1.FleetQuota) bool {
	if now == nil || t.quota == nil {
		return now == nil && t.quota == nil
	}
	return now.UID == t.quota.UID && now.Generation == t.quota.Generation && now.Status.GrantUID == t.grant.UID
}

func (t *task) behind(what string) error {
	kind := v1alpha1.SchemeGroupVersion.WithResource("fleetgrants").GroupResource()
	return apierrors.NewConflict(kind, t.key.Name, fmt.Errorf("the cache of the %s is behind", what))
}

// holds names the FleetQuotas whose records have a row for a member.
func (f *enforcer) holds(ctx context.Context, cluster string) ([]string, error) {
	grants, err := f.hub.fleet.Grants(metav1.NamespaceAll).List(ctx, metav1.ListOptions{}) // the cache may be behind
	if err != nil {
		return nil, fmt.Errorf("list FleetGrants: %w", err)
	}
	var names []string
	for i := range grants.Items {
		if (federation.Record{Spec: grants.Items[i].Spec}).Row(cluster) != nil {
			names = append(names, grants.Items[i].Namespace+"/"+grants.Items[i].Name)
		}
	}
	return names, nil
}
