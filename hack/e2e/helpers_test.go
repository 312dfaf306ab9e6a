package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/hack/e2e/count"
	"github.com/fleetquota/fleetquota/hack/e2e/scene"
	"github.com/fleetquota/fleetquota/hack/fleet/fleet"
)

// soon is how long a change may take to be seen, on a machine that is busy with
// a dozen API servers. What has a bound of its own is tested with that.
const soon = 30 * time.Second

// tenant is the namespace of one test, at the hub and in some members.
type tenant struct {
	*world

	t         *testing.T
	namespace string
}

// tenant makes the namespace of a test in members; by default in those that
// all tests share.
func (w *world) tenant(t *testing.T, members ...string) *tenant {
	t.Helper()
	if len(members) == 0 {
		members = []string{"east", "west", "south"}
	}
	x := &tenant{world: w, t: t, namespace: strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(t.Name(), "Test")), "/", "-")}
	x.must(w.Hub.CreateNamespace(t.Context(), x.namespace))
	for _, name := range members {
		x.must(w.Member(name).CreateNamespace(t.Context(), x.namespace))
	}
	log, began := w.hub.Log, time.Now()
	t.Cleanup(func() {
		if t.Failed() {
			explain(t, log, began)
		}
	})
	return x
}

// explain shows what the hub logged since a test began.
func explain(t *testing.T, log string, since time.Time) {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		return
	}
	var lines []string
	for line := range strings.Lines(string(text)) {
		// I0102 15:04:05.000000
		if fields := strings.Fields(line); len(fields) > 1 && fields[1] >= since.Format("15:04:05") {
			lines = append(lines, line)
		}
	}
	const most = 60
	t.Logf("the last of %d lines of the hub's log:\n%s", len(lines), strings.Join(lines[max(0, len(lines)-most):], ""))
}

func (x *tenant) must(err error) {
	x.t.Helper()
	if err != nil {
		x.t.Fatal(err)
	}
}

// create creates objects in the namespace of a member.
func (x *tenant) create(member string, objects ...runtime.Object) {
	x.t.Helper()
	x.must(x.Member(member).Create(x.t.Context(), x.namespace, objects...))
}

// delete deletes an object from the namespace of a member.
func (x *tenant) delete(member string, resource schema.GroupVersionResource, name string) {
	x.t.Helper()
	x.must(x.Member(member).Delete(x.t.Context(), resource, x.namespace, name))
}

// quota creates a FleetQuota that limits these resources; options change it
// before.
func (x *tenant) quota(name string, hard corev1.ResourceList, options ...func(*v1alpha1.FleetQuotaSpec)) {
	x.t.Helper()
	q := &v1alpha1.FleetQuota{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.FleetQuotaSpec{Hard: hard}}
	for _, option := range options {
		option(&q.Spec)
	}
	_, err := x.Hub.Quota.Quotas(x.namespace).Create(x.t.Context(), q, metav1.CreateOptions{})
	x.must(err)
}

// selecting selects members by one label.
func selecting(label, value string) func(*v1alpha1.FleetQuotaSpec) {
	return func(s *v1alpha1.FleetQuotaSpec) {
		s.ClusterSelector = &metav1.LabelSelector{MatchLabels: map[string]string{label: value}}
	}
}

// only selects one member, by the label that addMember gives it.
func only(member string) func(*v1alpha1.FleetQuotaSpec) { return selecting("only", member) }

// sharedMembers selects the members that all tests share.
func sharedMembers(s *v1alpha1.FleetQuotaSpec) { selecting("shared", "true")(s) }

// in selects the members of some regions: the shared ones are in regions of
// their own names.
func in(regions ...string) func(*v1alpha1.FleetQuotaSpec) {
	return func(s *v1alpha1.FleetQuotaSpec) {
		s.ClusterSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: "region", Operator: metav1.LabelSelectorOpIn, Values: regions},
		}}
	}
}

func (x *tenant) get(ctx context.Context, name string) (*v1alpha1.FleetQuota, error) {
	return x.Hub.Quota.Quotas(x.namespace).Get(ctx, name, metav1.GetOptions{})
}

// change changes the spec of a FleetQuota.
func (x *tenant) change(name string, change func(*v1alpha1.FleetQuotaSpec)) {
	x.t.Helper()
	x.eventually(soon, func(ctx context.Context) error {
		q, err := x.get(ctx, name)
		if err != nil {
			return err
		}
		change(&q.Spec)
		_, err = x.Hub.Quota.Quotas(x.namespace).Update(ctx, q, metav1.UpdateOptions{})
		return err
	})
}

// eventually fails the test unless the check passes in time.
func (x *tenant) eventually(patience time.Duration, check func(ctx context.Context) error) {
	x.t.Helper()
	ctx, cancel := context.WithCancelCause(x.t.Context())
	defer cancel(nil)
	err := scene.Eventually(ctx, patience, func(ctx context.Context) error {
		if err := x.ended(); err != nil {
			cancel(err) // whatever is waited for will never come
			return err
		}
		return check(ctx)
	})
	x.must(err)
}

// ended says how the hub has ended, when nobody asked it to.
func (x *tenant) ended() error {
	if x.hub == nil {
		return nil
	}
	return x.hub.Ended()
}

// becomes waits until the status of a FleetQuota is as the checks want it, and
// returns it.
func (x *tenant) becomes(name string, checks ...func(*v1alpha1.FleetQuota) error) *v1alpha1.FleetQuota {
	x.t.Helper()
	return x.becomesWithin(soon, name, checks...)
}

func (x *tenant) becomesWithin(patience time.Duration, name string, checks ...func(*v1alpha1.FleetQuota) error) *v1alpha1.FleetQuota {
	x.t.Helper()
	var quota *v1alpha1.FleetQuota
	x.eventually(patience, func(ctx context.Context) error {
		var err error
		if quota, err = x.get(ctx, name); err != nil {
			return err
		}
		if quota.Status.ObservedGeneration != quota.Generation {
			return fmt.Errorf("status of generation %d, spec of %d", quota.Status.ObservedGeneration, quota.Generation)
		}
		for _, check := range checks {
			if err := check(quota); err != nil {
				return fmt.Errorf("%w\n%s", err, shown(quota))
			}
		}
		return nil
	})
	return quota
}

// shown is a status for people.
func shown(q *v1alpha1.FleetQuota) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s/%s used %s\n", q.Namespace, q.Name, text(q.Status.Used))
	for i := range q.Status.Clusters {
		row := &q.Status.Clusters[i]
		fmt.Fprintf(&b, "  %s %s %s unknown %v %s used %s\n", row.Name, row.Phase, row.Reason, row.Unknown, observed(row), text(row.Used))
	}
	for _, c := range q.Status.Conditions {
		fmt.Fprintf(&b, "  %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	return b.String()
}

func observed(row *v1alpha1.ClusterUsage) string {
	if row.LastObservedTime == nil {
		return ""
	}
	return "observed " + row.LastObservedTime.Format(time.TimeOnly)
}

func text(list corev1.ResourceList) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		words = append(words, string(name)+"="+quantity.String())
	}
	return strings.Join(words, " ")
}

// list makes a ResourceList of names and quantities in turn.
func list(pairs ...string) corev1.ResourceList {
	made := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		made[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return made
}

// same says in which resource two lists differ.
func same(what string, got, want corev1.ResourceList) error {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		wanted := want[name]
		have, ok := got[name]
		if !ok {
			return fmt.Errorf("%s: %s is absent, want %s", what, name, wanted.String())
		}
		if have.Cmp(wanted) != 0 {
			return fmt.Errorf("%s: %s is %s, want %s", what, name, have.String(), wanted.String())
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			return fmt.Errorf("%s: %s is there, want it absent", what, name)
		}
	}
	return nil
}

// uses wants these resources, in names and quantities in turn, to be used.
// Others may be, too.
func uses(pairs ...string) func(*v1alpha1.FleetQuota) error {
	want := list(pairs...)
	return func(q *v1alpha1.FleetQuota) error { return same("used", narrowed(q.Status.Used, want), want) }
}

// memberUses is uses for the row of one member.
func memberUses(member string, pairs ...string) func(*v1alpha1.FleetQuota) error {
	want := list(pairs...)
	return func(q *v1alpha1.FleetQuota) error {
		row := rowOf(q, member)
		if row == nil {
			return fmt.Errorf("no row of %s", member)
		}
		return same(member, narrowed(row.Used, want), want)
	}
}

func narrowed(list, to corev1.ResourceList) corev1.ResourceList {
	some := corev1.ResourceList{}
	for name := range to {
		if quantity, ok := list[name]; ok {
			some[name] = quantity
		}
	}
	return some
}

func rowOf(q *v1alpha1.FleetQuota, member string) *v1alpha1.ClusterUsage {
	for i := range q.Status.Clusters {
		if q.Status.Clusters[i].Name == member {
			return &q.Status.Clusters[i]
		}
	}
	return nil
}

// phase wants a member's row to be of a phase and to give a reason.
func phase(member string, want v1alpha1.Phase, reasons ...string) func(*v1alpha1.FleetQuota) error {
	return func(q *v1alpha1.FleetQuota) error {
		row := rowOf(q, member)
		switch {
		case row == nil:
			return fmt.Errorf("no row of %s", member)
		case row.Phase != want:
			return fmt.Errorf("%s is %s, want %s", member, row.Phase, want)
		case len(reasons) > 0 && !slices.Contains(reasons, row.Reason):
			return fmt.Errorf("%s gives the reason %q, want %q", member, row.Reason, reasons)
		case (row.Phase == v1alpha1.Live) != (row.LastObservedTime == nil) && row.Phase != v1alpha1.Partial && row.Phase != v1alpha1.NeverSynced:
			return fmt.Errorf("%s is %s and last observed at %s", member, row.Phase, row.LastObservedTime)
		}
		return nil
	}
}

// rows wants the rows to be those of these members.
func rows(members ...string) func(*v1alpha1.FleetQuota) error {
	slices.Sort(members)
	return func(q *v1alpha1.FleetQuota) error {
		var have []string
		for i := range q.Status.Clusters {
			have = append(have, q.Status.Clusters[i].Name)
		}
		if !slices.Equal(have, members) {
			return fmt.Errorf("rows of %v, want %v", have, members)
		}
		return nil
	}
}

// condition wants a condition to have a status and a reason.
func condition(kind string, status metav1.ConditionStatus, reason string) func(*v1alpha1.FleetQuota) error {
	return func(q *v1alpha1.FleetQuota) error { return hasCondition(q.Status.Conditions, kind, status, reason) }
}

func hasCondition(conditions []metav1.Condition, kind string, status metav1.ConditionStatus, reason string) error {
	c := meta.FindStatusCondition(conditions, kind)
	if c == nil {
		return fmt.Errorf("no condition %s", kind)
	}
	if c.Status != status || c.Reason != reason {
		return fmt.Errorf("%s is %s, %s (%s), want %s, %s", kind, c.Status, c.Reason, c.Message, status, reason)
	}
	return nil
}

// complete wants every member to be live.
func complete(q *v1alpha1.FleetQuota) error {
	return condition(v1alpha1.ConditionUsageComplete, metav1.ConditionTrue, "AllLive")(q)
}

// recount counts a FleetQuota's namespace in members with Kubernetes' own
// evaluators.
func (x *tenant) recount(ctx context.Context, spec v1alpha1.FleetQuotaSpec, members ...string) (map[string]corev1.ResourceList, error) {
	counted := map[string]corev1.ResourceList{}
	for _, name := range members {
		member := x.Member(name)
		used, err := count.Cluster{Kubernetes: member.Kubernetes, Dynamic: member.Dynamic}.Used(ctx, x.namespace,
			corev1.ResourceQuotaSpec{Hard: spec.Hard, Scopes: spec.Scopes, ScopeSelector: spec.ScopeSelector})
		if err != nil {
			return nil, fmt.Errorf("count in %s: %w", name, err)
		}
		counted[name] = used
	}
	return counted, nil
}

// agrees waits until every number of a FleetQuota is that of an independent
// count: each member's row and the sum.
func (x *tenant) agrees(name string, members ...string) *v1alpha1.FleetQuota {
	x.t.Helper()
	var quota *v1alpha1.FleetQuota
	x.eventually(soon, func(ctx context.Context) error {
		var err error
		if quota, err = x.get(ctx, name); err != nil {
			return err
		}
		counted, err := x.recount(ctx, quota.Spec, members...)
		if err != nil {
			return err
		}
		if err := matches(quota, counted); err != nil {
			return fmt.Errorf("%w\n%s", err, shown(quota))
		}
		return complete(quota)
	})
	return quota
}

func matches(quota *v1alpha1.FleetQuota, counted map[string]corev1.ResourceList) error {
	sum := corev1.ResourceList{}
	for _, member := range slices.Sorted(maps.Keys(counted)) {
		row := rowOf(quota, member)
		if row == nil {
			return fmt.Errorf("no row of %s", member)
		}
		if err := same(member, row.Used, counted[member]); err != nil {
			return err
		}
		for name, quantity := range counted[member] {
			total := sum[name]
			total.Add(quantity)
			sum[name] = total
		}
	}
	if err := rows(slices.Collect(maps.Keys(counted))...)(quota); err != nil {
		return err
	}
	return same("used", quota.Status.Used, sum)
}

// watched is every status of a FleetQuota that was seen while watching.
type watched struct {
	mu     sync.Mutex // guards quotas
	quotas []*v1alpha1.FleetQuota
	stop   func()
}

// watch follows a FleetQuota until stopped, from its status of now on.
func (x *tenant) watch(name string) *watched {
	x.t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(x.t.Context()))
	now, err := x.get(ctx, name)
	x.must(err)
	stream, err := x.Hub.Quota.Quotas(x.namespace).Watch(ctx, metav1.ListOptions{
		FieldSelector: "metadata.name=" + name, ResourceVersion: now.ResourceVersion,
	})
	x.must(err)
	w := &watched{quotas: []*v1alpha1.FleetQuota{now}}
	var done sync.WaitGroup
	done.Go(func() {
		for event := range stream.ResultChan() {
			if q, ok := event.Object.(*v1alpha1.FleetQuota); ok {
				w.mu.Lock()
				w.quotas = append(w.quotas, q)
				w.mu.Unlock()
			}
		}
	})
	w.stop = sync.OnceFunc(func() {
		stream.Stop()
		cancel()
		done.Wait()
	})
	x.t.Cleanup(w.stop)
	return w
}

// always fails the test unless every status that was seen passes the checks.
func (w *watched) always(t *testing.T, checks ...func(*v1alpha1.FleetQuota) error) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, q := range w.quotas {
		for _, check := range checks {
			if err := check(q); err != nil {
				t.Errorf("status %d of %d: %v\n%s", i+1, len(w.quotas), err, shown(q))
			}
		}
	}
}

func (w *watched) len() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.quotas)
}

// usesAtLeast wants at least so much to be used.
func usesAtLeast(pairs ...string) func(*v1alpha1.FleetQuota) error {
	floor := list(pairs...)
	return func(q *v1alpha1.FleetQuota) error {
		for name, least := range floor {
			have, ok := q.Status.Used[name]
			if !ok || have.Cmp(least) < 0 {
				return fmt.Errorf("%s is %s, want at least %s", name, have.String(), least.String())
			}
		}
		return nil
	}
}

// addCluster brings up a cluster of a test's own, that is not registered yet.
func (w *world) addCluster(t *testing.T, name string, options ...func(*fleet.Spec)) *scene.Cluster {
	t.Helper()
	spec := fleet.Spec{Name: name}
	for _, option := range options {
		option(&spec)
	}
	cluster, err := w.AddMember(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(w.DeleteSecret(ctx, name), w.Fleet.Down(ctx, name)); err != nil {
			t.Error(err)
		}
	})
	if err := prepare(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	return cluster
}

// withNative runs Kubernetes' own quota controller beside a cluster, with more flags.
func withNative(flags ...string) func(*fleet.Spec) {
	return func(s *fleet.Spec) { s.NativeQuota, s.NativeArgs = true, flags }
}

// addMember brings up a cluster of a test's own and registers it with a label
// that names it.
func (w *world) addMember(t *testing.T, name string, options ...func(*fleet.Spec)) *scene.Cluster {
	t.Helper()
	cluster := w.addCluster(t, name, options...)
	if err := w.Register(t.Context(), cluster, registration(name)); err != nil {
		t.Fatal(err)
	}
	return cluster
}

// registration is that of a test's own member.
func registration(name string) scene.Registration {
	return scene.Registration{Name: name, Labels: map[string]string{"only": name, "region": name}}
}

// member waits until a FleetMember is as the checks want it.
func (x *tenant) member(name string, checks ...func(*v1alpha1.FleetMember) error) *v1alpha1.FleetMember {
	x.t.Helper()
	var member *v1alpha1.FleetMember
	x.eventually(soon, func(ctx context.Context) error {
		var err error
		if member, err = x.Hub.Quota.Members().Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		for _, check := range checks {
			if err := check(member); err != nil {
				return fmt.Errorf("FleetMember %s: %w; %+v", name, err, member.Status)
			}
		}
		return nil
	})
	return member
}

// version is the version of Kubernetes of a member.
func (x *tenant) version(member string) string {
	x.t.Helper()
	info, err := x.Member(member).Info(x.t.Context())
	x.must(err)
	return info.Version
}

func memberCondition(kind string, status metav1.ConditionStatus, reason string) func(*v1alpha1.FleetMember) error {
	return func(m *v1alpha1.FleetMember) error { return hasCondition(m.Status.Conditions, kind, status, reason) }
}

// leaks finds a piece of 16 bytes of some secret in a text.
func leaks(text []byte, secrets ...[]byte) string {
	const piece = 16
	pieces := map[[piece]byte]struct{}{}
	for _, secret := range secrets {
		for i := 0; i+piece <= len(secret); i++ {
			pieces[[piece]byte(secret[i:i+piece])] = struct{}{}
		}
	}
	for i := 0; i+piece <= len(text); i++ {
		if _, ok := pieces[[piece]byte(text[i:i+piece])]; ok {
			return string(bytes.ToValidUTF8(text[max(0, i-40):i+piece], nil))
		}
	}
	return ""
}
