package federation_test

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/federation"
)

const (
	simKeys = 3
	absent  = -1
)

// simNames are the resources of the simulation, and simUnits the least that is
// used or limited of each; cpu is in thousandths of a core.
var (
	simNames = [simKeys]corev1.ResourceName{"pods", "requests.cpu", "count/jobs.batch"}
	simUnits = [simKeys]int{1, 10, 1}
)

// perKey is a ResourceList in numbers; absent where it lacks a resource.
type perKey [simKeys]int

var nothingThere = perKey{absent, absent, absent}

func (a perKey) list() corev1.ResourceList {
	l := make(corev1.ResourceList, simKeys)
	for k, n := range a {
		if n != absent {
			l[simNames[k]] = simQuantity(k, n)
		}
	}
	return l
}

func simQuantity(k, n int) resource.Quantity {
	if simUnits[k] > 1 {
		return *resource.NewMilliQuantity(int64(n), resource.DecimalSI)
	}
	return *resource.NewQuantity(int64(n), resource.DecimalSI)
}

func perKeyOf(l corev1.ResourceList) perKey {
	a := nothingThere
	for k, name := range simNames {
		q, ok := l[name]
		switch {
		case !ok:
		case simUnits[k] > 1:
			a[k] = int(q.MilliValue())
		default:
			a[k] = int(q.Value())
		}
	}
	return a
}

// localQuota is a ResourceQuota as the API server stores it.
type localQuota struct {
	uid     types.UID // empty: there is none
	version int       // counts its changes
	mark    string    // the annotation
	label   bool
	scopes  bool // that are others than the FleetQuota's

	hard, limit, used perKey // spec.hard, status.hard, status.used
}

// member is one cluster with the namespace, its quota, and what runs there.
type member struct {
	name      string
	namespace bool
	cut       bool // the hub cannot reach it
	dead      bool // its quota controller does nothing
	running   [simKeys]int
	quota     localQuota

	looked etcd       // what its quota controller has read and counted
	copied localQuota // of one that was deleted; a user may have kept it
	backup etcd

	// Only for the check.
	covered [simKeys]bool // by the promise
	doubted bool          // others have changed the quota, or the record was put back, and no write of ours has come since
	harmed  bool          // others have ever changed the quota or the record
}

// etcd is what a member stores.
type etcd struct {
	quota   localQuota
	running [simKeys]int
}

func newMember(name string) *member {
	return &member{name: name, namespace: true, quota: localQuota{hard: nothingThere, limit: nothingThere, used: nothingThere}}
}

// String is the quota in few words.
func (m *member) String() string {
	q := &m.quota
	if q.uid == "" {
		return fmt.Sprintf("%s without a quota, namespace %t, running %v", m.name, m.namespace, m.running)
	}
	return fmt.Sprintf("%s #%s mark %q label %t hard %v, status hard %v used %v, running %v, covered %v, doubted %t",
		m.name, q.uid, q.mark, q.label, q.hard, q.limit, q.used, m.running, m.covered, m.doubted)
}

// see is a GET.
func (m *member) see() federation.Seen {
	q := &m.quota
	switch {
	case !m.namespace:
		return federation.Seen{NoNamespace: true}
	case q.uid == "":
		return federation.Seen{}
	}
	return federation.Seen{
		Present: true, UID: q.uid, Mark: q.mark, Hidden: !q.label, OtherScopes: q.scopes,
		Hard: q.hard.list(), Limit: q.limit.list(), Used: q.used.list(),
	}
}

// look and write are the quota controller: what it writes is of the version that
// it has read, or it is refused. A write that changes nothing is none.
func (m *member) look() { m.looked = etcd{m.quota, m.running} }

func (m *member) write() {
	q := &m.quota
	if q.uid == "" || q.uid != m.looked.quota.uid || q.version != m.looked.quota.version {
		return
	}
	limit, used := q.hard, nothingThere
	for k, hard := range q.hard {
		if hard != absent {
			used[k] = m.looked.running[k]
		}
	}
	if q.limit != limit || q.used != used {
		q.limit, q.used = limit, used
		q.version++
	}
}

// sync is the quota controller without a pause.
func (m *member) sync() {
	if !m.dead {
		m.look()
		m.write()
	}
}

// start is an object that asks for admission, which looks at the status alone.
func (m *member) start(cost [simKeys]int) {
	const enough = 15
	q := &m.quota
	if !m.namespace {
		return
	}
	for k, n := range cost {
		limited := n > 0 && q.limit[k] != absent
		if limited && (q.used[k] == absent || q.used[k]+n > q.limit[k]) || m.running[k]+n > enough*simUnits[k] {
			return
		}
	}
	for k, n := range cost {
		m.running[k] += n
		switch {
		case n == 0:
		case q.limit[k] != absent:
			q.used[k] += n
			q.version++
		default:
			m.looked.quota = localQuota{} // that the count may miss it is no matter of grants: docs/correctness.md
		}
	}
}

// letter is a request on its way: to a member, or to the hub's API server.
type letter struct {
	federation.Write

	to     *member
	read   localQuota // what the hub had read there
	record *commit
}

// String is the request in few words.
func (l *letter) String() string {
	if l.record != nil {
		return "the record of revision " + strconv.FormatInt(l.record.pass.Spec.Revision, 10)
	}
	kinds := map[federation.WriteKind]string{
		federation.WritePatch: "patch", federation.WriteCreate: "create", federation.WriteRelease: "release", federation.WriteDelete: "delete",
	}
	return fmt.Sprintf("%s %s #%s test %q mark %q hard %v remove %v",
		l.to.name, kinds[l.Kind], l.UID, l.Test, l.Mark, perKeyOf(l.Set), l.Remove)
}

// take does what a request asks for, as the API server would. It is false when
// the request is refused.
func (m *member) take(l *letter, newID func() types.UID) bool {
	q := &m.quota
	switch {
	case l.Kind == federation.WriteCreate:
		if q.uid != "" || !m.namespace {
			return false
		}
		m.create(localQuota{uid: newID(), mark: l.Mark, label: true, hard: perKeyOf(l.Set)})
		m.doubted = false
		return true
	case !l.passes(q):
		return false
	}
	switch l.Kind {
	case federation.WriteDelete:
		m.remove()
	case federation.WriteRelease:
		q.mark, q.label = "", false
	case federation.WritePatch, federation.WriteCreate:
		q.mark, q.label, q.hard = l.Mark, true, l.patched(q.hard)
		m.doubted = false
	}
	q.version++
	return true
}

// passes says whether the preconditions of a request hold.
func (l *letter) passes(q *localQuota) bool {
	if q.uid == "" || q.uid != l.UID {
		return false
	}
	if l.Kind == federation.WriteDelete {
		return q.version == l.read.version
	}
	for _, name := range l.Remove {
		if q.hard[slices.Index(simNames[:], name)] == absent {
			return false // a JSON Patch cannot remove what is not there
		}
	}
	return q.mark == l.Test && (l.Kind == federation.WritePatch || q.label || !l.read.label)
}

// patched is what a patch makes of spec.hard.
func (l *letter) patched(hard perKey) perKey {
	for k, n := range perKeyOf(l.Set) {
		if n != absent {
			hard[k] = n
		}
		if slices.Contains(l.Remove, simNames[k]) {
			hard[k] = absent
		}
	}
	return hard
}

// create makes a quota, which has no status yet.
func (m *member) create(q localQuota) {
	m.quota = q
	m.quota.version, m.quota.limit, m.quota.used = 1, nothingThere, nothingThere
}

func (m *member) remove() {
	m.copied = m.quota
	m.quota = newMember("").quota
}

// doubt ends what the promise says of the member, until a write of ours has come.
func (m *member) doubt() {
	m.covered = [simKeys]bool{}
	m.doubted, m.harmed = m.quota.uid != "", true
}
