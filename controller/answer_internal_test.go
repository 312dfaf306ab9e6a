package controller

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation"
)

const within = 10 * time.Second

// local quotas of this test limit pods alone.
func quota(version, hard, statusHard, used int) *corev1.ResourceQuota {
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "q", ResourceVersion: strconv.Itoa(version)},
		Spec:       corev1.ResourceQuotaSpec{Hard: pods(hard)},
		Status:     corev1.ResourceQuotaStatus{Hard: pods(statusHard), Used: pods(used)},
	}
}

func pods(n int) corev1.ResourceList {
	return corev1.ResourceList{"pods": *resource.NewQuantity(int64(n), resource.DecimalSI)}
}

func truth(hard, used int) corev1.ResourceQuotaStatus {
	return corev1.ResourceQuotaStatus{Hard: pods(hard), Used: pods(used)}
}

// watcher plays the calls of a local controller at points in time.
type watcher struct {
	*testing.T

	answers *answers
	start   time.Time
}

func (w watcher) due(after time.Duration, q *corev1.ResourceQuota, status corev1.ResourceQuotaStatus, want verdict) {
	w.Helper()
	if got := w.answers.due(q, status, w.start.Add(after)); got != want {
		w.Errorf("after %s: %+v, want %+v", after, got, want)
	}
	if want == taken {
		if ours, contested := w.answers.take(q, w.start.Add(after)); !ours || contested {
			w.Errorf("after %s: ours %v, contested %v", after, ours, contested)
		}
	}
}

// contests is a quota that is free and would be taken once too often.
func (w watcher) contests(after time.Duration, q *corev1.ResourceQuota, status corev1.ResourceQuotaStatus) {
	w.Helper()
	if got := w.answers.due(q, status, w.start.Add(after)); got != taken {
		w.Errorf("after %s: %+v, want %+v", after, got, taken)
	}
	if ours, contested := w.answers.take(q, w.start.Add(after)); ours || !contested {
		w.Errorf("after %s: ours %v, contested %v", after, ours, contested)
	}
}

var (
	ours   = verdict{ours: true}
	taken  = verdict{free: true}
	theirs = verdict{}
)

func undecided(wait time.Duration) verdict { return verdict{wait: wait} }

func TestAutoTakesOverOnlyWhatNobodyAnswers(t *testing.T) {
	t.Parallel()
	cases := map[string]func(w watcher){
		"a limit that nobody follows for 10 s is ours": func(w watcher) {
			w.due(0, quota(1, 5, 4, 2), truth(5, 2), undecided(within))
			w.due(4*time.Second, quota(1, 5, 4, 2), truth(5, 2), undecided(6*time.Second))
			w.due(within, quota(1, 5, 4, 2), truth(5, 2), taken)
		},
		"a limit that is followed is not": func(w watcher) {
			w.due(0, quota(1, 5, 4, 2), truth(5, 2), undecided(within))
			w.due(within, quota(2, 5, 5, 2), truth(5, 2), theirs)
		},
		"a quota that changes while it is called is given its time anew": func(w watcher) {
			w.due(0, quota(1, 5, 4, 2), truth(5, 2), undecided(within))
			w.due(9*time.Second, quota(2, 6, 4, 2), truth(6, 2), undecided(within))
		},
		"use that stays too high after a deletion is ours": func(w watcher) {
			w.freed("pods")
			w.due(0, quota(1, 5, 5, 2), truth(5, 1), undecided(within))
			w.due(within, quota(1, 5, 5, 2), truth(5, 1), taken)
		},
		"use that is too high without a deletion is drift": func(w watcher) {
			w.due(0, quota(1, 5, 5, 2), truth(5, 1), theirs)
			w.due(time.Hour, quota(1, 5, 5, 2), truth(5, 1), theirs)
		},
		"use that is too low is drift": func(w watcher) {
			w.freed("pods")
			w.due(0, quota(1, 5, 5, 2), truth(5, 3), theirs)
		},
		"a call that was answered long ago does not shorten the next": func(w watcher) {
			w.freed("pods")
			w.due(0, quota(1, 5, 5, 2), truth(5, 1), undecided(within))
			w.due(within, quota(1, 5, 5, 2), truth(5, 2), theirs)
			w.freed("pods")
			w.due(time.Hour, quota(1, 5, 5, 2), truth(5, 1), undecided(within))
		},
		"use that stays too high of something else than what was deleted is drift": func(w watcher) {
			w.freed("count/configmaps")
			w.due(0, quota(1, 5, 5, 2), truth(5, 1), theirs)
			w.due(within, quota(1, 5, 5, 2), truth(5, 1), theirs)
		},
		"somebody who answers a deletion is not asked about what goes wrong later": func(w watcher) {
			w.freed("pods")
			w.due(0, quota(1, 5, 5, 3), truth(5, 2), undecided(within))
			w.answers.seen(quota(1, 5, 5, 3), quota(2, 5, 5, 2))
			w.due(time.Second, quota(3, 5, 5, 3), truth(5, 2), theirs) // admission charged for a creation that failed
			w.due(time.Hour, quota(3, 5, 5, 3), truth(5, 2), theirs)
		},
		"what is ours is written at once": func(w watcher) {
			w.takeOver()
			w.due(time.Second, quota(3, 7, 5, 2), truth(7, 2), ours)
		},
		"what is ours is written at once where nobody has a call to answer": func(w watcher) {
			w.takeOver()
			w.due(time.Hour, quota(3, 5, 5, 2), truth(5, 3), ours)
		},
		"once a minute another controller may answer first": func(w watcher) {
			w.takeOver()
			w.due(time.Minute, quota(3, 7, 5, 2), truth(7, 2), undecided(time.Second))
			w.due(61*time.Second, quota(4, 7, 5, 3), truth(7, 2), ours)
			w.due(62*time.Second, quota(5, 8, 7, 2), truth(8, 2), ours)
		},
		"once a minute another controller may answer first, and does": func(w watcher) {
			w.takeOver()
			w.due(time.Minute, quota(3, 7, 5, 2), truth(7, 2), undecided(time.Second))
			w.handsBack(quota(3, 7, 5, 2), quota(4, 7, 7, 2))
			w.due(61*time.Second, quota(4, 7, 7, 2), truth(7, 2), theirs)
		},
		"where every creation waits for the usage, nobody else is waited for": func(w watcher) {
			w.takeOver()
			unknown := quota(3, 7, 5, 2)
			unknown.Status.Used = nil
			w.due(time.Minute, unknown, truth(7, 2), ours)
		},
		"a raise by Kubernetes' own controller hands back": func(w watcher) {
			w.takeOver()
			w.handsBack(quota(2, 5, 5, 2), raisedBy("kube-controller-manager", quota(3, 5, 5, 3)))
		},
		"a raise by admission does not hand back, whatever that controller owned before": func(w watcher) {
			w.takeOver()
			w.keeps(quota(2, 5, 5, 2), raisedBy("kube-apiserver", quota(3, 5, 5, 3)))
			w.keeps(quota(3, 5, 5, 3), raisedBy("kube-controller-manager", quota(4, 5, 5, 3)))
		},
		"one who counts otherwise and reverses three times makes it contested": func(w watcher) {
			w.contend()
			w.due(time.Hour, quota(50, 5, 5, 3), truth(5, 2), theirs)
			w.freed("pods")
			w.due(2*time.Hour, quota(50, 5, 5, 3), truth(5, 2), theirs)
		},
		"one who comes and goes and counts alike does not": func(w watcher) {
			w.takeOver()
			for i := range 10 {
				at := time.Duration(i) * time.Minute
				w.handsBack(quota(2, 5, 5, 2), quota(3, 5, 5, 1))
				w.due(at, quota(3, 5, 5, 1), truth(5, 1), theirs)
				w.freed("pods")
				w.due(at, quota(3, 5, 5, 2), truth(5, 1), undecided(within))
				w.due(at+within, quota(3, 5, 5, 2), truth(5, 1), taken)
			}
		},
		"reversals are forgotten after an hour": func(w watcher) {
			w.takeOver()
			for i := range 10 {
				w.reversed(time.Duration(i)*31*time.Minute, w.takes)
			}
		},
		"what is contested stays so while its limit is the same": func(w watcher) {
			w.contend()
			w.due(time.Hour, quota(50, 5, 4, 3), truth(5, 2), theirs)
			w.due(2*time.Hour, quota(50, 5, 4, 3), truth(5, 2), theirs)
		},
		"what is contested is ours when nobody follows a new limit": func(w watcher) {
			w.contend()
			w.due(time.Hour, quota(50, 6, 5, 3), truth(6, 2), undecided(within))
			w.due(time.Hour+within, quota(50, 6, 5, 3), truth(6, 2), taken)
		},
		"a foreign change of status.hard hands back": func(w watcher) {
			w.takeOver()
			w.handsBack(quota(2, 5, 5, 2), quota(3, 6, 6, 2))
			w.due(time.Hour, quota(3, 7, 6, 2), truth(7, 2), undecided(within))
			w.due(time.Hour+within, quota(3, 7, 6, 2), truth(7, 2), taken)
		},
		"a foreign release hands back": func(w watcher) {
			w.takeOver()
			w.handsBack(quota(2, 5, 5, 2), quota(3, 5, 5, 1))
		},
		"admission's charge does not hand back": func(w watcher) {
			w.takeOver()
			w.keeps(quota(2, 5, 5, 2), quota(3, 5, 5, 3))
		},
		"our own write does not hand back": func(w watcher) {
			w.takeOver()
			w.answers.wrote(quota(3, 5, 5, 1))
			w.keeps(quota(2, 5, 5, 2), quota(3, 5, 5, 1))
		},
		"our own write does not hand back before its answer has come": func(w watcher) {
			w.takeOver()
			w.answers.writing(quota(2, 6, 5, 2), truth(6, 1))
			w.keeps(quota(2, 6, 5, 2), quota(3, 6, 6, 1))
		},
		"admission may charge on top of it": func(w watcher) {
			w.takeOver()
			w.answers.writing(quota(2, 6, 5, 2), truth(6, 1))
			w.keeps(quota(2, 6, 5, 2), quota(4, 6, 6, 2))
		},
		"a foreign write while ours is under way hands back": func(w watcher) {
			w.takeOver()
			w.answers.writing(quota(2, 6, 5, 2), truth(6, 1))
			w.handsBack(quota(2, 6, 5, 2), quota(3, 6, 6, 0))
		},
		"our own writes do not hand back however late they are seen": func(w watcher) {
			w.takeOver()
			w.answers.wrote(quota(3, 5, 5, 1))
			w.answers.wrote(quota(4, 5, 5, 0))
			w.keeps(quota(2, 5, 5, 2), quota(3, 5, 5, 1))
			w.keeps(quota(3, 5, 5, 1), quota(4, 5, 5, 0))
			w.keeps(quota(2, 5, 5, 2), quota(5, 5, 5, 1)) // admission's, and the events before were dropped
			w.handsBack(quota(5, 5, 5, 1), quota(6, 5, 5, 0))
		},
		"a write whose answer was lost does not hand back when it is seen": func(w watcher) {
			w.takeOver()
			w.answers.writing(quota(2, 5, 5, 2), truth(5, 0))
			w.keeps(quota(2, 5, 5, 2), quota(3, 5, 5, 0))
		},
		"a write that was refused may not be seen": func(w watcher) {
			w.takeOver()
			w.answers.writing(quota(2, 5, 5, 2), truth(5, 0))
			w.answers.refused(keyOf(quota(2, 5, 5, 2)))
			w.handsBack(quota(2, 5, 5, 2), quota(3, 5, 5, 0))
		},
		"creations do not put it off": func(w watcher) {
			w.due(0, quota(1, 5, 4, 2), truth(5, 2), undecided(within))
			w.answers.seen(quota(1, 5, 4, 2), quota(2, 5, 4, 3))
			w.due(4*time.Second, quota(2, 5, 4, 3), truth(5, 3), undecided(6*time.Second))
			w.answers.seen(quota(2, 5, 4, 3), quota(3, 5, 4, 4))
			w.due(within, quota(3, 5, 4, 4), truth(5, 4), taken)
		},
		"a deletion that is seen after it was answered is no call": func(w watcher) {
			w.freed("pods")
			w.answers.seen(quota(1, 5, 5, 2), quota(8, 5, 5, 1))
			w.freedAt("7", "pods")
			w.due(0, quota(9, 5, 5, 2), truth(5, 1), theirs)
			w.freedAt("9", "pods")
			w.due(0, quota(9, 5, 5, 2), truth(5, 1), undecided(within))
		},
		"what ended while the hub was away is a call where a hub kept the status": func(w watcher) {
			w.answers.seen(nil, raisedBy("fleetquota-hub", quota(1, 5, 5, 2)))
			w.due(0, quota(1, 5, 5, 2), truth(5, 1), undecided(within))
			w.due(within, quota(1, 5, 5, 2), truth(5, 1), taken)
		},
		"what ended while the hub was away is none where another controller did": func(w watcher) {
			q := raisedBy("fleetquota-hub", quota(1, 5, 5, 2))
			q.ManagedFields = append(q.ManagedFields, raisedBy("kube-controller-manager", quota(1, 5, 5, 2)).ManagedFields...)
			w.answers.seen(nil, q)
			w.due(0, quota(1, 5, 5, 2), truth(5, 1), theirs)
		},
		"what was once sent says nothing of later": func(w watcher) {
			w.takeOver()
			w.answers.writing(quota(2, 5, 5, 2), truth(5, 0))
			w.answers.wrote(quota(3, 5, 5, 0))
			w.handsBack(quota(4, 5, 5, 2), quota(5, 5, 5, 1))
		},
		"a quota that was deleted is forgotten": func(w watcher) {
			w.takeOver()
			w.answers.forget(keyOf(quota(2, 5, 5, 2)))
			w.answers.writing(quota(2, 5, 5, 2), truth(5, 1)) // work that was under way
			w.answers.wrote(quota(3, 5, 5, 1))
			w.freed("pods")
			w.due(time.Hour, quota(9, 7, 5, 2), truth(7, 2), theirs)
			if len(w.answers.quotas) > 0 {
				w.Errorf("it is remembered: %v", w.answers.quotas)
			}
			w.answers.seen(nil, quota(9, 7, 5, 2))
			w.due(time.Hour, quota(9, 7, 5, 2), truth(7, 2), undecided(within))
		},
	}
	for name, play := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := watcher{T: t, answers: newAnswers(within), start: time.Unix(1e9, 0)}
			w.answers.seen(nil, quota(1, 5, 5, 2))
			play(w)
		})
	}
}

// freed is the deletion of an object that cost one of a resource.
func (w watcher) freed(name corev1.ResourceName) { w.freedAt("", name) }

func (w watcher) freedAt(version string, name corev1.ResourceName) {
	one := resource.MustParse("1")
	w.answers.freed(keyOf(quota(1, 5, 5, 2)), &federation.Cost{Amounts: evaluator.Amounts{{Name: name, Quantity: one}}}, version)
}

// reversed is a quota of ours whose use another controller lowers, that does not
// answer the next deletion.
func (w watcher) reversed(at time.Duration, then func(time.Duration, *corev1.ResourceQuota, corev1.ResourceQuotaStatus)) {
	w.Helper()
	w.handsBack(quota(9, 5, 5, 2), quota(10, 5, 5, 1))
	w.freed("pods")
	w.due(at, quota(11, 5, 5, 3), truth(5, 2), undecided(within))
	then(at+within, quota(11, 5, 5, 3), truth(5, 2))
}

func (w watcher) takes(after time.Duration, q *corev1.ResourceQuota, status corev1.ResourceQuotaStatus) {
	w.Helper()
	w.due(after, q, status, taken)
}

// contend makes the quota contested.
func (w watcher) contend() {
	w.Helper()
	w.takeOver()
	w.reversed(time.Minute, w.takes)
	w.reversed(2*time.Minute, w.takes)
	w.reversed(3*time.Minute, w.contests)
}

// raisedBy says in the managed fields of a quota who gave it its use.
func raisedBy(manager string, q *corev1.ResourceQuota) *corev1.ResourceQuota {
	q.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kube-controller-manager", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:hard":{"f:pods":{}}}}`)},
		{Manager: manager, Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:status":{"f:used":{"f:pods":{}}}}`)},
	}
	return q
}

func (w watcher) takeOver() {
	w.Helper()
	w.due(-2*within, quota(1, 5, 4, 2), truth(5, 2), undecided(within))
	w.due(-within, quota(1, 5, 4, 2), truth(5, 2), taken)
	w.answers.wrote(quota(2, 5, 5, 2))
}

func (w watcher) handsBack(before, now *corev1.ResourceQuota) {
	w.Helper()
	if !w.answers.seen(before, now) {
		w.Error("it is not handed back")
	}
}

func (w watcher) keeps(before, now *corev1.ResourceQuota) {
	w.Helper()
	if w.answers.seen(before, now) {
		w.Error("it is handed back")
	}
}
