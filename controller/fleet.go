package controller

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"github.com/fleetquota/fleetquota/clusters"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// roster knows the members as they are now, and keeps a FleetMember for each.
// It is the host of [clusters.Serve].
type roster struct {
	hub      *hub
	informer informer[*v1alpha1.FleetMember]
	queue    workqueue.TypedRateLimitingInterface[string]

	mu       sync.Mutex // guards all below
	members  map[string]*standing
	complete time.Time // when every member that existed at the start was named; zero: not yet
}

// standing is what is known of one member.
type standing struct {
	state   clusters.State
	engaged *engagement // nil: it is not
}

// settled says whether a member has answered and been counted, or something
// that does not pass by itself keeps it from that.
func (s standing) settled() bool {
	if s.state.Reach == clusters.Never {
		return s.state.CredentialsReason != ""
	}
	if s.engaged == nil {
		return s.state.Reason != ""
	}
	current, reason, _ := s.engaged.synced()
	return current || reason != federation.ReasonSyncing
}

func newRoster(h *hub) *roster {
	return &roster{
		hub:      h,
		informer: newInformer(listWatch(h.fleet.Members()), &v1alpha1.FleetMember{}, 0),
		queue:    newQueue[string]("members"),
		members:  map[string]*standing{},
	}
}

// run keeps the FleetMembers until ctx ends.
func (r *roster) run(ctx context.Context) error {
	queue := func(obj any) { r.queue.Add(keyOf(obj).Name) }
	_, err := r.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: queue, DeleteFunc: queue, UpdateFunc: func(before, now any) {
			queue(now)
			if !maps.Equal(of[*v1alpha1.FleetMember](before).Annotations, of[*v1alpha1.FleetMember](now).Annotations) {
				r.hub.enforce.queueAll() // it may be fenced now
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch FleetMembers: %w", err)
	}
	var group sync.WaitGroup
	group.Go(func() { r.informer.RunWithContext(ctx) })
	defer group.Wait()
	if !cache.WaitForNamedCacheSyncWithContext(ctx, r.informer.HasSynced, r.isListed) {
		r.queue.ShutDown()
		return nil
	}
	work(ctx, r.queue, r.hub.Workers, r.sync)
	return nil
}

// Observe is told what the connection to a member has become.
func (r *roster) Observe(ctx context.Context, state clusters.State) {
	name := state.Member.Name
	r.mu.Lock()
	m := r.members[name]
	if m == nil {
		m = &standing{}
		r.members[name] = m
	}
	before := m.state
	m.state = state
	engaged := m.engaged
	r.mu.Unlock()

	if before.Reach != state.Reach || before.Reason != state.Reason {
		if state.Reach == clusters.Live {
			r.hub.enforce.heard(name)
		}
		r.hub.enforce.queueAll()
		klog.FromContext(ctx).Info("Member changed", "member", name, "reach", state.Reach, "reason", state.Reason, "message", state.Message)
	}
	r.hub.ledger.Mark(name, reachOf(state))
	r.hub.metrics.observed(state)
	r.queue.Add(name)
	if !maps.Equal(before.Member.Labels, state.Member.Labels) || selectable(before) != selectable(state) {
		r.hub.moved(federation.Move{Member: name}) // other quotas select it now
	}
	if engaged != nil {
		engaged.relabelled(state.Member)
	}
}

// Gone is told that a member exists no more.
func (r *roster) Gone(ctx context.Context, name string) {
	r.mu.Lock()
	delete(r.members, name)
	r.mu.Unlock()
	klog.FromContext(ctx).Info("Member left", "member", name)
	r.hub.ledger.Erase(name)
	r.hub.metrics.gone(name)
	r.queue.Add(name)
	r.hub.moved(federation.Move{Member: name})
}

// Refuse is told of a Secret that cannot be any member.
func (r *roster) Refuse(ctx context.Context, secret types.NamespacedName, reason, message string) {
	klog.FromContext(ctx).Info("Secret refused", "secret", klog.KRef(secret.Namespace, secret.Name), "reason", reason, "message", message)
	regarding := &corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: secret.Namespace, Name: secret.Name}
	r.hub.recorder.Eventf(regarding, nil, corev1.EventTypeWarning, reason, "Register", "%s", message)
}

// listed notes that every member that existed at the start has been observed.
func (r *roster) listed() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.complete.IsZero() {
		r.complete = time.Now()
	}
}

func (r *roster) isListed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.complete.IsZero()
}

// settling says whether the start is so recent that members may not have
// answered yet.
func (r *roster) settling(now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Before(r.complete.Add(r.hub.RestartHold))
}

// selected names the members whose labels match, sorted.
func (r *roster) selected(selector labels.Selector) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var names []string
	for name, m := range r.members {
		if selectable(m.state) && selector.Matches(labels.Set(m.state.Member.Labels)) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// selectable says whether a member is part of sums. A cluster that is known
// under two names is counted under one.
func selectable(state clusters.State) bool { return state.Reason != clusters.ReasonDuplicateCluster }

// drifting is what differs from what is counted in local quotas that others
// keep, by member: at most 500 resources of each.
func (r *roster) drifting() iter.Seq2[string, drifted] {
	const most = 500
	return func(yield func(string, drifted) bool) {
		for name, e := range r.engagements() {
			if e.local == nil || e.local.answers == nil {
				continue
			}
			all := e.local.answers.drifting()
			for _, d := range all[:min(len(all), most)] {
				if !yield(name, d) {
					return
				}
			}
		}
	}
}

// engagements is those of now, by member.
func (r *roster) engagements() map[string]*engagement {
	r.mu.Lock()
	defer r.mu.Unlock()
	engaged := map[string]*engagement{}
	for name, m := range r.members {
		if m.engaged != nil {
			engaged[name] = m.engaged
		}
	}
	return engaged
}

// askAll tells every engagement that the FleetQuotas ask for something else.
func (r *roster) askAll() {
	for _, e := range r.engagements() {
		e.ask()
	}
}

// moved queues a FleetMember whose condition Synced may have changed.
func (r *roster) moved(move federation.Move) {
	if move.Namespace == "" {
		r.queue.Add(move.Member)
	}
}

// enter notes an engagement. It returns the member's labels of now.
func (r *roster) enter(e *engagement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.members[e.name()]; m != nil {
		m.engaged = e
	}
}

func (r *roster) leave(e *engagement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.members[e.name()]; m != nil && m.engaged == e {
		m.engaged = nil
	}
}

// labels are those of a member now.
func (r *roster) labels(name string) map[string]string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.members[name]; m != nil {
		return m.state.Member.Labels
	}
	return nil
}

// sync brings one FleetMember up to date.
func (r *roster) sync(ctx context.Context, name string) error {
	r.mu.Lock()
	m, known := r.members[name]
	var now standing
	if known {
		now = *m
	}
	r.mu.Unlock()
	have := r.informer.get(types.NamespacedName{Name: name})
	if !known {
		return r.remove(ctx, have)
	}
	if have != nil && have.DeletionTimestamp != nil { // it comes again once it holds nothing
		held, err := r.hub.enforce.holds(ctx, name)
		if err != nil {
			return err
		}
		if len(held) == 0 {
			return r.remove(ctx, have)
		}
	}
	have, err := r.shape(ctx, have, now.state.Member)
	if err != nil {
		return err
	}
	if r.settling(time.Now()) && len(have.Status.Conditions) > 0 && !now.settled() {
		const again = 200 * time.Millisecond
		r.queue.AddAfter(name, again) // a restart of the hub is not its trouble
		return nil
	}
	status := memberStatus(have, now, time.Now())
	if equality.Semantic.DeepEqual(have.Status, status) {
		return nil
	}
	return r.writeStatus(ctx, have, status)
}

// remove deletes the FleetMember of a member that exists no more, or lets it go
// once no record of grants has a row for it. Until then it is Leaving.
func (r *roster) remove(ctx context.Context, have *v1alpha1.FleetMember) error {
	if have == nil {
		return nil
	}
	api := r.hub.fleet.Members()
	if have.DeletionTimestamp == nil {
		err := api.Delete(ctx, have.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(have.UID))})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete FleetMember %s: %w", have.Name, err)
		}
		return nil
	}
	held, err := r.hub.enforce.holds(ctx, have.Name)
	if err != nil {
		return err
	}
	if len(held) > 0 {
		return r.leaving(ctx, have, held)
	}
	update := have.DeepCopy()
	update.Finalizers = slices.DeleteFunc(update.Finalizers, func(name string) bool { return name == v1alpha1.MemberFinalizer })
	if _, err := api.Update(ctx, update, metav1.UpdateOptions{FieldManager: fieldManager}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("let FleetMember %s go: %w", have.Name, err)
	}
	return nil
}

// leaving says what keeps a FleetMember that is to go.
func (r *roster) leaving(ctx context.Context, have *v1alpha1.FleetMember, held []string) error {
	status := *have.Status.DeepCopy()
	status.Phase = v1alpha1.Leaving
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: "Leaving", ObservedGeneration: have.Generation,
		Message: fmt.Sprintf("its Secret is gone, and it still holds a share of %d FleetQuotas (%s); make the Secret again, or annotate this FleetMember with %s=true if nothing can be used there any more",
			len(held), held[0], v1alpha1.AnnotationFenced),
	})
	if equality.Semantic.DeepEqual(have.Status, status) {
		return nil
	}
	return r.writeStatus(ctx, have, status)
}

// shape makes the FleetMember, or gives it the labels of the Secret.
func (r *roster) shape(ctx context.Context, have *v1alpha1.FleetMember, member clusters.Member) (*v1alpha1.FleetMember, error) {
	api := r.hub.fleet.Members()
	if have == nil {
		made, err := api.Create(ctx, &v1alpha1.FleetMember{
			ObjectMeta: metav1.ObjectMeta{Name: member.Name, Labels: member.Labels},
			Spec:       v1alpha1.FleetMemberSpec{SecretName: member.Secret.Name},
		}, metav1.CreateOptions{FieldManager: fieldManager})
		if apierrors.IsAlreadyExists(err) {
			made, err = api.Get(ctx, member.Name, metav1.GetOptions{})
		}
		if err != nil {
			return nil, fmt.Errorf("create FleetMember %s: %w", member.Name, err)
		}
		have = made
	}
	if labels.Equals(have.Labels, member.Labels) && have.Spec.SecretName == member.Secret.Name {
		return have, nil
	}
	update := have.DeepCopy()
	update.Labels, update.Spec.SecretName = maps.Clone(member.Labels), member.Secret.Name
	now, err := api.Update(ctx, update, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil {
		return nil, fmt.Errorf("update FleetMember %s: %w", member.Name, err)
	}
	return now, nil
}

// writeStatus stores a status and tells when the member became ready or not.
func (r *roster) writeStatus(ctx context.Context, have *v1alpha1.FleetMember, status v1alpha1.FleetMemberStatus) error {
	update := have.DeepCopy()
	update.Status = status
	now, err := r.hub.fleet.Members().UpdateStatus(ctx, update, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("write the status of FleetMember %s: %w", have.Name, err)
	}
	r.announce(now, have.Status.Conditions)
	return nil
}

// announce tells what has become of a member since its conditions were these.
func (r *roster) announce(now *v1alpha1.FleetMember, before []metav1.Condition) {
	agrees := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionLocalStatusAgrees)
	agreed := meta.FindStatusCondition(before, v1alpha1.ConditionLocalStatusAgrees)
	if agrees != nil && agrees.Reason == reasonContested && (agreed == nil || agreed.Reason != reasonContested) {
		r.hub.recorder.Eventf(now, nil, corev1.EventTypeWarning, agrees.Reason, "Observe", "%s", agrees.Message)
	}
	is := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionReady)
	was := meta.FindStatusCondition(before, v1alpha1.ConditionReady)
	if is == nil || was != nil && was.Status == is.Status && was.Reason == is.Reason {
		return
	}
	severity := corev1.EventTypeWarning
	if is.Status == metav1.ConditionTrue {
		severity = corev1.EventTypeNormal
	}
	r.hub.recorder.Eventf(now, nil, severity, is.Reason, "Observe", "%s", is.Message)
}
