package controller

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
)

// retry says when a member that has not done what it was asked is asked again.
type retry struct {
	failed time.Time // when it last failed
	at     time.Time
	wait   time.Duration
	silent bool // it gave no answer at all
	denied bool // it did not let the hub do that
}

// lookAgain is how long a quota that others made is left alone.
const lookAgain = 10 * time.Second

// again is the retry after one more failure: for longer each time.
func (r retry) again(now time.Time, silent bool) retry {
	const first, last = 500 * time.Millisecond, 30 * time.Second
	wait := min(max(2*r.wait, first), last)
	return retry{failed: now, at: now.Add(wait), wait: wait, silent: silent}
}

// heard is the retry once the member is heard of: it may answer now. What has given
// an answer is not tried sooner for that. A member that is heard of and gives no
// answer costs the others two seconds of every four.
func (r retry) heard() retry {
	if soon := r.failed.Add(answerWithin); r.silent && soon.Before(r.at) {
		r.at = soon
	}
	return r
}

// failed notes that a member has not done what it was asked.
func (t *task) failed(cluster string, err error) {
	var answer apierrors.APIStatus
	t.mu.Lock()
	defer t.mu.Unlock()
	r := t.away[cluster].again(time.Now(), !errors.As(err, &answer))
	r.denied = apierrors.IsForbidden(err)
	t.away[cluster] = r
}

// done notes that a member has done all that it was asked.
func (t *task) done(cluster string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.away, cluster)
}

// failing says whether a member has not done what it was last asked. Until it has,
// others are not moved for its sake, each time that it is tried again.
func (t *task) failing(cluster string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, failing := t.away[cluster]
	return failing
}

// waits says whether a member is to be left alone for now.
func (t *task) waits(cluster string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.now.Before(t.away[cluster].at)
}

// again is how soon to look again though nothing may be seen to change; 0: not
// before that.
func (t *task) again() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	var soonest time.Duration
	for cluster, r := range t.away {
		if t.members[cluster] == nil {
			continue // it is heard of when it answers
		}
		if wait := max(time.Until(r.at), gather); soonest == 0 || wait < soonest {
			soonest = wait
		}
	}
	return soonest
}

// heard notes that a member is heard of, in whatever it has to do with FleetQuotas.
func (f *enforcer) heard(cluster string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, n := range f.notes {
		f.heardIn(key, n, cluster)
	}
}

// heardOf notes that a member is heard of by its share of one FleetQuota.
func (f *enforcer) heardOf(key types.NamespacedName, cluster string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n := f.notes[key]; n != nil {
		f.heardIn(key, n, cluster)
	}
}

func (f *enforcer) heardIn(key types.NamespacedName, n *note, cluster string) {
	was, waits := n.away[cluster]
	if now := was.heard(); waits && now.at.Before(was.at) {
		n.away[cluster] = now
		f.queue.AddAfter(key, time.Until(now.at))
	}
}
