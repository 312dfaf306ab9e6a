package federation_test

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// hub is one process that believes it may act. It goes by the steps of
// controller.enforcer.sync, and may stop for good between any two of them.
type hub struct {
	cache  cache
	asleep int // so many of its turns

	// What may be forgotten.
	memories federation.Memories
	told     map[string]federation.Trouble
	away     map[string]time.Time

	resume func() (struct{}, bool) // continues the pass under way; nil: there is none
	stop   func()
}

// cache is what a hub knows by its watches. All of it may be old.
type cache struct {
	wishes *wishes
	noted  types.UID
	record *grant
	quotas map[string]federation.Seen // of those with our label
}

func newHub() *hub {
	return &hub{
		cache: cache{wishes: &wishes{}, quotas: map[string]federation.Seen{}},
		told:  map[string]federation.Trouble{}, away: map[string]time.Time{},
	}
}

// forget is a crash. The process that comes up next lists all anew.
func (w *grantWorld) forget(h *hub) {
	if h.stop != nil {
		h.stop()
	}
	*h = *newHub()
	w.refresh(h, always)
}

// refresh brings watch events to a hub, those that come.
func (w *grantWorld) refresh(h *hub, comes func() bool) {
	if comes() {
		h.cache.wishes, h.cache.noted = w.wishes, w.noted
	}
	if comes() {
		h.cache.record = w.record
	}
	for _, m := range w.members {
		if m.cut || !comes() {
			continue
		}
		seen := m.see()
		if !seen.NoNamespace && seen.Hidden {
			seen = federation.Seen{}
		}
		h.cache.quotas[m.name] = seen
	}
}

// turn is the next step of a hub.
func (w *grantWorld) turn(h *hub) {
	if h.asleep > 0 {
		h.asleep--
		return
	}
	if h.resume == nil {
		h.resume, h.stop = iter.Pull(w.pass(h))
	}
	if _, more := h.resume(); !more {
		h.resume, h.stop = nil, nil
	}
}

// attempt is a pass under way.
type attempt struct {
	*hub

	w       *grantWorld
	wishes  *wishes
	limit   corev1.ResourceList
	record  *grant
	plan    federation.Plan
	problem error
}

// pass is one pass of a hub. It pauses wherever others may act before it goes on.
func (w *grantWorld) pass(h *hub) iter.Seq[struct{}] {
	return func(yield func(struct{}) bool) {
		pause := func() bool { return yield(struct{}{}) }
		t := w.prepare(h)
		if t == nil {
			return
		}
		known := t.known()
		guess := t.next(known, known)
		concerned := t.concerned(guess.Spec)
		if len(concerned) == 0 && sameSpec(guess.Spec, t.record.Spec) {
			t.conclude(guess)
			t.end()
			return
		}
		if !pause() || w.record == nil {
			return
		}
		t.record = w.record
		read := map[string]localQuota{}
		seen := map[string]federation.Seen{}
		for _, m := range concerned {
			if !pause() {
				return
			}
			t.read(m, read, seen)
		}
		pass := t.next(known, seen)
		if !pause() {
			return
		}
		t.hold(pass.Spec)
		if !pause() || !w.send(&commit{attempt: t, seen: seen, pass: pass}) {
			return
		}
		for _, write := range pass.Writes {
			if !pause() {
				return
			}
			w.post(&letter{Write: write, to: w.member(write.Cluster), read: read[write.Cluster]})
		}
		t.conclude(pass)
	}
}

// prepare begins an attempt, or the record that it needs. It is nil while nothing
// may be written.
func (w *grantWorld) prepare(h *hub) *attempt {
	t := &attempt{hub: h, w: w, wishes: h.cache.wishes, record: h.cache.record}
	d := t.wishes.spec.Distribution
	switch {
	case d == nil && t.record == nil:
		w.note(h)
		return nil
	case d == nil:
		t.limit = t.record.Spec.Hard
		return t
	case d.Paused:
		return nil
	case t.record == nil:
		w.begin(h)
		return nil
	case h.cache.noted != t.record.ID:
		w.note(h)
		return nil
	}
	t.limit = federation.Governed(t.wishes.spec.Hard)
	return t
}

// begin makes a record. If one was noted before, all who may have had a row are
// to be recovered.
func (w *grantWorld) begin(h *hub) {
	if w.record != nil {
		return
	}
	spec := v1alpha1.FleetGrantSpec{Hard: federation.Governed(h.cache.wishes.spec.Hard)}
	for _, m := range w.members {
		if w.noted != "" && w.held[m.name] {
			spec.Members = append(spec.Members, v1alpha1.Grant{Cluster: m.name, State: v1alpha1.Recovering})
		}
	}
	w.put(federation.Record{ID: w.newID("r"), Spec: spec})
	w.tell("a hub makes a record: %v", w.record)
}

// note writes into the status which record there is, unless the hub is behind.
func (w *grantWorld) note(h *hub) {
	if h.cache.wishes != w.wishes || h.cache.noted != w.noted {
		return
	}
	switch {
	case h.cache.record != nil:
		w.noted = h.cache.record.ID
	case h.cache.wishes.spec.Distribution == nil:
		w.noted, w.lost = "", perKey{} // nothing is promised any more
		for _, m := range w.members {
			m.covered = [simKeys]bool{}
		}
	}
}

// known is what the caches say of the members that can be reached.
func (t *attempt) known() map[string]federation.Seen {
	known := map[string]federation.Seen{}
	for _, m := range t.w.members {
		if !m.cut && !t.w.now.Before(t.away[m.name]) {
			seen := t.cache.quotas[m.name]
			seen.NoNamespace = seen.NoNamespace && !t.creates()
			known[m.name] = seen
		}
	}
	return known
}

func (t *attempt) creates() bool {
	d := t.wishes.spec.Distribution
	return d != nil && d.CreateNamespaces
}

// read is a GET, which may fail.
func (t *attempt) read(m *member, read map[string]localQuota, seen map[string]federation.Seen) {
	if m.cut || t.w.odds[actCut] > 0 && t.w.random.IntN(20) == 0 {
		t.away[m.name] = t.w.now.Add(time.Duration(t.w.random.IntN(5)) * time.Second)
		return
	}
	m.namespace = m.namespace || t.creates()
	read[m.name], seen[m.name] = m.quota, m.see()
}

// next is the next pass, by what is known of all members and was seen of some.
func (t *attempt) next(known, seen map[string]federation.Seen) federation.Pass {
	o := federation.Observation{Limit: t.limit, Seen: seen}
	for i, m := range t.w.members {
		if t.wishes.fenced[i] {
			o.Fenced = append(o.Fenced, m.name)
		}
	}
	d := t.wishes.spec.Distribution
	for cluster := range seen {
		if d == nil || !t.selects(cluster) && !slices.Contains(o.Fenced, cluster) {
			o.Release = append(o.Release, cluster)
		}
	}
	slices.Sort(o.Release)
	if d == nil {
		o.Delete = t.record.Spec.WhenRemoved == v1alpha1.DeleteQuotas
		return t.ask(o)
	}
	o.Adopt, o.Delete, o.Shared = d.AdoptExisting, d.WhenRemoved == v1alpha1.DeleteQuotas, d.Mode == v1alpha1.Shared
	t.divide(known)
	o.Want = t.plan.Shares
	pass := t.ask(o)
	pass.Spec.WhenRemoved = d.WhenRemoved
	return pass
}

// ask is Record.Next, which must not change its input and gives the same when it
// is asked again.
func (t *attempt) ask(o federation.Observation) federation.Pass {
	if t.w.random.IntN(32) > 0 {
		return t.record.Next(o)
	}
	record := federation.Record{ID: t.record.ID, Spec: *t.record.Spec.DeepCopy()}
	before := o
	before.Seen = maps.Clone(o.Seen)
	pass := t.record.Next(o)
	if diff := cmp.Diff(record, t.record.Record) + cmp.Diff(before, o); diff != "" {
		t.w.fail("the input was changed: %s", diff)
	}
	if diff := cmp.Diff(pass, t.record.Next(o)); diff != "" {
		t.w.fail("asked again, the answer is another: %s", diff)
	}
	return pass
}

func (t *attempt) selects(cluster string) bool {
	i := slices.IndexFunc(t.w.members, func(m *member) bool { return m.name == cluster })
	return t.wishes.selected[i] && !t.wishes.fenced[i]
}

// divide says what each member shall have.
func (t *attempt) divide(known map[string]federation.Seen) {
	var parties []federation.Party
	for _, m := range t.w.members {
		if !t.selects(m.name) {
			continue
		}
		seen, reached := known[m.name]
		p := federation.Party{Cluster: m.name, Silent: !reached, Absent: seen.NoNamespace, Used: seen.Used}
		if !reached {
			p.Used = t.cache.quotas[m.name].Used
		}
		switch t.told[m.name] {
		case federation.TroubleForeign, federation.TroubleScopes, federation.TroubleNoNamespace:
			p.Absent = true
		case federation.TroubleDoesNotFit, federation.TroubleTampered, federation.TroubleCluster, federation.TroubleFenced, federation.TroubleEnding, federation.TroubleForbidden:
		}
		parties = append(parties, p)
	}
	t.plan, t.problem = federation.Divide(t.wishes.spec, t.record.Record, parties, t.memories, t.w.now)
}

// concerned are the members that a pass changes anything of.
func (t *attempt) concerned(after v1alpha1.FleetGrantSpec) []*member {
	var members []*member
	for _, m := range t.w.members {
		was, is := t.record.Row(m.name), federation.Record{Spec: after}.Row(m.name)
		if was != nil && is != nil && !sameRow(was, is) || (was == nil) != (is == nil) {
			members = append(members, m)
		}
	}
	return members
}

// hold marks, outside of the record, the members that get a row.
func (t *attempt) hold(after v1alpha1.FleetGrantSpec) {
	for i := range after.Members {
		t.w.held[after.Members[i].Cluster] = true
	}
}

// conclude notes what came of a pass.
func (t *attempt) conclude(pass federation.Pass) {
	t.memories = t.plan.Memories
	was := t.told
	t.told = maps.Clone(pass.Trouble)
	for cluster, trouble := range was {
		if _, looked := pass.Trouble[cluster]; !looked && t.w.now.Before(t.away[cluster]) {
			t.told[cluster] = trouble
		}
	}
	for cluster, trouble := range pass.Trouble {
		if trouble == federation.TroubleForeign || trouble == federation.TroubleScopes {
			t.away[cluster] = t.w.now.Add(10 * time.Second)
		}
	}
	if t.cache.noted != t.record.ID {
		t.w.note(t.hub)
	}
}

// end deletes the record of what is divided no more, once it is empty.
func (t *attempt) end() {
	if t.wishes.spec.Distribution == nil && len(t.record.Spec.Members) == 0 && t.w.record == t.record {
		t.w.record = nil
		t.w.lost = perKey{}
		t.w.tell("a hub deletes the record")
	}
}

func sameSpec(a, b v1alpha1.FleetGrantSpec) bool {
	return a.Revision == b.Revision && a.WhenRemoved == b.WhenRemoved && federation.Equal(a.Hard, b.Hard) &&
		slices.EqualFunc(a.Members, b.Members, func(x, y v1alpha1.Grant) bool { return sameRow(&x, &y) })
}

func sameRow(a, b *v1alpha1.Grant) bool {
	return a.Cluster == b.Cluster && a.State == b.State && a.Revision == b.Revision && a.QuotaUID == b.QuotaUID &&
		federation.Equal(a.Granted, b.Granted) && federation.Equal(a.Target, b.Target)
}
