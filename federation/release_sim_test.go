package federation_test

import (
	"container/heap"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation"
)

// The simulation is one namespace with one quota on `pods`, workers that create
// and delete pods, admission as Kubernetes does it, and a controller that sees
// all of it late. There are no goroutines and there is no clock: the next event
// in time is what happens next, and one seed gives one story.

const simHard = 10

// simOptions say what the story is like.
type simOptions struct {
	seed    uint64
	rule    func(*simulation) simRule
	workers int
	churn   time.Duration // for so long the workers go on; then all pods are deleted
	quiet   time.Duration // and for so long the controller may tidy up

	failing   float64       // of the creations fail after they were charged
	slow      float64       // of the creations are stored late, but within the time to settle
	lost      float64       // of the controller's writes have no answer
	stalls    time.Duration // on average so far apart, each watch stops for some seconds; 0: never
	restarts  time.Duration // so far apart, the controller starts anew; 0: never
	clockSkew time.Duration // of the member
}

// simResult is what was measured.
type simResult struct {
	most    int           // pods stored at one time
	bare    int           // most pods, stored or on their way, that used did not cover
	created int           // pods
	blocked time.Duration // in which fewer pods were stored and on their way than the limit allows, and creations were denied
	right   time.Duration // after the last pod was deleted, until used was right for good; negative: never
	lists   int           // that the controller made to confirm what it knows
	writes  int           // that were stored
}

func (r simResult) String() string {
	return fmt.Sprintf("at most %d pods of %d, %d not covered, %d created, blocked %.1f s, right after %.1f s, %d lists, %d writes",
		r.most, simHard, max(r.bare, 0), r.created, r.blocked.Seconds(), r.right.Seconds(), r.lists, r.writes)
}

// simRule is a way to keep used.
type simRule interface { //nolint:interfacebloat // it is all that a controller is told and asked
	pod(c federation.Change)
	saw(version, used int)
	confirmed(before time.Time, listed string)
	decide(counted int) (used int, again time.Time, confirm bool)
	sending()
	stored(version, used int)
	refused()
	lost()
}

type simulation struct {
	simOptions

	random *rand.Rand
	now    time.Time
	events simQueue
	result simResult

	// the member
	version, used int               // of the quota
	revision      int               // of all pods
	pods          map[string]simPod // name ->
	onTheirWay    int               // charged and neither stored nor failed
	ended         bool              // the workers have stopped
	wrongSince    time.Time
	deniedAt      time.Time
	ids           int

	// the way to the controller
	podStream, quotaStream simStream

	// the controller
	life      int // of the controller: what was meant for an earlier one is dropped
	running   bool
	keeper    simRule
	view      map[string]simPod
	newest    time.Time // creation of any pod that was seen
	seen      simVersion
	planned   time.Time // of the next look; zero: none
	writing   bool
	listing   bool
	nextLists time.Time
}

type simPod struct {
	id      int
	created time.Time
}

type simVersion struct{ version, used int }

// simStream is one ordered watch.
type simStream struct {
	last    time.Time // delivery of what was sent last
	stalled time.Time // nothing is delivered before
}

func simulate(o simOptions) simResult {
	s := &simulation{simOptions: o, random: rand.New(rand.NewPCG(o.seed, 1)), now: noon, pods: map[string]simPod{}}
	s.start()
	for i := range o.workers {
		s.after(s.upTo(100*time.Millisecond), func() { s.work("w" + strconv.Itoa(i)) })
	}
	s.disturb()
	s.after(o.churn, s.stop)
	end := s.now.Add(o.churn + o.quiet)
	for len(s.events) > 0 && !s.events[0].at.After(end) {
		e := heap.Pop(&s.events).(simEvent) //nolint:forcetypeassert // the queue holds nothing else
		s.now = e.at
		e.do()
		s.measure()
	}
	if s.used != len(s.pods) {
		s.result.right = -1
	}
	return s.result
}

func (s *simulation) measure() {
	s.result.most = max(s.result.most, len(s.pods))
	s.result.bare = max(s.result.bare, len(s.pods)+s.onTheirWay-s.used)
	switch {
	case s.used == len(s.pods)+s.onTheirWay:
		if s.ended && !s.wrongSince.IsZero() {
			s.result.right = s.now.Sub(noon.Add(s.churn))
		}
		s.wrongSince = time.Time{}
	case s.wrongSince.IsZero():
		s.wrongSince = s.now
	}
}

// stop lets every worker find that it is over, and deletes what is there.
func (s *simulation) stop() {
	s.ended = true
	for _, name := range slices.Sorted(maps.Keys(s.pods)) {
		s.remove(name)
	}
}

func (s *simulation) after(d time.Duration, do func()) {
	s.ids++
	heap.Push(&s.events, simEvent{at: s.now.Add(d), order: s.ids, do: do})
}

func (s *simulation) chance(p float64) bool { return s.random.Float64() < p }

func (s *simulation) upTo(d time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(d)))
}

func (s *simulation) around(d time.Duration) time.Duration {
	return time.Duration(s.random.ExpFloat64() * float64(d))
}

// The member.

// work is one worker, who creates a pod of its own, keeps it for a while,
// deletes it, and begins again.
func (s *simulation) work(name string) {
	if s.ended {
		return
	}
	created := s.now.Add(s.clockSkew).Truncate(time.Second)
	s.after(s.around(time.Millisecond), func() { s.admit(name, created, 3) })
}

// admit charges by compare-and-swap, with so many tries left after this one.
func (s *simulation) admit(name string, created time.Time, tries int) {
	read := simVersion{s.version, s.used}
	if read.used+1 > simHard {
		s.denied()
		s.after(5*time.Millisecond+s.upTo(10*time.Millisecond), func() { s.work(name) })
		return
	}
	s.after(s.around(time.Millisecond), func() {
		switch {
		case s.version == read.version:
			s.onTheirWay++
			s.charge(read.used + 1)
			s.store(name, created)
		case tries > 0:
			s.admit(name, created, tries-1)
		default:
			s.after(s.upTo(10*time.Millisecond), func() { s.work(name) })
		}
	})
}

// denied notes for how long creations are denied although there is room.
func (s *simulation) denied() {
	if !s.deniedAt.IsZero() && s.now.Sub(s.deniedAt) < 100*time.Millisecond && len(s.pods)+s.onTheirWay < simHard/2 {
		s.result.blocked += s.now.Sub(s.deniedAt)
	}
	s.deniedAt = s.now
}

func (s *simulation) charge(used int) {
	s.version++
	s.used = used
	version := simVersion{s.version, used}
	s.deliver(&s.quotaStream, func() { s.sawQuota(version) })
}

func (s *simulation) store(name string, created time.Time) {
	delay := s.around(3 * time.Millisecond)
	if s.chance(s.slow) {
		delay = s.upTo(5 * time.Second)
	}
	fails := s.chance(s.failing)
	s.after(delay, func() {
		s.onTheirWay--
		if fails {
			s.after(s.upTo(5*time.Millisecond), func() { s.work(name) })
			return
		}
		s.ids++
		pod := simPod{s.ids, created}
		s.pods[name] = pod
		s.result.created++
		s.revision++
		revision := s.revision
		s.deliver(&s.podStream, func() { s.sawPod(name, pod, revision) })
		if s.ended {
			s.after(0, func() { s.remove(name) })
			return
		}
		s.after(20*time.Millisecond+s.upTo(60*time.Millisecond), func() {
			s.remove(name)
			s.after(s.upTo(5*time.Millisecond), func() { s.work(name) })
		})
	})
}

func (s *simulation) remove(name string) {
	if _, found := s.pods[name]; !found {
		return
	}
	delete(s.pods, name)
	s.revision++
	revision := s.revision
	s.deliver(&s.podStream, func() { s.sawPodGo(name, revision) })
}

// deliver brings an event to the controller, after those before it.
func (s *simulation) deliver(to *simStream, do func()) {
	at := s.now.Add(time.Millisecond + s.around(5*time.Millisecond))
	for _, earliest := range []time.Time{to.last, to.stalled} {
		if at.Before(earliest) {
			at = earliest
		}
	}
	to.last = at
	life := s.life
	s.after(at.Sub(s.now), func() {
		if s.running && s.life == life {
			do()
		}
	})
}

// disturb plans what goes wrong.
func (s *simulation) disturb() {
	for _, stream := range []*simStream{&s.podStream, &s.quotaStream} {
		if s.stalls > 0 {
			s.every(s.stalls, func() { stream.stalled = s.now.Add(s.upTo(12 * time.Second)) })
		}
	}
	if s.restarts > 0 {
		s.every(s.restarts, s.restart)
	}
}

func (s *simulation) every(d time.Duration, do func()) {
	s.after(s.around(d), func() {
		if !s.ended {
			do()
			s.every(d, do)
		}
	})
}

// The controller.

// start lists both kinds and begins to watch.
func (s *simulation) start() {
	s.running = true
	s.life++ // what was sent before the lists is in them
	s.podStream, s.quotaStream = simStream{}, simStream{}
	s.keeper = s.rule(s)
	s.view = maps.Clone(s.pods)
	s.newest, s.planned = time.Time{}, time.Time{}
	s.writing, s.listing, s.nextLists = false, false, time.Time{}
	s.seen = simVersion{}
	s.sawQuota(simVersion{s.version, s.used})
	s.plan(0)
}

func (s *simulation) restart() {
	if !s.running {
		return
	}
	s.life++
	s.running = false
	s.after(s.upTo(2*time.Second), s.start)
}

func (s *simulation) sawQuota(v simVersion) {
	if v.version >= s.seen.version {
		s.seen = v
	}
	s.keeper.saw(v.version, v.used)
	s.plan(simSettle) // nothing may come of what was charged
}

// onePod is what each pod costs.
var onePod = &federation.Cost{Amounts: evaluator.Amounts{{Name: "pods", Quantity: *resource.NewQuantity(1, resource.DecimalSI)}}}

func (s *simulation) sawPod(name string, pod simPod, revision int) {
	s.view[name] = pod
	if pod.created.After(s.newest) {
		s.newest = pod.created
		s.keeper.confirmed(pod.created.Add(-simClockError), "")
	}
	s.keeper.pod(federation.Change{Namespace: "a", Kind: pods, Is: onePod, Created: pod.created, Version: simVersionName(revision)})
}

func (s *simulation) sawPodGo(name string, revision int) {
	delete(s.view, name)
	s.keeper.pod(federation.Change{Namespace: "a", Kind: pods, Was: onePod, Version: simVersionName(revision)})
	s.plan(5 * time.Millisecond)
}

// plan looks after a while, if nothing was planned for an earlier time.
func (s *simulation) plan(d time.Duration) {
	at := s.now.Add(d)
	if !s.planned.IsZero() && !s.planned.After(at) {
		return
	}
	s.planned = at
	life := s.life
	s.after(d, func() {
		if s.running && s.life == life && s.planned.Equal(at) {
			s.planned = time.Time{}
			s.sync()
		}
	})
}

func (s *simulation) sync() {
	if s.writing {
		s.plan(5 * time.Millisecond)
		return
	}
	used, again, confirm := s.keeper.decide(len(s.view))
	if confirm && !s.listing && !s.now.Before(s.nextLists) {
		s.list()
	}
	if !again.IsZero() {
		s.plan(again.Sub(s.now))
	}
	if used != s.seen.used {
		s.write(s.seen, used)
	}
}

// list asks the member itself, and compares that with what was seen.
func (s *simulation) list() {
	s.listing = true
	s.result.lists++
	life, began := s.life, s.now
	s.after(5*time.Millisecond, func() {
		listed, revision := maps.Clone(s.pods), s.revision
		s.after(5*time.Millisecond, func() {
			if s.life != life {
				return
			}
			s.listing, s.nextLists = false, s.now.Add(200*time.Millisecond)
			current := len(listed) == len(s.view)
			for name := range listed {
				_, known := s.view[name]
				current = current && known
			}
			if current {
				s.keeper.confirmed(began, simVersionName(revision))
				s.plan(0)
			}
		})
	})
}

// write stores used on the version that was seen, or fails, or nobody knows.
func (s *simulation) write(on simVersion, used int) {
	s.writing = true
	life := s.life
	s.keeper.sending()
	lost, late := s.chance(s.lost), s.chance(0.5)
	delay := s.around(2 * time.Millisecond)
	if lost && late {
		delay = s.upTo(3 * time.Second)
	}
	s.after(delay, func() {
		tell := s.refused
		if s.version == on.version {
			s.result.writes++
			s.charge(used)
			v := simVersion{s.version, s.used}
			tell = func() { s.stored(v) }
		}
		if !lost {
			s.answer(life, tell)
		}
	})
	if lost {
		s.after(300*time.Millisecond, func() {
			if s.life == life {
				s.writing = false
				s.keeper.lost()
				s.reread()
			}
		})
	}
}

// answer tells the controller how its write ended.
func (s *simulation) answer(life int, tell func()) {
	s.after(s.around(2*time.Millisecond), func() {
		if s.life == life {
			s.writing = false
			tell()
		}
	})
}

func (s *simulation) stored(v simVersion) {
	if v.version > s.seen.version {
		s.seen = v
	}
	s.keeper.stored(v.version, v.used)
}

func (s *simulation) refused() {
	s.keeper.refused()
	s.reread()
}

// reread gets the quota from the member itself.
func (s *simulation) reread() {
	life := s.life
	s.after(time.Millisecond, func() {
		v := simVersion{s.version, s.used}
		s.after(time.Millisecond, func() {
			if s.running && s.life == life {
				s.sawQuota(v)
				s.plan(0)
			}
		})
	})
}

// The rules.

const (
	simSettle     = 6 * time.Second
	simClockError = time.Second
)

// strict is the rule of this package.
type strict struct {
	s        *simulation
	release  *federation.Release
	decision federation.Decision
}

func newStrict(s *simulation) simRule { //nolint:ireturn // as simOptions.rule wants it
	return &strict{s: s, release: federation.NewRelease(evaluator.Selector{}, federation.ReleaseOptions{Settle: simSettle, ClockError: simClockError})}
}

func (r *strict) pod(c federation.Change) { r.release.Moved(c) }

func (r *strict) saw(version, used int) {
	r.release.Saw(simVersionName(version), simList(used), r.s.now)
}

func simVersionName(version int) string { return strconv.Itoa(version + 1) }

func (r *strict) confirmed(before time.Time, listed string) {
	var at map[schema.GroupResource]string
	if listed != "" {
		at = map[schema.GroupResource]string{pods: listed}
	}
	r.release.Confirmed("pods", before, at)
}

func (r *strict) decide(counted int) (int, time.Time, bool) {
	r.decision = r.release.Decide(func() corev1.ResourceList { return simList(counted) }, r.s.now)
	used := r.decision.Used["pods"]
	return int(used.Value()), r.decision.Again, len(r.decision.Confirm) > 0
}

func (r *strict) sending() { r.release.Sending(r.decision) }

func (r *strict) stored(version, used int) {
	r.release.Stored(simVersionName(version), simList(used), r.s.now)
}

func (r *strict) refused() { r.release.Refused() }

func (r *strict) lost() { r.release.Lost() }

func simList(n int) corev1.ResourceList {
	return corev1.ResourceList{"pods": *resource.NewQuantity(int64(n), resource.DecimalSI)}
}

// recount writes what it counts, as upstream's controller does.
type recount struct{}

func newRecount(*simulation) simRule { //nolint:ireturn // as simOptions.rule wants it
	return recount{}
}

func (recount) pod(federation.Change)                     {}
func (recount) saw(_, _ int)                              {}
func (recount) confirmed(time.Time, string)               {}
func (recount) decide(counted int) (int, time.Time, bool) { return counted, time.Time{}, false }
func (recount) sending()                                  {}
func (recount) stored(_, _ int)                           {}
func (recount) refused()                                  {}
func (recount) lost()                                     {}

// patient lowers used by releases, and down to what it counts only when nothing
// was charged for the time to settle. It is safe and blocks for long.
type patient struct {
	s              *simulation
	used, version  int
	freed, taken   int
	charged        time.Time
	confirmedUntil time.Time
}

func newPatient(s *simulation) simRule { //nolint:ireturn // as simOptions.rule wants it
	return &patient{s: s, charged: s.now}
}

func (r *patient) pod(c federation.Change) {
	if c.Is == nil {
		r.freed++
	}
}

func (r *patient) saw(version, used int) {
	if version <= r.version {
		return
	}
	if used > r.used {
		r.charged = r.s.now
	}
	r.version, r.used = version, used
}

func (r *patient) confirmed(before time.Time, _ string) { r.confirmedUntil = before }

func (r *patient) decide(counted int) (int, time.Time, bool) {
	until := r.charged.Add(simSettle)
	switch {
	case r.used-r.freed <= counted:
		return counted, time.Time{}, false
	case r.confirmedUntil.After(until):
		return counted, time.Time{}, false
	case r.s.now.After(until):
		return r.used - r.freed, r.s.now.Add(200 * time.Millisecond), true
	}
	return r.used - r.freed, until.Add(time.Millisecond), false
}

func (r *patient) sending() { r.freed, r.taken = 0, r.freed }

func (r *patient) stored(version, used int) {
	if version > r.version {
		r.version, r.used = version, used
	}
}

func (r *patient) refused() { r.freed += r.taken }
func (r *patient) lost()    {}

// The queue of events.

type simEvent struct {
	at    time.Time
	order int
	do    func()
}

type simQueue []simEvent

func (q *simQueue) Len() int { return len(*q) }

func (q *simQueue) Less(i, j int) bool {
	a, b := (*q)[i], (*q)[j]
	return a.at.Before(b.at) || a.at.Equal(b.at) && a.order < b.order
}

func (q *simQueue) Swap(i, j int) { (*q)[i], (*q)[j] = (*q)[j], (*q)[i] }

func (q *simQueue) Push(x any) {
	e := x.(simEvent) //nolint:forcetypeassert // the queue holds nothing else
	*q = append(*q, e)
}

func (q *simQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	*q = old[:len(old)-1]
	return last
}

// The claims.

func TestSimulatedChurn(t *testing.T) {
	t.Parallel()
	type story struct {
		simOptions

		created int // at least so many per cent of what a plain recount lets through
	}
	stories := map[string]story{
		"all goes well":              {simOptions{}, 80},
		"1 % fail after the charge":  {simOptions{failing: 0.01}, 20},
		"10 % fail after the charge": {simOptions{failing: 0.1}, 5},
		"some requests are slow":     {simOptions{slow: 0.01}, 20},
		"answers are lost":           {simOptions{lost: 0.05}, 20},
		"watches stall":              {simOptions{stalls: 15 * time.Second}, 15},
		"the controller starts anew": {simOptions{restarts: 20 * time.Second}, 40},
		"the clock is behind":        {simOptions{clockSkew: -simClockError, failing: 0.01}, 20},
		"the clock is ahead":         {simOptions{clockSkew: simClockError, failing: 0.01}, 20},
		"everything that can go wrong": {simOptions{
			failing: 0.01, slow: 0.005, lost: 0.02, stalls: 20 * time.Second, restarts: 20 * time.Second, clockSkew: 700 * time.Millisecond,
		}, 5},
	}
	for name, o := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o.workers, o.churn, o.quiet = 24, time.Minute, 2*time.Minute
			var overshot int
			var created, createdByRecount, createdByPatient int
			for seed := range simSeeds() {
				o.seed, o.rule = seed, newStrict
				ours := simulate(o.simOptions)
				if ours.most > simHard || ours.bare > 0 || ours.right < 0 || ours.right > time.Minute {
					t.Errorf("seed %d: %v", seed, ours)
				}
				o.rule = newRecount
				theirs := simulate(o.simOptions)
				o.rule = newPatient
				patient := simulate(o.simOptions)
				overshot = max(overshot, theirs.most)
				created += ours.created
				createdByRecount += theirs.created
				createdByPatient += patient.created
				if seed == 0 {
					t.Logf("recount: %v", theirs)
					t.Logf("patient: %v", patient)
					t.Logf("strict:  %v", ours)
				}
			}
			share := 100 * created / createdByRecount
			t.Logf("plain recount had up to %d pods; strict release created %d %% of what it did, the patient rule %d %%",
				overshot, share, 100*createdByPatient/createdByRecount)
			if overshot <= simHard {
				t.Errorf("a plain recount does not pass the limit: this story shows nothing")
			}
			if share < o.created {
				t.Errorf("created %d %% of what a plain recount lets through, want at least %d %%", share, o.created)
			}
		})
	}
}

// simSeeds is how many stories of each kind are played; SIM_SEEDS asks for more.
func simSeeds() uint64 {
	if n, err := strconv.ParseUint(os.Getenv("SIM_SEEDS"), 10, 64); err == nil {
		return n
	}
	return 1
}
