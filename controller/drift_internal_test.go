package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Each case is what status.used is more than what is counted, at each second.
func TestDriftIsWhatStaysForTheWholeTime(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		off  []int
		want int
	}{
		"what agrees does not drift":                        {[]int{0, 0, 0}, 0},
		"a difference of 9 s is not shown":                  {steady(2, 10), 0},
		"a difference of 10 s is":                           {steady(2, 11), 2},
		"one below what is counted is, too":                 {steady(-3, 11), -3},
		"the least of what changes is":                      {[]int{5, 3, 4, 2, 9, 9, 5, 5, 5, 5, 5}, 2},
		"what was right once begins anew":                   {append(append(steady(2, 6), 0), steady(2, 9)...), 0},
		"what changes sign was right meanwhile":             {append(steady(2, 10), steady(-1, 5)...), 0},
		"a shown difference goes as soon as it is right":    {append(steady(2, 11), 0), 0},
		"a shown difference follows one that grew, in time": {append(steady(2, 11), steady(4, 20)...), 4},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := drift{}
			last := 0
			for second, off := range tc.off {
				now := time.Unix(int64(second), 0)
				again, changed := d.sample(pods(10+off), pods(10), within, now)
				shown := 0
				if e := d["pods"]; e != nil {
					shown = int(e.shown.Value())
				}
				if again != (shown != off) {
					t.Errorf("after %d s: look again is %v, shown %d of %d", second, again, shown, off)
				}
				if changed != (shown != last) {
					t.Errorf("after %d s: changed is %v, shown %d after %d", second, changed, shown, last)
				}
				last = shown
			}
			if last != tc.want {
				t.Errorf("shown is %d, want %d", last, tc.want)
			}
		})
	}
}

func steady(off, times int) []int {
	var all []int
	for range times {
		all = append(all, off)
	}
	return all
}

func TestDriftOfWhatIsNotKnownStays(t *testing.T) {
	t.Parallel()
	d := drift{}
	for second := range 11 {
		d.sample(pods(3), pods(2), within, time.Unix(int64(second), 0))
	}
	if _, changed := d.sample(pods(3), corev1.ResourceList{}, within, time.Unix(12, 0)); changed || d["pods"].shown.Value() != 1 {
		t.Errorf("unknown use has changed it: %v, %+v", changed, d)
	}
	if _, changed := d.sample(corev1.ResourceList{"cpu": resource.MustParse("1")}, pods(2), within, time.Unix(13, 0)); !changed || len(d) > 0 {
		t.Errorf("it is still there when the status has it no more: %v, %+v", changed, d)
	}
}

func TestAgreementNamesTheQuotas(t *testing.T) {
	t.Parallel()
	a := newAnswers(within)
	agree := func(want bool, reason, message string) {
		t.Helper()
		if is, why, says := a.agreement(); is != want || why != reason || says != message {
			t.Errorf("%v %s: %s", is, why, says)
		}
	}
	agree(true, "Agrees", "what other controllers write is what the hub counts")
	q := quota(1, 5, 5, 3)
	a.seen(nil, q)
	for second := range 11 {
		a.drifts(keyOf(q), q.Status.Used, pods(2), time.Unix(int64(second), 0))
	}
	agree(false, "Drift", "another controller's status is not what the hub counts: team/q (pods)")
	a.quotas[keyOf(q)].contested = pods(5)
	agree(false, "Contested", "another quota controller counts otherwise and has reversed every write, so the hub no longer writes: team/q")
	a.forget(keyOf(q))
	agree(true, "Agrees", "what other controllers write is what the hub counts")
}
