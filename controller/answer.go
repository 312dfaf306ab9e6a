package controller

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/federation"
)

// answers decides for each local quota of a member in mode Auto whether another
// controller keeps its status. A live one must answer two calls: spec.hard
// differs from status.hard, and less is used than the status says after an
// object was deleted. A quota that does not change for a while although it is
// called is ours, until somebody else does what only a controller does. Any
// other difference is drift, and nobody's business here.
type answers struct {
	within time.Duration // what another controller is given

	mu     sync.Mutex // guards quotas
	quotas map[types.NamespacedName]*answer
}

// answer is what is known of one quota.
type answer struct {
	ours    bool
	freed   bool                       // an object was deleted, and the status has not been right since
	sending corev1.ResourceQuotaStatus // what we are writing, as long as no answer has come
	written string                     // the resourceVersion of our last write
	called  time.Time                  // when the call that is open was first seen; zero: none is
	version string                     // the quota's resourceVersion then
}

func newAnswers(within time.Duration) *answers {
	return &answers{within: within, quotas: map[types.NamespacedName]*answer{}}
}

// of finds or makes the answer of a quota. The caller holds the lock.
func (a *answers) of(quota *corev1.ResourceQuota) *answer {
	key := types.NamespacedName{Namespace: quota.Namespace, Name: quota.Name}
	entry := a.quotas[key]
	if entry == nil {
		entry = &answer{}
		a.quotas[key] = entry
	}
	return entry
}

// seen notes a change of a quota and says whether it hands the quota back:
// somebody else changed status.hard or lowered used. Admission does neither.
func (a *answers) seen(before, now *corev1.ResourceQuota) (handedBack bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	entry := a.of(now)
	if before == nil || !entry.ours || now.ResourceVersion == entry.written || now.ResourceVersion == before.ResourceVersion {
		return false
	}
	if !foreign(before.Status, now.Status) || !foreign(entry.sending, now.Status) {
		return false
	}
	entry.ours, entry.called = false, time.Time{}
	return true
}

// freed notes that a counted object of the quota was deleted.
func (a *answers) freed(quota *corev1.ResourceQuota) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of(quota).freed = true
}

// due says whether a quota that should have this status is ours to write. If
// that is not decided yet it says how long to wait.
func (a *answers) due(quota *corev1.ResourceQuota, want corev1.ResourceQuotaStatus, now time.Time) (ours bool, wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	entry := a.of(quota)
	switch {
	case entry.ours:
		return true, 0
	case !entry.calls(quota.Status, want):
		entry.called, entry.freed = time.Time{}, false
		return false, 0
	case entry.called.IsZero() || entry.version != quota.ResourceVersion:
		entry.called, entry.version = now, quota.ResourceVersion
	}
	if wait := entry.called.Add(a.within).Sub(now); wait > 0 {
		return false, wait
	}
	entry.ours, entry.freed, entry.called = true, false, time.Time{}
	return true, 0
}

// writing notes what we are about to write. Its watch event may come before the
// answer does.
func (a *answers) writing(quota *corev1.ResourceQuota, status corev1.ResourceQuotaStatus) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of(quota).sending = status
}

// wrote notes how the write ended: with the quota as it is now, or as it was
// when the write failed.
func (a *answers) wrote(quota *corev1.ResourceQuota) {
	a.mu.Lock()
	defer a.mu.Unlock()
	entry := a.of(quota)
	entry.sending, entry.written = corev1.ResourceQuotaStatus{}, quota.ResourceVersion
}

func (a *answers) forget(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.quotas, key)
}

// calls says whether a live controller would have to change this status.
func (e *answer) calls(have, want corev1.ResourceQuotaStatus) bool {
	return !federation.Equal(have.Hard, want.Hard) || e.freed && lowered(have.Used, want.Used)
}

// foreign says whether a status was changed by a controller after what it was
// before: admission changes no limit and lowers nothing.
func foreign(before, now corev1.ResourceQuotaStatus) bool {
	return !federation.Equal(before.Hard, now.Hard) || lowered(before.Used, now.Used)
}

// lowered says whether a resource is used less than before.
func lowered(before, now corev1.ResourceList) bool {
	for name, quantity := range now {
		if was, ok := before[name]; ok && quantity.Cmp(was) < 0 {
			return true
		}
	}
	return false
}
