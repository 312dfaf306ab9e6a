package federation

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// Record is the spec of a FleetGrant, as it was read from the hub. The protocol,
// and why it holds, is in docs/guarantees.md.
type Record struct {
	ID   types.UID // of the FleetGrant
	Spec v1alpha1.FleetGrantSpec
}

// Seen is a member's local quota as one GET, sent after the record was read,
// has found it. The zero value is a namespace without the quota.
type Seen struct {
	Cluster     types.UID // that has answered
	NoNamespace bool
	Ending      bool // the namespace is being deleted, and the quota is gone
	Present     bool
	UID         types.UID
	Mark        string // the annotation; empty: none
	Hidden      bool   // it lacks the label by which it is watched
	OtherScopes bool   // it counts other objects than the FleetQuota

	Hard, Limit, Used corev1.ResourceList // spec.hard, status.hard, status.used
}

// Share is what one member shall have. A resource that is absent stays as it is.
type Share struct {
	Cluster string
	Hard    corev1.ResourceList
}

// Observation is what one pass over a record rests on.
type Observation struct {
	Limit   corev1.ResourceList // the user's, by the names that are governed
	Seen    map[string]Seen     // member -> its quota, of those that were read
	Want    []Share             // of the members that take part; raised in this order while there is room
	Release []string            // members that take part no more
	Fenced  []string            // members of which a person states that they can use nothing
	Adopt   bool                // quotas that others made may be taken over
	Delete  bool                // the quotas of released members are deleted
	Shared  bool                // the limit does not bind the sum: no promise is made
}

// Pass is what to do: first write Spec, by compare-and-swap on the record as it
// was read; only if that was done, send the Writes, in any order. No answer is
// waited for: the next pass reads again.
type Pass struct {
	Spec    v1alpha1.FleetGrantSpec
	Writes  []Write
	Trouble map[string]Trouble // member -> what keeps it from its share, where a person may have to act
}

// Write is one request to a member.
type Write struct {
	Cluster string
	Kind    WriteKind
	UID     types.UID             // precondition, but for WriteCreate
	Test    string                // precondition: the annotation; empty: there is none
	Mark    string                // the annotation to set; WriteRelease: none, remove it
	Set     corev1.ResourceList   // of spec.hard
	Remove  []corev1.ResourceName // of spec.hard
}

// WriteKind is what a write does.
type WriteKind int

// The kinds of writes.
const (
	WritePatch   WriteKind = iota // set the annotation and these resources of spec.hard
	WriteCreate                   // make the quota
	WriteRelease                  // remove the annotation and what else marks the quota as ours
	WriteDelete                   // delete the quota, in the very version that was read
)

// Trouble is what keeps a member from its share, in one word.
type Trouble string

// The troubles of members.
const (
	TroubleForeign     Trouble = "QuotaOfOthers"    // a quota of this name exists that we did not make
	TroubleScopes      Trouble = "OtherScopes"      // the quota of this name counts other objects
	TroubleNoNamespace Trouble = "NamespaceMissing" // nothing can be used there
	TroubleDoesNotFit  Trouble = "DoesNotFit"       // it uses more than is left of the limit
	TroubleTampered    Trouble = "Tampered"         // others have deleted, edited or replaced the quota
	TroubleCluster     Trouble = "OtherCluster"     // another cluster bears the name of the one that holds the share
	TroubleEnding      Trouble = "NamespaceEnding"  // the namespace is being deleted: nothing can be made there until it is gone
	TroubleForbidden   Trouble = "MayNotWrite"      // the member does not let the hub write quotas
	TroubleFenced      Trouble = "Fenced"           // a person states that nothing can be used there
)

// Next is the next pass over the record.
func (r Record) Next(o Observation) Pass {
	p := pass{
		Record: Record{ID: r.ID, Spec: *r.Spec.DeepCopy()}, o: o,
		sums: corev1.ResourceList{}, writes: map[string]*Write{}, trouble: map[string]Trouble{},
	}
	p.forget()
	for _, cluster := range slices.Sorted(maps.Keys(p.o.Seen)) {
		p.confirm(cluster, p.o.Seen[cluster])
	}
	p.release()
	for _, share := range o.Want {
		p.mend(share.Cluster)
	}
	p.retarget()
	p.account()
	for i := range p.Spec.Members {
		if row := &p.Spec.Members[i]; row.State == v1alpha1.Repairing && p.trouble[row.Cluster] == "" {
			p.trouble[row.Cluster] = TroubleTampered
		}
	}
	return Pass{Spec: p.Spec, Writes: p.sorted(), Trouble: p.trouble}
}

// Waiting is what members shall have and do not have after the pass.
func (p Pass) Waiting(want []Share) []Share {
	var waiting []Share
	after := Record{Spec: p.Spec}
	for _, share := range want {
		open := corev1.ResourceList{}
		row := after.Row(share.Cluster)
		for key, hard := range share.Hard {
			if row == nil || compare(hard, row.Target[key]) != 0 {
				open[key] = hard
			}
		}
		if len(open) > 0 {
			waiting = append(waiting, Share{Cluster: share.Cluster, Hard: open})
		}
	}
	return waiting
}

// Unbounded says whether the row leaves one of these resources without a bound.
func Unbounded(row v1alpha1.Grant, limit corev1.ResourceList) bool {
	for key := range limit {
		if _, ok := row.Granted[key]; !ok {
			return true
		}
	}
	return false
}

// Granted is the sum of what the members of the record may use.
func (r Record) Granted() corev1.ResourceList {
	sum := corev1.ResourceList{}
	for i := range r.Spec.Members {
		addTo(sum, r.Spec.Members[i].Granted)
	}
	return sum
}

// Check finds a resource of which more is granted than the limit on record: what
// must never be written.
func (r Record) Check() error {
	for name, granted := range r.Granted() {
		if limit := r.Spec.Hard[name]; compare(granted, limit) > 0 {
			return fmt.Errorf("%s of %s would be granted, and the limit on record is %s", granted.String(), name, limit.String())
		}
	}
	return nil
}

// Row is the row of a member; nil when it has none. Rows are in the order of the
// members' names.
func (r Record) Row(cluster string) *v1alpha1.Grant {
	at, found := slices.BinarySearchFunc(r.Spec.Members, cluster, func(row v1alpha1.Grant, name string) int {
		return strings.Compare(row.Cluster, name)
	})
	if !found {
		return nil
	}
	return &r.Spec.Members[at]
}

// mark is the annotation of a revision. A record that replaces a lost one has
// another ID, so that no annotation ever comes twice.
func (r Record) mark(revision int64) string {
	return string(r.ID) + "." + strconv.FormatInt(revision, 10)
}

// revision reads an annotation; false when it is not one of this record.
func (r Record) revision(mark string) (int64, bool) {
	number, ours := strings.CutPrefix(mark, string(r.ID)+".")
	if !ours {
		return 0, false
	}
	revision, err := strconv.ParseInt(number, 10, 64)
	return revision, err == nil
}

// Current says whether the quota bears the row's last write.
func (r Record) Current(row *v1alpha1.Grant, seen Seen) bool {
	revision, ours := r.revision(seen.Mark)
	return seen.Present && ours && revision == row.Revision && (row.QuotaUID == seen.UID || row.QuotaUID == "")
}

// pass is a pass under way: the record as it shall be written, and what follows.
type pass struct {
	Record
	o       Observation
	sums    corev1.ResourceList // see granted
	writes  map[string]*Write   // by member
	trouble map[string]Trouble
}

// forget drops the rows of members that can use nothing, and what is governed no
// more. Target keeps the names that are still to be removed from the member. What
// fenced members show, and other clusters of a member's name, is not looked at.
func (p *pass) forget() {
	p.o.Seen = maps.Clone(p.o.Seen)
	for _, cluster := range p.o.Fenced {
		delete(p.o.Seen, cluster)
		p.trouble[cluster] = TroubleFenced
	}
	maps.DeleteFunc(p.o.Seen, func(cluster string, seen Seen) bool {
		row := p.Row(cluster)
		other := row != nil && row.ClusterUID != "" && seen.Cluster != row.ClusterUID
		if other {
			p.trouble[cluster] = TroubleCluster
		}
		return other
	})
	p.Spec.Members = slices.DeleteFunc(p.Spec.Members, func(row v1alpha1.Grant) bool {
		return p.o.Seen[row.Cluster].NoNamespace || slices.Contains(p.o.Fenced, row.Cluster)
	})
	for i := range p.Spec.Members {
		maps.DeleteFunc(p.Spec.Members[i].Granted, p.ungoverned)
	}
	maps.DeleteFunc(p.Spec.Hard, p.ungoverned)
}

func (p *pass) ungoverned(key corev1.ResourceName, _ resource.Quantity) bool {
	_, ok := p.o.Limit[key]
	return !ok
}

// confirm credits the member what its quota shows in one version to be in force
// there, and believes what is shown of a quota that bears our last write.
func (p *pass) confirm(cluster string, seen Seen) {
	row := p.Row(cluster)
	if row == nil || row.State == v1alpha1.Releasing || !p.Current(row, seen) {
		return
	}
	row.QuotaUID = seen.UID
	maps.DeleteFunc(row.Target, func(key corev1.ResourceName, q resource.Quantity) bool {
		_, there := seen.Hard[key]
		return !there && p.ungoverned(key, q)
	})
	if row.State == v1alpha1.Repairing {
		p.repaired(row, seen)
		return
	}
	for key := range p.o.Limit {
		p.credit(row, seen, key)
	}
	if row.State == v1alpha1.Recovering && !Unbounded(*row, p.o.Limit) {
		row.State = ""
	}
}

// credit settles one resource of a row that bears our last write.
func (p *pass) credit(row *v1alpha1.Grant, seen Seen, key corev1.ResourceName) {
	hard, most, known := inForce(seen, key)
	if !known {
		return
	}
	_, bounded := row.Granted[key]
	target := row.Target[key]
	switch {
	case bounded && (compare(hard, target) != 0 || compare(most.limit, target) > 0):
		return // not in force yet
	case bounded:
		p.settle(row, key, larger(target, most.used), target)
	case row.State == v1alpha1.Recovering:
		p.grant(row, key, most.all)
		assign(&row.Target, key, hard)
	case !p.stopped(key):
		p.settle(row, key, most.all, hard)
	}
}

// repaired believes a quota that others had changed, once it bears our write. What
// was not bounded there before does not matter for that.
func (p *pass) repaired(row *v1alpha1.Grant, seen Seen) {
	whole := true
	for key := range row.Granted {
		hard, most, known := inForce(seen, key)
		whole = known && p.settle(row, key, most.all, hard) && whole
	}
	if whole {
		row.State = ""
	}
}

// settle sets what a member holds of one resource, unless that does not fit
// under the limit on record.
func (p *pass) settle(row *v1alpha1.Grant, key corev1.ResourceName, granted, target resource.Quantity) bool {
	sum := p.granted(key, row)
	sum.Add(granted)
	if !p.o.Shared && compare(sum, larger(p.Spec.Hard[key], p.o.Limit[key])) > 0 {
		p.trouble[row.Cluster] = TroubleDoesNotFit
		return false
	}
	p.grant(row, key, granted)
	assign(&row.Target, key, target)
	return true
}

// strength is what one version of a quota lets a member use.
type strength struct{ limit, used, all resource.Quantity }

// inForce reads one resource of a quota. It is known only where status has it.
func inForce(seen Seen, key corev1.ResourceName) (hard resource.Quantity, most strength, known bool) {
	hard, set := seen.Hard[key]
	limit, limited := seen.Limit[key]
	used, counted := seen.Used[key]
	return hard, strength{limit: limit, used: used, all: larger(hard, larger(limit, used))}, set && limited && counted
}

// grant sets what a member may use of one resource.
func (p *pass) grant(row *v1alpha1.Grant, key corev1.ResourceName, granted resource.Quantity) {
	sum := p.granted(key, row)
	sum.Add(granted)
	p.sums[key] = sum
	assign(&row.Granted, key, granted)
}

// granted is the sum of what the members but one hold of a resource. It is added
// up once, and again only after a row has come or gone.
func (p *pass) granted(key corev1.ResourceName, but *v1alpha1.Grant) resource.Quantity {
	sum, known := p.sums[key]
	if !known {
		for i := range p.Spec.Members {
			sum.Add(p.Spec.Members[i].Granted[key])
		}
		p.sums[key] = sum
	}
	left := sum.DeepCopy()
	if but != nil {
		left.Sub(but.Granted[key])
	}
	return left
}

// room is what the limit leaves beside what the members but one hold.
func (p *pass) room(key corev1.ResourceName, but *v1alpha1.Grant) resource.Quantity {
	limit := p.o.Limit[key]
	left := limit.DeepCopy()
	left.Sub(p.granted(key, but))
	return larger(left, resource.Quantity{})
}

// stopped says that a resource may not rise: a member may hold more of it than is
// on record.
func (p *pass) stopped(key corev1.ResourceName) bool {
	return slices.ContainsFunc(p.Spec.Members, func(row v1alpha1.Grant) bool {
		_, bounded := row.Granted[key]
		return row.State == v1alpha1.Recovering && !bounded || row.State == v1alpha1.Repairing && bounded
	})
}

// account lets the limit on record follow the user's: up at once, down as far as
// what is granted allows.
func (p *pass) account() {
	for key, limit := range p.o.Limit {
		assign(&p.Spec.Hard, key, larger(limit, p.granted(key, nil)))
	}
}
