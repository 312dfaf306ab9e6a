package controller

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	var got verdict
	got.ours, got.wait = w.answers.due(q, status, w.start.Add(after))
	if got != want {
		w.Errorf("after %s: %+v, want %+v", after, got, want)
	}
}

// verdict is what is said of a quota: it is ours, or it may be after a wait, or
// it is somebody else's.
type verdict struct {
	ours bool
	wait time.Duration
}

var (
	ours   = verdict{ours: true}
	theirs = verdict{}
)

func undecided(wait time.Duration) verdict { return verdict{wait: wait} }

func TestAutoTakesOverOnlyWhatNobodyAnswers(t *testing.T) {
	t.Parallel()
	cases := map[string]func(w watcher){
		"a limit that nobody follows for 10 s is ours": func(w watcher) {
			w.due(0, quota(1, 5, 4, 2), truth(5, 2), undecided(within))
			w.due(4*time.Second, quota(1, 5, 4, 2), truth(5, 2), undecided(6*time.Second))
			w.due(within, quota(1, 5, 4, 2), truth(5, 2), ours)
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
			w.answers.freed(quota(1, 5, 5, 2))
			w.due(0, quota(1, 5, 5, 2), truth(5, 1), undecided(within))
			w.due(within, quota(1, 5, 5, 2), truth(5, 1), ours)
		},
		"use that is too high without a deletion is drift": func(w watcher) {
			w.due(0, quota(1, 5, 5, 2), truth(5, 1), theirs)
			w.due(time.Hour, quota(1, 5, 5, 2), truth(5, 1), theirs)
		},
		"use that is too low is drift": func(w watcher) {
			w.answers.freed(quota(1, 5, 5, 2))
			w.due(0, quota(1, 5, 5, 2), truth(5, 3), theirs)
		},
		"a call that was answered long ago does not shorten the next": func(w watcher) {
			w.answers.freed(quota(1, 5, 5, 2))
			w.due(0, quota(1, 5, 5, 2), truth(5, 1), undecided(within))
			w.due(within, quota(1, 5, 5, 2), truth(5, 2), theirs)
			w.answers.freed(quota(1, 5, 5, 2))
			w.due(time.Hour, quota(1, 5, 5, 2), truth(5, 1), undecided(within))
		},
		"what is ours is written at once": func(w watcher) {
			w.takeOver()
			w.due(time.Hour, quota(3, 7, 5, 2), truth(7, 2), ours)
		},
		"a foreign change of status.hard hands back": func(w watcher) {
			w.takeOver()
			w.handsBack(quota(2, 5, 5, 2), quota(3, 6, 6, 2))
			w.due(time.Hour, quota(3, 7, 6, 2), truth(7, 2), undecided(within))
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
		"what was once sent says nothing of later": func(w watcher) {
			w.takeOver()
			w.answers.writing(quota(2, 5, 5, 2), truth(5, 0))
			w.answers.wrote(quota(3, 5, 5, 0))
			w.handsBack(quota(4, 5, 5, 2), quota(5, 5, 5, 1))
		},
		"a quota that was deleted is forgotten": func(w watcher) {
			w.takeOver()
			w.answers.forget(keyOf(quota(2, 5, 5, 2)))
			w.due(time.Hour, quota(9, 7, 5, 2), truth(7, 2), undecided(within))
		},
	}
	for name, play := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			play(watcher{T: t, answers: newAnswers(within), start: time.Unix(1e9, 0)})
		})
	}
}

func (w watcher) takeOver() {
	w.Helper()
	w.due(-2*within, quota(1, 5, 4, 2), truth(5, 2), undecided(within))
	w.due(-within, quota(1, 5, 4, 2), truth(5, 2), ours)
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
