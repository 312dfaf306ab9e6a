package controller

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation"
)

// answers decides for each local quota of a member in mode Auto whether another
// controller keeps its status. A live one must answer two calls: spec.hard
// differs from status.hard, and more is used than there is of something that an
// object held until it was deleted or finished. A quota that does not change for a
// while although it is called is ours, until somebody else does what only a
// controller does. Any other difference is drift, which is shown and left alone.
//
// Two controllers that count otherwise would take turns for ever. So a quota
// that was handed back three times, and each time with numbers that never became
// right, is contested: it is left alone until nobody follows a new limit.
type answers struct {
	within time.Duration // what another controller is given

	mu     sync.Mutex // guards quotas
	quotas map[types.NamespacedName]*answer
}

// answer is what is known of one quota.
type answer struct {
	ours      bool
	freed     map[corev1.ResourceName]struct{} // by what has ended, since the status was last right or somebody answered; canonical
	sending   corev1.ResourceQuotaStatus       // what we are writing, as long as no answer has come
	written   string                           // the resourceVersion of our last write
	called    time.Time                        // when the call that is open was first seen; zero: none is
	version   string                           // the quota's resourceVersion then
	listened  time.Time                        // when another controller was last given the time to answer before us
	disputed  bool                             // it was handed back, and its status has not been right since
	reversals []time.Time                      // when we wanted it back from a dispute, in the last hour
	contested corev1.ResourceList              // what spec.hard was when it became so; nil: it is not
	drift     drift
}

const (
	reversalsMax  = 3           // after so many in reversalsLast a quota is contested
	reversalsLast = time.Hour   // until a reversal is forgotten
	listenEvery   = time.Minute // how often another controller may answer a call before we do
	listenFor     = time.Second // and for how long
)

func newAnswers(within time.Duration) *answers {
	return &answers{within: within, quotas: map[types.NamespacedName]*answer{}}
}

// of finds or makes the answer of a quota. The caller holds the lock.
func (a *answers) of(key types.NamespacedName) *answer {
	entry := a.quotas[key]
	if entry == nil {
		entry = &answer{}
		a.quotas[key] = entry
	}
	return entry
}

// seen notes a change of a quota and says whether it hands the quota back:
// somebody else did what admission never does.
func (a *answers) seen(before, now *corev1.ResourceQuota) (handedBack bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	entry := a.of(keyOf(now))
	if before == nil || now.ResourceVersion == entry.written || now.ResourceVersion == before.ResourceVersion {
		return false
	}
	if !entry.ours && entry.called.IsZero() && entry.freed == nil {
		return false // there is nothing to answer
	}
	if !foreign(before.Status, now) || entry.ours && !foreign(entry.sending, now) {
		return false
	}
	handedBack, entry.disputed = entry.ours, entry.disputed || entry.ours
	entry.ours, entry.called, entry.freed = false, time.Time{}, nil
	return handedBack
}

// freed notes that an object has ended which took this from the quota.
func (a *answers) freed(key types.NamespacedName, was *federation.Cost) {
	a.mu.Lock()
	defer a.mu.Unlock()
	entry := a.of(key)
	if entry.freed == nil {
		entry.freed = map[corev1.ResourceName]struct{}{}
	}
	for _, amount := range was.Amounts {
		entry.freed[amount.Name] = struct{}{}
	}
}

// verdict says who is to write a quota's status.
type verdict struct {
	ours      bool
	wait      time.Duration // until that may be otherwise; 0: it depends on what happens
	took      bool          // it is ours from now on
	contested bool          // it is contested from now on
}

// due says whether a quota that should have this status is ours to write.
func (a *answers) due(quota *corev1.ResourceQuota, want corev1.ResourceQuotaStatus, now time.Time) verdict {
	a.mu.Lock()
	defer a.mu.Unlock()
	entry := a.of(keyOf(quota))
	if agree(quota.Status, want) {
		entry.disputed = false
	}
	if !entry.calls(quota.Status, want) {
		entry.called, entry.freed = time.Time{}, nil
		return verdict{ours: entry.ours}
	}
	within := a.within
	if entry.ours {
		if now.Sub(entry.listened) < listenEvery || !sameNames(quota.Status.Used, quota.Spec.Hard) {
			return verdict{ours: true}
		}
		within = listenFor
	}
	if entry.called.IsZero() || entry.version != quota.ResourceVersion && !entry.ours {
		entry.called, entry.version = now, quota.ResourceVersion
	}
	if wait := entry.called.Add(within).Sub(now); wait > 0 {
		return verdict{wait: wait}
	}
	entry.called, entry.listened = time.Time{}, now
	if entry.ours {
		return verdict{ours: true}
	}
	return entry.take(want, now)
}

// take makes a quota ours, unless that has been reversed too often.
func (e *answer) take(want corev1.ResourceQuotaStatus, now time.Time) verdict {
	if e.disputed {
		e.disputed = false
		for len(e.reversals) > 0 && now.Sub(e.reversals[0]) > reversalsLast {
			e.reversals = e.reversals[1:]
		}
		e.reversals = append(e.reversals, now)
	}
	if len(e.reversals) >= reversalsMax {
		e.reversals, e.contested = e.reversals[1:], want.Hard
		return verdict{contested: true}
	}
	e.ours, e.contested, e.drift = true, nil, nil
	return verdict{ours: true, took: true}
}

// writing notes what we are about to write. Its watch event may come before the
// answer does.
func (a *answers) writing(quota *corev1.ResourceQuota, status corev1.ResourceQuotaStatus) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.of(keyOf(quota)).sending = status
}

// wrote notes how the write ended: with the quota as it is now, or as it was
// when the write failed.
func (a *answers) wrote(quota *corev1.ResourceQuota) {
	a.mu.Lock()
	defer a.mu.Unlock()
	entry := a.of(keyOf(quota))
	entry.sending, entry.written = corev1.ResourceQuotaStatus{}, quota.ResourceVersion
}

func (a *answers) forget(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.quotas, key)
}

// calls says whether a live controller would have to change this status. In a
// contested quota only a new limit is a call.
func (e *answer) calls(have, want corev1.ResourceQuotaStatus) bool {
	unanswered := !federation.Equal(have.Hard, want.Hard)
	if e.contested != nil {
		return unanswered && !federation.Equal(e.contested, want.Hard)
	}
	if unanswered {
		return true
	}
	for name, used := range want.Used {
		_, freed := e.freed[evaluator.Canonical(name)]
		if was, ok := have.Used[name]; freed && ok && used.Cmp(was) < 0 {
			return true
		}
	}
	return false
}

// agree says whether a status is what it should be.
func agree(have, want corev1.ResourceQuotaStatus) bool {
	return federation.Equal(have.Hard, want.Hard) && federation.Equal(have.Used, want.Used)
}

// foreign says whether a controller has changed a status since it was this:
// admission changes no limit and lowers nothing. Of what was raised, only the
// managed fields can tell.
func foreign(before corev1.ResourceQuotaStatus, now *corev1.ResourceQuota) bool {
	return !federation.Equal(before.Hard, now.Status.Hard) || lowered(before.Used, now.Status.Used) ||
		raisedByController(before.Used, now)
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

// nativeManager is Kubernetes' own controller in managed fields. A field belongs
// to whoever last gave it another value.
const nativeManager = "kube-controller-manager"

// raisedByController says whether a resource is used more than before because
// Kubernetes' own controller says so. Where several controllers run in one
// program, under another name, this is not seen.
func raisedByController(before corev1.ResourceList, now *corev1.ResourceQuota) bool {
	for _, managed := range now.ManagedFields {
		if managed.Manager != nativeManager || managed.Subresource != "status" || managed.FieldsV1 == nil {
			continue
		}
		var fields fieldpath.Set
		if err := fields.FromJSON(managed.FieldsV1.GetRawReader()); err != nil {
			continue
		}
		for name, quantity := range now.Status.Used {
			was, ok := before[name]
			if ok && quantity.Cmp(was) > 0 && fields.Has(fieldpath.MakePathOrDie("status", "used", string(name))) {
				return true
			}
		}
	}
	return false
}
