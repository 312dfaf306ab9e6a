package controller

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// away is a member that has failed so often.
func away(now time.Time, times int, silent bool) retry {
	var r retry
	for range times {
		r = r.again(now, silent)
	}
	return r
}

func TestRetry(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for name, test := range map[string]struct {
		is   retry
		want time.Duration // from the failure until the next try
	}{
		"soon after the first failure":                 {away(now, 1, true), 500 * time.Millisecond},
		"later after each":                             {away(now, 5, true), 8 * time.Second},
		"never later than that":                        {away(now, 20, true), 30 * time.Second},
		"sooner if it is heard of":                     {away(now, 20, true).heard(), answerWithin},
		"not later for that":                           {away(now, 1, true).heard(), 500 * time.Millisecond},
		"not sooner where the answer was no":           {away(now, 20, false).heard(), 30 * time.Second},
		"not sooner where others have made the quota":  {retry{at: now.Add(lookAgain)}.heard(), lookAgain},
		"as late as before if it is silent once again": {away(now, 20, true).heard().again(now, true), 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := test.is.at.Sub(now); got != test.want {
				t.Errorf("after %s, want %s", got, test.want)
			}
		})
	}
}

// Of two FleetQuotas that wait for a member, the one whose share was heard of is
// tried sooner, and then all are.
func TestHeardOf(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a, b := types.NamespacedName{Name: "a"}, types.NamespacedName{Name: "b"}
	f := &enforcer{queue: newQueue[types.NamespacedName](t.Name()), notes: map[types.NamespacedName]*note{}}
	defer f.queue.ShutDown()
	for _, key := range []types.NamespacedName{a, b} {
		f.noteOf(key).away["east"] = away(now, 20, true)
	}
	waits := func(key types.NamespacedName) time.Duration { return f.noteOf(key).away["east"].at.Sub(now) }
	f.heardOf(a, "east")
	f.heardOf(types.NamespacedName{Name: "c"}, "east")
	f.heard("west")
	if waits(a) != answerWithin || waits(b) != 30*time.Second {
		t.Errorf("%s and %s", waits(a), waits(b))
	}
	f.heard("east")
	if waits(a) != answerWithin || waits(b) != answerWithin {
		t.Errorf("%s and %s", waits(a), waits(b))
	}
	if _, there := f.noteOf(a).away["west"]; there {
		t.Error("a member that was not away is")
	}
}
