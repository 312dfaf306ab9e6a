package synthetic

import (
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Member is one cluster of the fleet.
type Member struct {
	Name  string
	URL   string
	Token string

	number    uint32
	version   string
	shape     *shape
	store     *store
	pods      *table[pod]
	services  *table[thing]
	quotas    *table[thing]
	tables    map[schema.GroupVersionResource]served
	kinds     []kind
	discovery discovery

	live    []uint32 // the numbers of all pods, in no order; guarded by the store's lock, as are those below
	next    uint32   // the number of the next pod
	use     []Use    // of each namespace
	created time.Time
}

func newMember(number int, o Options, s *shape) *Member {
	m := &Member{
		Name: fmt.Sprintf("member-%03d", number), Token: fmt.Sprintf("synthetic-%03d-%08x", number, uint64(number)*2654435761+o.Seed),
		number: uint32(number), version: o.Version, shape: s, store: &store{revision: firstRevision},
		kinds: kinds(), tables: map[schema.GroupVersionResource]served{}, use: make([]Use, o.Namespaces), created: time.Now(),
	}
	m.discovery = newDiscovery(m.kinds)
	var namespaces *table[thing]
	for _, k := range m.kinds {
		if k.Resource == "pods" {
			m.pods = &table[pod]{kind: k, history: newHistory(m.store, o.History, s.less), codec: pods{shape: s, member: m.number}}
			m.tables[k.GroupVersionResource] = m.pods
			continue
		}
		t := &table[thing]{kind: k, history: newHistory(m.store, o.History, lessThing), codec: things{k}}
		m.tables[k.GroupVersionResource] = t
		switch k.Resource {
		case "namespaces":
			namespaces = t
		case "services":
			m.services = t
		case "resourcequotas":
			m.quotas = t
		}
	}
	m.fill(o, namespaces)
	return m
}

// fill makes all that is there at first. Nobody has to be told.
func (m *Member) fill(o Options, namespaces *table[thing]) {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	for _, name := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease} {
		m.set(namespaces, m.namespace(name))
	}
	for i := range o.Namespaces {
		name := namespaceName(i)
		m.set(namespaces, m.namespace(name))
		for n := range o.Services {
			m.set(m.services, m.service(name, n))
			m.use[i].Services++
		}
		if o.Quotas {
			m.set(m.quotas, m.quota(name))
		}
	}
	for range o.Pods {
		m.create()
	}
	for _, t := range m.tables {
		t.forget()
	}
}

func (m *Member) meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, CreationTimestamp: metav1.NewTime(m.created.Truncate(time.Second)),
		UID: types.UID(fmt.Sprintf("%08x-1d2c-4e5f-8a9b-%012x", m.number, m.store.revision)),
	}
}

func (m *Member) namespace(name string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: m.meta("", name), Status: corev1.NamespaceStatus{Phase: corev1.NamespaceActive}}
	n.Labels = map[string]string{corev1.LabelMetadataName: name}
	n.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
	return n
}

func (m *Member) service(namespace string, i int) *corev1.Service {
	const port = 8080
	return &corev1.Service{
		ObjectMeta: m.meta(namespace, fmt.Sprintf("web-%02d", i)),
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: fmt.Sprintf("10.96.1.%d", i%250+1),
			Ports: []corev1.ServicePort{{Name: "http", Port: port, Protocol: corev1.ProtocolTCP}},
		},
	}
}

func (m *Member) quota(namespace string) *corev1.ResourceQuota {
	const plenty = 1 << 50
	hard := corev1.ResourceList{}
	for _, key := range []corev1.ResourceName{"pods", "requests.cpu", "requests.memory", "limits.cpu", "limits.memory", "services"} {
		hard[key] = *resource.NewQuantity(plenty, resource.DecimalSI)
	}
	return &corev1.ResourceQuota{ObjectMeta: m.meta(namespace, "compute"), Spec: corev1.ResourceQuotaSpec{Hard: hard}}
}

// create makes one pod more. The caller holds the lock.
func (m *Member) create() pod {
	m.store.revision++
	p := pod{number: m.next, version: m.offset(), created: uint32(time.Now().Unix())}
	m.next++
	m.live = append(m.live, p.number)
	m.count(p, +1)
	m.pods.history.note(event[pod]{revision: m.store.revision, what: added, now: p})
	return p
}

// offset is the present revision as a pod keeps it.
func (m *Member) offset() uint32 { return uint32(m.store.revision - firstRevision) }

func (m *Member) count(p pod, sign int64) {
	namespace, workload := m.shape.place(p.number)
	m.use[namespace].add(m.shape.costs[workload], p.state, sign)
}

// finish lets a pod end well. The caller holds the lock.
func (m *Member) finish(p pod) {
	m.count(p, -1)
	m.store.revision++
	now := p
	now.state, now.version = finished, m.offset()
	m.count(now, +1)
	m.pods.history.note(event[pod]{revision: m.store.revision, what: modified, before: p, now: now})
}

// remove deletes a pod at once: the one at a place among those that live. As at a
// real server, its time is up first, and then it is gone. The caller holds the
// lock.
func (m *Member) remove(at int) {
	p, _ := m.pods.history.objects.Get(pod{number: m.live[at]})
	m.live[at] = m.live[len(m.live)-1]
	m.live = m.live[:len(m.live)-1]
	m.count(p, -1)
	m.store.revision++
	last := p
	last.state, last.version = p.state|leaving, m.offset()
	m.pods.history.note(event[pod]{revision: m.store.revision, what: modified, before: p, now: last})
	m.store.revision++
	gone := last
	gone.version = m.offset()
	m.pods.history.note(event[pod]{revision: m.store.revision, what: deleted, before: last, now: gone})
}

// Truth is what each namespace uses.
func (m *Member) Truth() map[string]Use {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	truth := map[string]Use{}
	for i, use := range m.use {
		truth[namespaceName(i)] = use
	}
	return truth
}

// Forget drops the history, so that every version of before is too old.
func (m *Member) Forget() {
	m.store.mu.Lock()
	defer m.store.mu.Unlock()
	m.store.revision++ // something else has happened since
	for _, t := range m.tables {
		t.forget()
	}
}

var _ http.Handler = (*Member)(nil)
