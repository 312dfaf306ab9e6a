package controller

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// enforcer divides the limits of FleetQuotas among members, by passes of
// [federation.Record.Next]. Any number of hubs may work on one FleetQuota: what
// they write is safe by the order of its steps, not by who holds a lease.
type enforcer struct {
	hub    *hub
	grants informer[*v1alpha1.FleetGrant]
	queue  workqueue.TypedRateLimitingInterface[types.NamespacedName]
	needed chan struct{} // closed once some FleetQuota is divided
	once   sync.Once     // closes needed

	mu    sync.Mutex                                      // guards all below
	notes map[types.NamespacedName]*note                  // FleetQuota -> what is remembered of it
	told  map[types.NamespacedName]federation.Enforcement // FleetQuota -> what its status says of the distribution
}

// note is what is remembered of one FleetQuota between passes, of which there is
// one at a time. All of it may be forgotten.
type note struct {
	memories federation.Memories // of the division
	away     map[string]retry    // members to leave alone for a while
}

func newEnforcer(h *hub) *enforcer {
	return &enforcer{
		hub:    h,
		grants: newInformer(listWatch(h.fleet.Grants(metav1.NamespaceAll)), &v1alpha1.FleetGrant{}, 0),
		queue:  newQueue[types.NamespacedName]("enforce"),
		needed: make(chan struct{}),
		notes:  map[types.NamespacedName]*note{},
		told:   map[types.NamespacedName]federation.Enforcement{},
	}
}

// run enforces until ctx ends.
func (f *enforcer) run(ctx context.Context) error {
	look := func(obj any) {
		f.queue.Add(keyOf(obj))
		f.hub.report.queue.Add(keyOf(obj))
	}
	_, err := f.grants.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: look, DeleteFunc: look, UpdateFunc: func(_, now any) { look(now) },
	})
	if err != nil {
		return fmt.Errorf("watch FleetGrants: %w", err)
	}
	var group sync.WaitGroup
	group.Go(func() { f.grants.RunWithContext(ctx) })
	defer group.Wait()
	roster := f.hub.roster
	if !cache.WaitForNamedCacheSyncWithContext(ctx, f.grants.HasSynced, f.hub.quotas.HasSynced, roster.informer.HasSynced, roster.isListed) {
		f.queue.ShutDown()
		return nil
	}
	work(ctx, f.queue, f.hub.Workers, f.sync)
	return nil
}

// queueAll looks at every FleetQuota that is or was divided: a member has come,
// gone or changed.
func (f *enforcer) queueAll() {
	for _, q := range f.hub.quotas.in("") {
		if q.Spec.Distribution != nil {
			f.queue.Add(keyOf(q))
		}
	}
	for _, grant := range f.grants.in("") {
		f.queue.Add(keyOf(grant))
	}
}

// sync does one pass for one FleetQuota. It guesses from what is watched what
// there is to do. Then it reads the record, then the members concerned, writes
// the record, and only then to the members.
func (f *enforcer) sync(ctx context.Context, key types.NamespacedName) error {
	t, err := f.prepare(ctx, key)
	if t == nil || err != nil {
		return err
	}
	known := t.watched()
	guess := t.next(known, known)
	concerned := t.concerned(guess)
	if len(concerned) == 0 && equality.Semantic.DeepEqual(guess.Spec, t.grant.Spec) {
		t.conclude(guess)
		return t.end(ctx)
	}
	if t.grant, err = f.hub.fleet.Grants(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{}); err != nil {
		return fmt.Errorf("read FleetGrant %s: %w", key, err)
	}
	bound(t.grant)
	if err := t.current(ctx); err != nil {
		return err
	}
	read := t.read(ctx, concerned)
	pass := t.next(known, t.seen(read))
	if err := t.record(ctx, pass.Spec); err != nil {
		return err
	}
	t.send(ctx, pass.Writes, read)
	t.conclude(pass)
	return nil
}

// task is one pass for one FleetQuota.
type task struct {
	*enforcer
	*note

	key      types.NamespacedName
	quota    *v1alpha1.FleetQuota // nil: it is divided no more
	grant    *v1alpha1.FleetGrant
	limit    corev1.ResourceList
	members  map[string]*shares // that can be written to
	selected []string           // that take part
	question federation.Question
	fenced   []string
	now      time.Time
	plan     federation.Plan
	problem  error
	full     bool // some member uses all that it may
}

// prepare gathers what a pass needs. It is nil when nothing is divided, or not yet.
func (f *enforcer) prepare(ctx context.Context, key types.NamespacedName) (*task, error) {
	quota, grant := dividing(f.hub.quotas.get(key)), f.grants.get(key)
	if quota == nil && grant == nil {
		f.forget(key)
		return nil, nil //nolint:nilnil // there is nothing to do
	}
	f.once.Do(func() { close(f.needed) })
	t := &task{enforcer: f, note: f.noteOf(key), key: key, quota: quota, grant: grant, now: time.Now()}
	t.members, t.fenced = f.hub.roster.writable(), f.hub.roster.fenced()
	if quota == nil {
		t.limit = grant.Spec.Hard
		t.fenced = append(t.fenced, f.hub.roster.vanished(grant)...)
		return t, nil
	}
	t.limit = federation.Governed(quota.Spec.Hard)
	if !t.selects() {
		return nil, nil //nolint:nilnil // the condition Ready says why
	}
	return t.begun(ctx)
}

// dividing is a FleetQuota that is divided, else nil.
func dividing(quota *v1alpha1.FleetQuota) *v1alpha1.FleetQuota {
	if quota == nil || quota.DeletionTimestamp != nil || quota.Spec.Distribution == nil {
		return nil
	}
	return quota
}

// selects finds who takes part. It is false if that cannot be said.
func (t *task) selects() bool {
	compiled, err := compile(t.quota)
	if err != nil {
		return false
	}
	t.question = compiled.question
	for _, cluster := range t.hub.roster.selected(compiled.members) {
		switch member := t.hub.roster.informer.get(types.NamespacedName{Name: cluster}); {
		case slices.Contains(t.fenced, cluster):
		case member != nil && member.DeletionTimestamp != nil && !t.holds(cluster): // it gets nothing new
		default:
			t.selected = append(t.selected, cluster)
		}
	}
	return true
}

// holds says whether a member has a row.
func (t *task) holds(cluster string) bool {
	return t.grant != nil && federation.Record{Spec: t.grant.Spec}.Row(cluster) != nil
}

// begun is the task, once there is a record and something may be written.
func (t *task) begun(ctx context.Context) (*task, error) {
	switch {
	case t.quota.Spec.Distribution.Paused:
		t.show()
		return nil, nil //nolint:nilnil // nothing may be written
	case t.grant == nil:
		return nil, t.begin(ctx, t.quota)
	case t.quota.Status.GrantUID != t.grant.UID:
		return nil, nil //nolint:nilnil // first the status names the record, so that its loss would be noticed
	}
	return t, nil
}

// show shows what would be granted.
func (t *task) show() {
	if t.grant == nil {
		t.grant = &v1alpha1.FleetGrant{}
	}
	t.divide(t.watched())
	t.tell(federation.Enforcement{Problem: federation.ProblemOf(t.problem), Planned: t.plan.Shares})
}

// divide says what each member shall have, by what is known of all.
func (t *task) divide(known map[string]federation.Seen) {
	var parties []federation.Party
	for _, cluster := range t.selected {
		parties = append(parties, t.party(cluster, known))
		t.full = t.full || full(known[cluster])
	}
	record := federation.Record{ID: t.grant.UID, Spec: t.grant.Spec}
	t.plan, t.problem = federation.Divide(t.quota.Spec, record, parties, t.memories, t.now)
}

// full says that a quota has no room left for some resource.
func full(seen federation.Seen) bool {
	for name, hard := range seen.Hard {
		if used, known := seen.Used[name]; known && used.Cmp(hard) >= 0 {
			return true
		}
	}
	return false
}

// party is what a member brings to the division.
func (t *task) party(cluster string, known map[string]federation.Seen) federation.Party {
	seen, watched := known[cluster]
	p := federation.Party{Cluster: cluster, Silent: !watched || t.failing(cluster), Used: seen.Used, Absent: seen.NoNamespace}
	if watched {
		p.Room = t.members[cluster].rooms.of(t.key, t.now)
	} else {
		p.Used = t.hub.ledger.Part(t.question, cluster).Used // as last known
	}
	switch t.trouble(cluster) {
	case federation.TroubleForeign, federation.TroubleScopes, federation.TroubleNoNamespace:
		p.Absent = true
	case federation.TroubleCluster, federation.TroubleEnding:
		p.Silent = true
	case federation.TroubleDoesNotFit, federation.TroubleTampered, federation.TroubleFenced, federation.TroubleForbidden:
	}
	return p
}

// next is the next pass: shares by what is known of all members, and what was
// seen of some.
func (t *task) next(known, seen map[string]federation.Seen) federation.Pass {
	o := federation.Observation{Limit: t.limit, Seen: seen, Fenced: t.fenced}
	for cluster := range seen {
		if !slices.Contains(t.selected, cluster) {
			o.Release = append(o.Release, cluster)
		}
	}
	slices.Sort(o.Release)
	if t.quota == nil {
		o.Delete = t.grant.Spec.WhenRemoved == v1alpha1.DeleteQuotas
		return federation.Record{ID: t.grant.UID, Spec: t.grant.Spec}.Next(o)
	}
	d := t.quota.Spec.Distribution
	o.Adopt, o.Delete, o.Shared = d.AdoptExisting, d.WhenRemoved == v1alpha1.DeleteQuotas, d.Mode == v1alpha1.Shared
	t.divide(known)
	o.Want = t.plan.Shares
	pass := federation.Record{ID: t.grant.UID, Spec: t.grant.Spec}.Next(o)
	pass.Spec.WhenRemoved = d.WhenRemoved
	return pass
}

// concerned are the members that a pass changes anything of.
func (t *task) concerned(pass federation.Pass) []string {
	var names []string
	before := federation.Record{Spec: t.grant.Spec}
	for i := range pass.Spec.Members {
		row := &pass.Spec.Members[i]
		if was := before.Row(row.Cluster); was == nil || !equality.Semantic.DeepEqual(was, row) {
			names = append(names, row.Cluster)
		}
	}
	after := federation.Record{Spec: pass.Spec}
	for i := range t.grant.Spec.Members {
		if cluster := t.grant.Spec.Members[i].Cluster; after.Row(cluster) == nil {
			names = append(names, cluster)
		}
	}
	return names
}

// conclude notes what came of a pass, and when to look again.
func (t *task) conclude(pass federation.Pass) {
	t.memories = t.plan.Memories
	t.tell(federation.Enforcement{
		Problem: federation.ProblemOf(t.problem), Planned: pass.Waiting(t.plan.Shares), Trouble: t.troubles(pass.Trouble),
	})
	if t.quota != nil && t.quota.Spec.Distribution.Mode == v1alpha1.Balanced && t.full {
		t.queue.AddAfter(t.key, lookAgain) // by then there may be headroom that can be moved
	}
	if again := t.again(); again > 0 {
		t.queue.AddAfter(t.key, again)
	}
}

// troubles are those that a pass has found, and those of members that nobody has
// looked at since.
func (t *task) troubles(found map[string]federation.Trouble) map[string]federation.Trouble {
	troubles := maps.Clone(found)
	t.mu.Lock()
	defer t.mu.Unlock()
	for cluster, trouble := range t.told[t.key].Trouble {
		if _, looked := found[cluster]; !looked && t.now.Before(t.away[cluster].at) {
			troubles[cluster] = trouble
		}
	}
	for cluster, r := range t.away {
		if r.denied && troubles[cluster] == "" {
			troubles[cluster] = federation.TroubleForbidden
		}
	}
	unwatched := []federation.Trouble{federation.TroubleForeign, federation.TroubleScopes, federation.TroubleEnding}
	for cluster, trouble := range found {
		if slices.Contains(unwatched, trouble) {
			t.away[cluster] = retry{at: t.now.Add(lookAgain)}
		}
	}
	return troubles
}

// watched is what is known, without reading, of the quotas of the members that
// can be written to.
func (t *task) watched() map[string]federation.Seen {
	creates := t.quota != nil && t.quota.Spec.Distribution.CreateNamespaces
	known := map[string]federation.Seen{}
	for cluster, shares := range t.members {
		if t.waits(cluster) {
			continue
		}
		q := localQuota{ResourceQuota: shares.get(t.key)}
		q.noNamespace = q.ResourceQuota == nil && !creates && t.hub.ledger.Lacks(cluster, t.key.Namespace)
		known[cluster] = shares.seen(q, t.quota)
	}
	return known
}

// seen is what was read.
func (t *task) seen(read map[string]localQuota) map[string]federation.Seen {
	seen := map[string]federation.Seen{}
	for cluster, q := range read {
		seen[cluster] = t.members[cluster].seen(q, t.quota)
	}
	return seen
}

// trouble is what has kept a member from its share when it was last looked at.
func (t *task) trouble(cluster string) federation.Trouble {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.told[t.key].Trouble[cluster]
}

// tell notes what the status shall say, and has it written if that is new.
func (t *task) tell(e federation.Enforcement) {
	t.mu.Lock()
	was, told := t.told[t.key]
	t.told[t.key] = e
	t.mu.Unlock()
	if !told || !reflect.DeepEqual(was, e) {
		t.hub.report.queue.Add(t.key)
	}
}

func (f *enforcer) noteOf(key types.NamespacedName) *note {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.notes[key]
	if n == nil {
		n = &note{away: map[string]retry{}}
		f.notes[key] = n
	}
	return n
}

// enforcement is what the status of a FleetQuota says of its distribution.
func (f *enforcer) enforcement(key types.NamespacedName) federation.Enforcement {
	f.mu.Lock()
	defer f.mu.Unlock()
	e := f.told[key]
	e.Grant = f.grants.get(key)
	return e
}

func (f *enforcer) forget(key types.NamespacedName) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.notes, key)
	delete(f.told, key)
}
