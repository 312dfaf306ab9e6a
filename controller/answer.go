package controller

import (
	"iter"
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
	answered  string                           // the resourceVersion of the last change that only a controller makes
	sending   *corev1.ResourceQuotaStatus      // what we are writing, or have and know nothing of; nil: nothing
	sent      corev1.ResourceQuotaStatus       // our last write
	written   string                           // its resourceVersion
	called    time.Time                        // when the call that is open was first seen; zero: none is
	limits    corev1.ResourceList              // what spec.hard was then
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

// seen notes a change of a quota and says whether it hands the quota back:
// somebody else did what admission never does.
func (a *answers) seen(before, now *corev1.ResourceQuota) (handedBack bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	entry := a.quotas[keyOf(now)]
	if entry == nil || before == nil {
		a.quotas[keyOf(now)] = firstSeen(now)
		return false
	}
	if !newer(now, before) || !after(now.ResourceVersion, entry.written) {
		return false // our own write, or what it was made on, on its way for long
	}
	was := before.Status
	if !after(before.ResourceVersion, entry.written) {
		was = entry.sent
	}
	if !foreign(was, now) || entry.sending != nil && !foreign(*entry.sending, now) {
		return false
	}
	handedBack, entry.disputed = entry.ours, entry.disputed || entry.ours
	entry.ours, entry.called, entry.freed, entry.answered = false, time.Time{}, nil, now.ResourceVersion
	return handedBack
}

// firstSeen is what is known of a quota that was not seen before. If it was a
// hub that last kept it, all may have ended of which more is used than there is.
func firstSeen(quota *corev1.ResourceQuota) *answer {
	entry := &answer{}
	if keptByUs(quota) {
		entry.freed = map[corev1.ResourceName]struct{}{}
		for name := range quota.Status.Used {
			entry.freed[evaluator.Canonical(name)] = struct{}{}
		}
	}
	return entry
}

// freed notes that an object has ended which took this from the quota, as its
// kind's observer saw at a resourceVersion. If a controller has written since,
// that one is alive, and the quota is what is seen late or early.
func (a *answers) freed(key types.NamespacedName, was *federation.Cost, version string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	entry := a.quotas[key]
	if entry == nil || version != "" && entry.answered != "" && !after(version, entry.answered) {
		return
	}
	if entry.freed == nil {
		entry.freed = map[corev1.ResourceName]struct{}{}
	}
	for _, amount := range was.Amounts {
		entry.freed[amount.Name] = struct{}{}
	}
}

// verdict says who is to write a quota's status.
type verdict struct {
	ours bool
	wait time.Duration // until that may be otherwise; 0: it depends on what happens
	free bool          // nobody answers: if the member itself says the same, take it
}

// due says whether a quota that should have this status is ours to write.
func (a *answers) due(quota *corev1.ResourceQuota, want corev1.ResourceQuotaStatus, now time.Time) verdict {
	a.mu.Lock()
	defer a.mu.Unlock()
	entry := a.quotas[keyOf(quota)]
	if entry == nil {
		return verdict{} // it is being deleted
	}
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
	if entry.called.IsZero() || !federation.Equal(entry.limits, want.Hard) {
		entry.called, entry.limits = now, want.Hard
	}
	if wait := entry.called.Add(within).Sub(now); wait > 0 {
		return verdict{wait: wait}
	}
	if entry.ours {
		entry.called, entry.listened = time.Time{}, now
		return verdict{ours: true}
	}
	return verdict{free: true}
}

// take makes a quota ours that is free. If that has been reversed too often, it
// is contested from now on instead.
func (a *answers) take(quota *corev1.ResourceQuota, now time.Time) (ours, contested bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e := a.quotas[keyOf(quota)]
	if e == nil {
		return false, false // it was deleted meanwhile
	}
	e.called, e.listened = time.Time{}, now
	if e.disputed {
		e.disputed = false
		for len(e.reversals) > 0 && now.Sub(e.reversals[0]) > reversalsLast {
			e.reversals = e.reversals[1:]
		}
		e.reversals = append(e.reversals, now)
	}
	if len(e.reversals) >= reversalsMax {
		e.reversals, e.contested = e.reversals[1:], quota.Spec.Hard
		return false, true
	}
	e.ours, e.contested, e.drift = true, nil, nil
	return true, false
}

// writing notes what we are about to write. Its watch event may come before the
// answer does.
func (a *answers) writing(quota *corev1.ResourceQuota, status corev1.ResourceQuotaStatus) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if entry := a.quotas[keyOf(quota)]; entry != nil {
		entry.sending = &status
	}
}

// wrote notes what the quota has become by our write.
func (a *answers) wrote(quota *corev1.ResourceQuota) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if entry := a.quotas[keyOf(quota)]; entry != nil {
		entry.sending, entry.sent, entry.written = nil, quota.Status, quota.ResourceVersion
	}
}

// refused notes that our write was not stored and never will be. Of a write of
// which nobody knows, nothing is noted: it may yet be seen.
func (a *answers) refused(key types.NamespacedName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if entry := a.quotas[key]; entry != nil {
		entry.sending = nil
	}
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
	if !lowered(now.Status.Used, before) {
		return false // what reads managed fields is not cheap
	}
	for manager, fields := range statusManagers(now) {
		if manager != nativeManager {
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

// keptByUs says whether of all controllers it was a hub that last gave the
// status its values.
func keptByUs(quota *corev1.ResourceQuota) bool {
	const admission = "kube-apiserver"
	us := false
	for manager := range statusManagers(quota) {
		us = us || manager == fieldManager
		if manager != fieldManager && manager != admission {
			return false
		}
	}
	return us
}

// statusManagers is which fields of its status who has given their values.
func statusManagers(quota *corev1.ResourceQuota) iter.Seq2[string, *fieldpath.Set] {
	return func(yield func(string, *fieldpath.Set) bool) {
		for _, managed := range quota.ManagedFields {
			if managed.Subresource != "status" || managed.FieldsV1 == nil {
				continue
			}
			var fields fieldpath.Set
			if err := fields.FromJSON(managed.FieldsV1.GetRawReader()); err != nil || fields.Empty() {
				continue
			}
			if !yield(managed.Manager, &fields) {
				return
			}
		}
	}
}
