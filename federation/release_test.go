package federation_test

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation"
)

// tale tells a Release of a quota on pods what happens, at seconds after noon.
type tale struct {
	*testing.T

	release *federation.Release
	now     time.Time
	counted int // by the ledger
	version int
	used    int // in the newest version
	last    federation.Decision
}

// begin is a quota that is right and has been for long.
func begin(t *testing.T, used int) *tale {
	t.Helper()
	s := &tale{T: t, now: noon.Add(-time.Hour), counted: used, release: federation.NewRelease(evaluator.Selector{}, federation.ReleaseOptions{
		Settle: 6 * time.Second, ClockError: time.Second,
	})}
	s.saw(used)
	s.wants(used)
	s.now = noon
	return s
}

func (s *tale) at(seconds float64) { s.now = noon.Add(time.Duration(seconds * float64(time.Second))) }

func (s *tale) saw(used int) {
	s.version++
	s.used = used
	s.release.Saw(strconv.Itoa(s.version), simList(used), s.now)
}

// charged is what admission does to a pod.
func (s *tale) charged() { s.saw(s.used + 1) }

// stored is a pod that was created so many seconds after noon, and is seen.
func (s *tale) stored(created float64) {
	s.counted++
	at := noon.Add(time.Duration(created * float64(time.Second)))
	s.release.Moved(federation.Change{Kind: pods, Is: onePod, Created: at})
}

// deleted is a pod that is seen to be gone.
func (s *tale) deleted() {
	s.counted--
	s.release.Moved(federation.Change{Kind: pods, Was: onePod})
}

// current says that all that happened is known.
func (s *tale) current() { s.release.Confirmed("pods", s.now, nil) }

func (s *tale) wants(used int) {
	s.Helper()
	s.last = s.release.Decide(func() corev1.ResourceList { return simList(s.counted) }, s.now)
	if got := s.last.Used["pods"]; got.Value() != int64(used) {
		s.Errorf("%s after noon: used should be %s, want %d", s.now.Sub(noon), got.String(), used)
	}
}

// writes is a decision that becomes the next version.
func (s *tale) writes(used int) {
	s.Helper()
	s.wants(used)
	s.release.Sending(s.last)
	s.version++
	s.used = used
	s.release.Stored(strconv.Itoa(s.version), simList(used), s.now)
}

func TestRelease(t *testing.T) {
	t.Parallel()
	tales := map[string]struct {
		used int
		tell func(s *tale)
	}{
		"a release is given back at once, and once": {5, func(s *tale) {
			s.deleted()
			s.writes(4)
			s.wants(4)
		}},
		"what admission charged for a pod that is not stored yet stays": {5, func(s *tale) {
			s.charged()
			s.wants(6)
			s.deleted()
			s.writes(5)
			s.stored(0)
			s.wants(5)
		}},
		"what is not charged is raised at once": {5, func(s *tale) {
			s.stored(-60)
			s.writes(6)
		}},
		"a charge that nothing came of is given back when it has settled": {5, func(s *tale) {
			s.charged()
			s.at(5.9)
			s.current()
			s.wants(6)
			s.at(7)
			s.current()
			s.writes(5)
		}},
		"but not unless the ledger is known to be current": {5, func(s *tale) {
			s.charged()
			s.at(7)
			s.wants(6)
			if len(s.last.Confirm) == 0 {
				s.Error("it does not ask whether the ledger is current")
			}
		}},
		"it says when to look again": {5, func(s *tale) {
			s.charged()
			s.at(1)
			s.wants(6)
			if want := noon.Add(6 * time.Second); !s.last.Again.Equal(want) {
				s.Errorf("look again at %s, want %s", s.last.Again, want)
			}
		}},
		"a failed creation is given back while others go on": {5, func(s *tale) {
			s.charged()                                          // of nothing
			for _, second := range []float64{2, 3, 6, 7, 8, 9} { // none within the error of the clock
				s.at(second)
				s.charged()
				s.stored(second)
			}
			s.at(10)
			s.current()
			s.writes(11)
		}},
		"a pod that was created before the time to settle may not be that which was charged": {5, func(s *tale) {
			s.at(10)
			s.charged()
			s.charged()
			s.stored(2)
			s.current()
			s.at(11)
			s.wants(7)
		}},
		"a release whose write was refused is not lost": {5, func(s *tale) {
			s.deleted()
			s.wants(4)
			s.release.Sending(s.last)
			s.charged()
			s.release.Refused()
			s.wants(5)
		}},
		"a release whose write was lost counts as written": {5, func(s *tale) {
			s.deleted()
			s.wants(4)
			s.release.Sending(s.last)
			s.release.Lost()
			s.wants(5)
			s.charged() // the write had not been stored
			s.wants(6)
			s.at(7)
			s.current()
			s.writes(4)
		}},
		"after a lost write, what was charged on top of it is seen": {5, func(s *tale) {
			s.deleted()
			s.wants(4)
			s.release.Sending(s.last)
			s.release.Lost()
			s.version++ // it was stored, and not seen
			s.saw(5)    // and a pod was charged
			s.at(1)
			s.current()
			s.wants(5)
			s.at(7)
			s.current()
			s.writes(4)
		}},
		"what is seen of our own write before its answer is no charge": {5, func(s *tale) {
			s.deleted()
			s.wants(4)
			s.release.Sending(s.last)
			s.saw(4)
			s.charged()
			s.release.Stored(strconv.Itoa(s.version-1), simList(4), s.now)
			s.wants(5)
			s.stored(2)
			s.at(3)
			s.current()
			s.deleted()
			s.writes(4)
		}},
		"where somebody else lowers, nothing is given back twice": {5, func(s *tale) {
			s.deleted()
			s.saw(4)
			s.charged()
			s.wants(5)
		}},
		"growth that nobody charged for is not given back": {5, func(s *tale) {
			two := &federation.Cost{Amounts: evaluator.Amounts{{Name: "pods", Quantity: resource.MustParse("2")}}}
			s.charged() // of another pod, so that used does not show it
			s.counted++
			s.release.Moved(federation.Change{Kind: pods, Was: onePod, Is: two})
			s.deleted()
			s.wants(6)
		}},
		"what is unknown is not decided": {5, func(s *tale) {
			d := s.release.Decide(func() corev1.ResourceList { return nil }, s.now)
			if len(d.Used) > 0 {
				s.Errorf("used should be %v", d.Used)
			}
			s.counted = 3
			s.wants(5) // what happened meanwhile is not known
		}},
		"the first number is what is counted": {5, func(s *tale) {
			s.version++
			s.release.Saw(strconv.Itoa(s.version), nil, s.now)
			s.writes(5)
			s.deleted()
			s.writes(4)
		}},
		"a pod that came and went unseen before a list is not given back again": {5, func(s *tale) {
			s.charged()
			s.at(10)
			s.release.Confirmed("pods", s.now, map[schema.GroupResource]string{pods: "50"})
			s.writes(5)
			s.counted++
			s.release.Moved(federation.Change{Kind: pods, Is: onePod, Created: noon, Version: "40"})
			s.counted--
			s.release.Moved(federation.Change{Kind: pods, Was: onePod, Version: "41"})
			s.charged()
			s.wants(6)
		}},
	}
	for name, tale := range tales {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tale.tell(begin(t, tale.used))
		})
	}
}

func TestReleaseAfterARestart(t *testing.T) {
	t.Parallel()
	s := &tale{T: t, now: noon, counted: 3, release: federation.NewRelease(evaluator.Selector{}, federation.ReleaseOptions{Settle: 6 * time.Second})}
	s.saw(7)
	s.current()
	s.wants(7) // 4 may be on their way
	s.deleted()
	s.writes(6)
	s.at(5)
	s.current()
	s.wants(6)
	s.at(7)
	s.current()
	s.writes(2)
}

func TestReleaseOfAScopedQuota(t *testing.T) {
	t.Parallel()
	selector, err := evaluator.NewSelector([]corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeTerminating}, nil)
	if err != nil {
		t.Fatal(err)
	}
	s := &tale{T: t, now: noon, counted: 3, release: federation.NewRelease(selector, federation.ReleaseOptions{Settle: 6 * time.Second})}
	s.saw(4)
	s.wants(4)
	s.release.Moved(federation.Change{Kind: pods, Was: onePod}) // of no scope
	s.wants(4)
}
