package controller

import (
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation"
)

// clockError is how far a member's clock may be from what probes say of it:
// they read it to the second, and note only what differs by clusters' noise.
const clockError = 3 * time.Second

// releases knows, for each local quota of a member, how far its use may be
// lowered.
type releases struct {
	options federation.ReleaseOptions

	mu     sync.Mutex                                // guards all below, and which versions the keepers have seen
	keep   map[string]map[string]*keeper             // namespace -> name of the quota ->
	newest map[schema.GroupResource]time.Time        // by the hub's clock, when the newest object that was seen was created
	lists  map[string]map[schema.GroupResource]*list // namespace -> kind ->
}

// keeper is one local quota.
type keeper struct {
	key     types.NamespacedName
	uid     types.UID
	scopes  evaluator.Selector
	spec    corev1.ResourceQuotaSpec // that the scopes are of
	release *federation.Release
	quota   *corev1.ResourceQuota // the newest version that was seen

	turn      sync.Mutex // held by who looks after the quota; guards all below
	nextList  time.Time  // before that no list says anything new
	nextLower time.Time  // no write that only lowers before
}

func newReleases(settle time.Duration) *releases {
	return &releases{
		options: federation.ReleaseOptions{Settle: settle, ClockError: clockError},
		keep:    map[string]map[string]*keeper{}, newest: map[schema.GroupResource]time.Time{},
		lists: map[string]map[schema.GroupResource]*list{},
	}
}

// saw notes a version of a quota, newer or not than those before. One that was
// made anew, or whose scopes have changed, begins without a past.
func (r *releases) saw(quota *corev1.ResourceQuota, now time.Time) error {
	bound(quota)
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.keep[quota.Namespace][quota.Name]
	if k != nil && !newer(quota, k.quota) {
		return nil
	}
	if k == nil || k.uid != quota.UID || !sameScopes(k.spec, quota.Spec) {
		scopes, err := evaluator.NewSelector(quota.Spec.Scopes, quota.Spec.ScopeSelector)
		if err != nil {
			delete(r.keep[quota.Namespace], quota.Name)
			return err
		}
		k = &keeper{
			key: keyOf(quota), uid: quota.UID, scopes: scopes, spec: quota.Spec,
			release: federation.NewRelease(scopes, r.options),
		}
		if r.keep[quota.Namespace] == nil {
			r.keep[quota.Namespace] = map[string]*keeper{}
		}
		r.keep[quota.Namespace][quota.Name] = k
	}
	k.quota = quota
	k.release.Saw(quota.ResourceVersion, quota.Status.Used, now)
	return nil
}

func sameScopes(a, b corev1.ResourceQuotaSpec) bool {
	return equality.Semantic.DeepEqual(a.Scopes, b.Scopes) && equality.Semantic.DeepEqual(a.ScopeSelector, b.ScopeSelector)
}

// newer says whether an object is a later version than another.
func newer(a, b metav1.Object) bool { return after(a.GetResourceVersion(), b.GetResourceVersion()) }

// after says whether a resourceVersion is later than another; any is later than
// none, and what cannot be compared is if it differs.
func after(a, b string) bool {
	if b == "" {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err != nil && a != b || order > 0
}

// stored notes what our own write has become.
func (r *releases) stored(k *keeper, quota *corev1.ResourceQuota, now time.Time) {
	bound(quota)
	r.mu.Lock()
	defer r.mu.Unlock()
	k.release.Stored(quota.ResourceVersion, quota.Status.Used, now)
	if newer(quota, k.quota) {
		k.quota = quota
	}
}

// forget drops a quota that was deleted.
func (r *releases) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.keep[key.Namespace], key.Name)
	if len(r.keep[key.Namespace]) == 0 {
		delete(r.keep, key.Namespace)
		delete(r.lists, key.Namespace)
	}
}

// of finds a quota, and its newest version; nil when there is none.
func (r *releases) of(key types.NamespacedName) (*keeper, *corev1.ResourceQuota) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.keep[key.Namespace][key.Name]
	if k == nil {
		return nil, nil
	}
	return k, k.quota
}

// changed notes a change of an object's cost. The object's creation is by the
// hub's clock. It names the quotas that limited what is gone. The book is locked.
func (r *releases) changed(c federation.Change, freed func(types.NamespacedName)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.Was == nil && c.Created.After(r.newest[c.Kind]) {
		r.newest[c.Kind] = c.Created
	}
	for _, k := range r.keep[c.Namespace] {
		k.release.Moved(c)
		if ended(c) && k.scopes.Matches(c.Was.Class) {
			freed(k.key)
		}
	}
}

// ended says whether an object is gone or a pod has finished, which every quota
// controller must notice. That a pod is past its grace is no event.
func ended(c federation.Change) bool {
	if c.Was == nil || c.Is == nil {
		return c.Is == nil
	}
	return !c.Created.IsZero() && counts(c.Was, corev1.ResourcePods) && !counts(c.Is, corev1.ResourcePods)
}

func counts(cost *federation.Cost, name corev1.ResourceName) bool {
	return slices.ContainsFunc(cost.Amounts, func(a evaluator.Amount) bool { return a.Name == name })
}

// currentAt is until when the ledger is known to hold everything of some kinds:
// an object that was seen is of a later time than all that was stored before.
func (r *releases) currentAt(kinds map[schema.GroupResource]struct{}) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	var oldest time.Time
	for kind := range kinds {
		at := r.newest[kind].Add(-clockError)
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	return oldest
}

// costs passes a change of an object's cost on. The book is locked.
func (e *engagement) costs(c federation.Change) {
	if !c.Created.IsZero() {
		now := time.Now()
		c.Created = c.Created.Add(now.Sub(e.conn.Now(now)))
	}
	e.local.releases.changed(c, func(key types.NamespacedName) { e.local.freed(key, c) })
}

// charged charges the objects of a list.
func (p *page) charged(list runtime.Object) ([]federation.Object, error) {
	var objects []federation.Object
	err := meta.EachListItem(list, func(obj runtime.Object) error {
		slim, err := p.slim(obj)
		if err != nil {
			return err
		}
		o, err := p.object(slim)
		objects = append(objects, o)
		return err
	})
	return objects, err
}
