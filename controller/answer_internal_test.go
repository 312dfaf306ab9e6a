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

func (w watcher) due(after time.Duration, q *corev1.ResourceQuota, want corev1.ResourceQuotaStatus, ours bool, wait time.Duration) {
	w.Helper()
	gotOurs, gotWait := w.answers.due(q, want, w.start.Add(after))
	if gotOurs != ours || gotWait != wait {
		w.Errorf("after %s: ours %v, wait %s; want %v, %s", after, gotOurs, gotWait, ours, wait)
	}
}

func TestAutoTakesOverOnlyWhatNobodyAnswers(t *testing.T) {
	t.Parallel()
	cases := map[string]func(w watcher){
		"a limit that nobody follows for 10 s is ours": func(w watcher) {
			w.due(0, quota(1, 5, 4, 2), truth(5, 2), false, within)
			w.due(4*time.Second, quota(1, 5, 4, 2), truth(5, 2), false, 6*time.Second)
			w.due(within, quota(1, 5, 4, 2), truth(5, 2), true, 0)
		},
		"a limit that is followed is not": func(w watcher) {
			w.due(0, quota(1, 5, 4, 2), truth(5, 2), false, within)
			w.due(within, quota(2, 5, 5, 2), truth(5, 2), false, 0)
		},
		"a quota that changes while it is called is given its time anew": func(w watcher) {
			w.due(0, quota(1, 5, 4, 2), truth(5, 2), false, within)
			w.due(9*time.Second, quota(2, 6, 4, 2), truth(6, 2), false, within)
		},
		"use that stays too high after a deletion is ours": func(w watcher) {
			w.answers.freed(quota(1, 5, 5, 2))
			w.due(0, quota(1, 5, 5, 2), truth(5, 1), false, within)
			w.due(within, quota(1, 5, 5, 2), truth(5, 1), true, 0)
		},
		"use that is too high without a deletion is drift": func(w watcher) {
			w.due(0, quota(1, 5, 5, 2), truth(5, 1), false, 0)
			w.due(time.Hour, quota(1, 5, 5, 2), truth(5, 1), false, 0)
		},
		"use that is too low is drift": func(w watcher) {
			w.answers.freed(quota(1, 5, 5, 2))
			w.due(0, quota(1, 5, 5, 2), truth(5, 3), false, 0)
		},
		"a call that was answered long ago does not shorten the next": func(w watcher) {
			w.answers.freed(quota(1, 5, 5, 2))
			w.due(0, quota(1, 5, 5, 2), truth(5, 1), false, within)
			w.due(within, quota(1, 5, 5, 2), truth(5, 2), false, 0)
			w.answers.freed(quota(1, 5, 5, 2))
			w.due(time.Hour, quota(1, 5, 5, 2), truth(5, 1), false, within)
		},
		"what is ours is written at once": func(w watcher) {
			w.takeOver()
			w.due(time.Hour, quota(3, 7, 5, 2), truth(7, 2), true, 0)
		},
		"a foreign change of status.hard hands back": func(w watcher) {
			w.takeOver()
			w.handsBack(quota(2, 5, 5, 2), quota(3, 6, 6, 2), true)
			w.due(time.Hour, quota(3, 7, 6, 2), truth(7, 2), false, within)
		},
		"a foreign release hands back": func(w watcher) {
			w.takeOver()
			w.handsBack(quota(2, 5, 5, 2), quota(3, 5, 5, 1), true)
		},
		"admission's charge does not hand back": func(w watcher) {
			w.takeOver()
			w.handsBack(quota(2, 5, 5, 2), quota(3, 5, 5, 3), false)
		},
		"our own write does not hand back": func(w watcher) {
			w.takeOver()
			w.answers.wrote(quota(3, 5, 5, 1))
			w.handsBack(quota(2, 5, 5, 2), quota(3, 5, 5, 1), false)
		},
		"our own write does not hand back before its answer has come": func(w watcher) {
			w.takeOver()
			w.answers.writing(quota(2, 6, 5, 2), truth(6, 1))
			w.handsBack(quota(2, 6, 5, 2), quota(3, 6, 6, 1), false)
		},
		"admission may charge on top of it": func(w watcher) {
			w.takeOver()
			w.answers.writing(quota(2, 6, 5, 2), truth(6, 1))
			w.handsBack(quota(2, 6, 5, 2), quota(4, 6, 6, 2), false)
		},
		"a foreign write while ours is under way hands back": func(w watcher) {
			w.takeOver()
			w.answers.writing(quota(2, 6, 5, 2), truth(6, 1))
			w.handsBack(quota(2, 6, 5, 2), quota(3, 6, 6, 0), true)
		},
		"what was once sent says nothing of later": func(w watcher) {
			w.takeOver()
			w.answers.writing(quota(2, 5, 5, 2), truth(5, 0))
			w.answers.wrote(quota(3, 5, 5, 0))
			w.handsBack(quota(4, 5, 5, 2), quota(5, 5, 5, 1), true)
		},
		"a quota that was deleted is forgotten": func(w watcher) {
			w.takeOver()
			w.answers.forget(keyOf(quota(2, 5, 5, 2)))
			w.due(time.Hour, quota(9, 7, 5, 2), truth(7, 2), false, within)
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
	w.due(-2*within, quota(1, 5, 4, 2), truth(5, 2), false, within)
	w.due(-within, quota(1, 5, 4, 2), truth(5, 2), true, 0)
	w.answers.wrote(quota(2, 5, 5, 2))
}

func (w watcher) handsBack(before, now *corev1.ResourceQuota, want bool) {
	w.Helper()
	if got := w.answers.seen(before, now); got != want {
		w.Errorf("handed back: %v, want %v", got, want)
	}
}
