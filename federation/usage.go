package federation

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// Question asks what a quota's resources use in one namespace.
type Question struct {
	Namespace string
	Resources []corev1.ResourceName // as in hard, under any of their names
	Selector  evaluator.Selector    // the quota's scopes
}

// Part is one member's part of the answer.
type Part struct {
	Member       string
	Phase        v1alpha1.Phase
	LastObserved time.Time             // when Used was last current; zero where that is now, never or not known
	Used         corev1.ResourceList   // only what is or was once known
	Unknown      []corev1.ResourceName // whose current use is not known, sorted
	Reason       string                // in one word; empty: nothing to say
}

// Usage is the answer: the sum over the members, and each one's part.
type Usage struct {
	Used  corev1.ResourceList // a resource for which no member has a number is absent
	Parts []Part              // in the order of the members asked
}

// The reasons of a Part that the ledger itself gives.
const (
	ReasonNotServed        = "NotServed"        // the member serves no kind that the resource counts
	ReasonSyncing          = "Syncing"          // the first list is not complete yet
	ReasonReconnecting     = "Reconnecting"     // the numbers are of the engagement before
	ReasonNamespaceMissing = "NamespaceMissing" // the member does not have the namespace
)

// Usage sums over the members named, recomputed from the running sums.
func (l *Ledger) Usage(q Question, members []string) Usage {
	usage := Usage{Parts: make([]Part, 0, len(members))}
	for _, name := range members {
		usage.Parts = append(usage.Parts, l.Part(q, name))
	}
	usage.Used = total(usage.Parts)
	return usage
}

// Part answers for one member.
func (l *Ledger) Part(q Question, name string) Part {
	l.mu.RLock()
	defer l.mu.RUnlock()
	part := Part{Member: name, Phase: v1alpha1.NeverSynced, Used: make(corev1.ResourceList, len(q.Resources))}
	keys := slices.Clone(q.Resources)
	slices.Sort(keys)
	m := l.members[name]
	if m == nil {
		part.Unknown = keys
		return part
	}
	view := m.view()
	defer view.close()
	var all standing
	for _, key := range keys {
		used, s := view.count(q, key)
		if s.known {
			part.Used[key] = used
		}
		if !s.known || s.failing {
			part.Unknown = append(part.Unknown, key)
		}
		all.join(s)
	}
	all.settle(&part, m.reach)
	if part.Phase == v1alpha1.Live && view.lacks(q.Namespace) {
		part.Reason = ReasonNamespaceMissing
	}
	return part
}

// standing says how far a number, or all of them, can be relied on.
type standing struct {
	known    bool   // there is one
	syncing  bool   // there will be one, once a first list is complete
	failing  bool   // its kind cannot be counted at present
	old      bool   // it is of an engagement that has ended
	replaced bool   // ... and the next has begun
	reason   string // why it is not current, in one word
}

// join notes one number more. What is syncing is told first, then the reason
// that was noted first.
func (s *standing) join(o standing) {
	if o.syncing && !s.syncing || s.reason == "" {
		s.reason = o.reason
	}
	s.known = s.known || o.known
	s.syncing = s.syncing || o.syncing
	s.failing = s.failing || o.failing
	s.old = s.old || o.old
	s.replaced = s.replaced || o.replaced
}

// settle derives a part's phase, reason and time from all of its numbers.
func (s *standing) settle(part *Part, reach Reach) {
	part.Phase = s.phase(reach.Phase, len(part.Unknown))
	switch {
	case reach.Phase != v1alpha1.Live, part.Phase != v1alpha1.Live && reach.Reason != "":
		part.Reason = reach.Reason
	case part.Phase == v1alpha1.Stale:
		part.Reason = ReasonReconnecting
	default:
		part.Reason = s.reason
	}
	if away(part.Phase) && !s.replaced {
		part.LastObserved = reach.LastContact
	}
}

// phase derives a part's phase from how far the member answers, and from its
// numbers, of which so many are not known.
func (s *standing) phase(reach v1alpha1.Phase, unknown int) v1alpha1.Phase {
	empty := !s.known && unknown > 0
	switch {
	case away(reach) && !empty:
		return reach
	case reach != v1alpha1.Live, empty && s.syncing:
		return v1alpha1.NeverSynced
	case s.old:
		return v1alpha1.Stale
	case unknown > 0:
		return v1alpha1.Partial
	}
	return v1alpha1.Live
}

// away says whether a phase is of a member that has not answered lately.
func away(phase v1alpha1.Phase) bool {
	return phase == v1alpha1.Stale || phase == v1alpha1.Unreachable
}

// total sums the parts. A resource for which no part has a number is absent.
func total(parts []Part) corev1.ResourceList {
	sums := corev1.ResourceList{}
	for i := range parts {
		addTo(sums, parts[i].Used)
	}
	return sums
}

// view reads the books of one member, all locked. The caller holds the lock of
// the Ledger.
type view []*Book // oldest first

func (m *member) view() view {
	for _, book := range m.books {
		book.mu.Lock()
	}
	return m.books
}

func (v view) close() {
	for _, book := range v {
		book.mu.Unlock()
	}
}

// count answers for one resource.
func (v view) count(q Question, key corev1.ResourceName) (resource.Quantity, standing) {
	used := resource.Quantity{Format: resource.DecimalSI}
	if len(v) == 0 {
		return used, standing{syncing: true, reason: ReasonSyncing}
	}
	kinds := v[len(v)-1].set.Kinds(key)
	if len(kinds) == 0 {
		return used, standing{reason: ReasonNotServed}
	}
	name := evaluator.Canonical(key)
	var all standing
	missing := false
	for _, gr := range kinds {
		k, s := v.page(gr)
		all.join(s)
		if k == nil {
			missing = true
			continue
		}
		k.sum(q, name, &used)
	}
	for _, gr := range v[len(v)-1].set.Needs(key) {
		k, s := v.page(gr)
		all.join(s)
		missing = missing || k == nil
	}
	all.known = !missing
	return used, all
}

// page finds the newest complete numbers of a kind; nil when there are none.
func (v view) page(gr schema.GroupResource) (*kind, standing) {
	var s standing
	failsNow := false
	for i, book := range slices.Backward(v) {
		k := book.kinds[gr]
		if k == nil {
			continue
		}
		newest := i == len(v)-1
		if k.trouble != "" && !s.failing {
			s.failing, s.reason = true, k.trouble
			failsNow = newest && !book.closed
		}
		if k.synced {
			s.known = true
			s.old = !failsNow && (!newest || book.closed)
			s.replaced = s.old && !newest
			return k, s
		}
	}
	if !s.failing {
		s.syncing, s.reason = true, ReasonSyncing
	}
	return nil, s
}

// lacks says whether the member is known not to have a namespace.
func (v view) lacks(ns string) bool {
	k, s := v.page(Namespaces)
	return s.known && !s.failing && !s.old && k.namespaces[ns] == nil
}

// sum adds what the objects that the question asks for use of a resource.
func (k *kind) sum(q Question, name corev1.ResourceName, used *resource.Quantity) {
	page := k.namespaces[q.Namespace]
	if page == nil {
		return
	}
	for class, s := range page.sums {
		if total := s.totals[name]; total != nil && q.Selector.Matches(class) {
			used.Add(*total)
		}
	}
}

// Lacks says whether a member is known not to have a namespace.
func (l *Ledger) Lacks(name, namespace string) bool {
	l.mu.RLock()
	defer l.mu.RUnlock()
	m := l.members[name]
	if m == nil {
		return false
	}
	view := m.view()
	defer view.close()
	return view.lacks(namespace)
}
