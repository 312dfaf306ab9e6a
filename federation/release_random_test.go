package federation_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"pgregory.net/rapid"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation"
)

// The oracle of a Release keeps every object and every request, and adds up
// what used must cover each time it is asked: all that is stored, and all that
// admission has charged for and that may still be stored. Nobody can cover growth
// that is not charged for before it is seen.

var releaseNames = []corev1.ResourceName{"pods", "requests.memory"}

type oracleObject struct {
	id     int
	name   string
	amount [2]int64 // of releaseNames
	asked  [2]int64 // and what was charged at first
	stamp  time.Time
	until  time.Time // a request ends before
}

func (o oracleObject) cost() *federation.Cost {
	return &federation.Cost{Amounts: evaluator.Amounts{
		{Name: "pods", Quantity: *resource.NewQuantity(o.amount[0], resource.DecimalSI)},
		{Name: "requests.memory", Quantity: *resource.NewQuantity(o.amount[1], resource.BinarySI)},
	}}
}

type oracleVersion struct {
	version int
	used    [2]int64
}

func (v oracleVersion) list() corev1.ResourceList {
	return corev1.ResourceList{
		"pods":            *resource.NewQuantity(v.used[0], resource.DecimalSI),
		"requests.memory": *resource.NewQuantity(v.used[1], resource.BinarySI),
	}
}

func (v oracleVersion) name() string { return strconv.Itoa(v.version) }

type oracleWrite struct {
	on    int
	used  [2]int64
	known map[string]oracleObject // when it was decided
}

type oracle struct {
	now  time.Time
	skew time.Duration
	ids  int

	// the member
	revision int
	quota    oracleVersion
	requests []oracleObject // charged, and neither stored nor failed
	objects  map[string]oracleObject
	late     []oracleWrite // sent, not stored yet, and may never be

	// what is on its way to the controller
	moves    []oracleMove
	versions []oracleVersion

	// the controller
	release *federation.Release
	view    map[string]oracleObject
	seen    oracleVersion
	newest  time.Time
}

type oracleMove struct {
	version int
	name    string
	is      *oracleObject // nil: it is gone
}

const oracleError = time.Second

func newOracle(t *rapid.T) *oracle {
	o := &oracle{now: noon, objects: map[string]oracleObject{}, quota: oracleVersion{version: 1}, revision: 1}
	o.skew = time.Duration(rapid.Int64Range(int64(-oracleError), int64(oracleError)).Draw(t, "skew"))
	o.restart()
	return o
}

// restart lists both kinds and begins anew.
func (o *oracle) restart() {
	o.release = federation.NewRelease(evaluator.Selector{}, federation.ReleaseOptions{Settle: simSettle, ClockError: oracleError})
	o.view = maps.Clone(o.objects)
	o.moves, o.versions, o.newest = nil, nil, time.Time{}
	o.saw(o.quota)
	o.seen = o.quota
	o.release.Decide(o.counted, o.now) // its history begins
}

func (o *oracle) saw(v oracleVersion) {
	o.release.Saw(v.name(), v.list(), o.now)
	if v.version > o.seen.version {
		o.seen = v
	}
}

// needed is what used must cover for somebody who has seen so much.
func (o *oracle) needed(view map[string]oracleObject) (sum [2]int64) {
	for _, request := range o.requests {
		sum[0] += request.amount[0]
		sum[1] += request.amount[1]
	}
	for name, object := range o.objects {
		known := object.asked
		if was := view[name]; was.id == object.id {
			known = was.amount
		}
		sum[0] += min(object.amount[0], known[0])
		sum[1] += min(object.amount[1], known[1])
	}
	return sum
}

// covered says whether used covers growth too that was not charged for: a
// controller that begins anew knows no better.
func (o *oracle) covered() bool {
	sum := o.needed(nil)
	for _, object := range o.objects {
		for i := range sum {
			sum[i] += max(0, object.amount[i]-object.asked[i])
		}
	}
	return sum[0] <= o.quota.used[0] && sum[1] <= o.quota.used[1]
}

func (o *oracle) put(used [2]int64) {
	o.quota = oracleVersion{o.quota.version + 1, used}
	o.versions = append(o.versions, o.quota)
}

// admit charges for an object.
func (o *oracle) admit(t *rapid.T) {
	o.ids++
	request := oracleObject{
		id:     o.ids,
		name:   rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "name"),
		amount: [2]int64{1, rapid.Int64Range(0, 3).Draw(t, "memory")},
		stamp:  o.now.Add(o.skew).Truncate(time.Second),
		until:  o.now.Add(simSettle),
	}
	request.asked = request.amount
	used := o.quota.used
	for i := range used {
		used[i] += request.amount[i]
	}
	o.put(used)
	o.requests = append(o.requests, request)
}

// end stores the object of a request, or not. A name that is taken fails.
func (o *oracle) end(i int, fails bool) { //nolint:revive // it is how it ends
	request := o.requests[i]
	o.requests = append(o.requests[:i:i], o.requests[i+1:]...)
	if _, taken := o.objects[request.name]; taken || fails {
		return
	}
	o.objects[request.name] = request
	o.move(request.name, &request)
}

func (o *oracle) move(name string, is *oracleObject) {
	o.revision++
	o.moves = append(o.moves, oracleMove{o.revision, name, is})
}

func (o *oracle) anyObject(t *rapid.T) (oracleObject, bool) {
	object, found := o.objects[rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "object")]
	return object, found
}

// deliver shows the controller the next change of an object.
func (o *oracle) deliver() {
	m := o.moves[0]
	o.moves = o.moves[1:]
	change := federation.Change{Kind: pods, Version: strconv.Itoa(m.version)}
	if was, had := o.view[m.name]; had {
		change.Was = was.cost()
	}
	if m.is == nil {
		delete(o.view, m.name)
		o.release.Moved(change)
		return
	}
	change.Is, change.Created = m.is.cost(), m.is.stamp
	o.view[m.name] = *m.is
	o.release.Moved(change)
	if change.Was == nil && m.is.stamp.After(o.newest) {
		o.newest = m.is.stamp
		o.release.Confirmed("pods", o.newest.Add(-oracleError), nil)
	}
}

func (o *oracle) counted() corev1.ResourceList {
	var v oracleVersion
	for _, object := range o.view {
		for i := range v.used {
			v.used[i] += object.amount[i]
		}
	}
	return v.list()
}

// confirm lists the objects at this moment.
func (o *oracle) confirm() {
	if len(o.view) != len(o.objects) {
		return
	}
	for name, object := range o.objects {
		if was, had := o.view[name]; !had || was.amount != object.amount {
			return
		}
	}
	o.release.Confirmed("pods", o.now, map[schema.GroupResource]string{pods: strconv.Itoa(o.revision)})
}

// land stores a write if nothing else was stored since, and says whether it
// did. It is here that too little may be covered.
func (o *oracle) land(t *rapid.T, w oracleWrite) bool {
	if w.on != o.quota.version {
		return false
	}
	needed := o.needed(w.known)
	for i, name := range releaseNames {
		if w.used[i] < o.quota.used[i] && w.used[i] < needed[i] {
			t.Fatalf("%s is lowered from %d to %d, where %d is stored and on its way", name, o.quota.used[i], w.used[i], needed[i])
		}
	}
	o.put(w.used)
	return true
}

// write decides and writes, with one of the ends that a write can have.
func (o *oracle) write(t *rapid.T) {
	d := o.release.Decide(o.counted, o.now)
	w := oracleWrite{on: o.seen.version, known: maps.Clone(o.view)}
	if d.Version != o.seen.name() {
		t.Fatalf("decided for version %s, and %s was seen", d.Version, o.seen.name())
	}
	for i, name := range releaseNames {
		used := d.Used[name]
		w.used[i] = used.Value()
	}
	if w.used == o.seen.used {
		return
	}
	o.release.Sending(d)
	switch rapid.SampledFrom([]string{"answered", "answered", "answered", "lost", "late"}).Draw(t, "end") {
	case "answered":
		if !o.land(t, w) {
			o.release.Refused()
			o.saw(o.quota)
			return
		}
		o.release.Stored(o.quota.name(), o.quota.list(), o.now)
		o.seen = o.quota
	case "lost":
		o.land(t, w)
		o.release.Lost()
	case "late":
		o.late = append(o.late, w)
		o.release.Lost()
	}
}

// pass lets time go by. Requests whose time is up end before.
func (o *oracle) pass(t *rapid.T) {
	o.now = o.now.Add(time.Duration(rapid.Int64Range(0, int64(3*time.Second)).Draw(t, "pass")))
	for i, request := range slices.Backward(o.requests) {
		if !o.now.Before(request.until) {
			o.end(i, false)
		}
	}
}

func TestReleaseNeverLowersBelowWhatIsStoredAndOnItsWay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := newOracle(t)
		t.Repeat(map[string]func(*rapid.T){
			"admit": o.admit,
			"end": func(t *rapid.T) {
				if len(o.requests) > 0 {
					o.end(rapid.IntRange(0, len(o.requests)-1).Draw(t, "request"), rapid.IntRange(0, 3).Draw(t, "fails") == 0)
				}
			},
			"delete": func(t *rapid.T) {
				if object, found := o.anyObject(t); found {
					delete(o.objects, object.name)
					o.move(object.name, nil)
				}
			},
			"resize without a charge": func(t *rapid.T) {
				if object, found := o.anyObject(t); found {
					object.amount[1] = rapid.Int64Range(0, 3).Draw(t, "memory")
					o.objects[object.name] = object
					o.move(object.name, &object)
				}
			},
			"see an object": func(*rapid.T) {
				if len(o.moves) > 0 {
					o.deliver()
				}
			},
			"see all objects": func(*rapid.T) {
				for len(o.moves) > 0 {
					o.deliver()
				}
			},
			"see the quota": func(*rapid.T) {
				if len(o.versions) > 0 {
					o.saw(o.versions[0])
					o.versions = o.versions[1:]
				}
			},
			"read the quota": func(*rapid.T) { o.saw(o.quota) },
			"write":          o.write,
			"a late write": func(t *rapid.T) {
				if len(o.late) > 0 {
					o.land(t, o.late[0])
					o.late = o.late[1:]
				}
			},
			"list":  func(*rapid.T) { o.confirm() },
			"pass":  o.pass,
			"pause": o.pass,
			"restart": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "restart") == 0 && o.covered() {
					o.restart()
				}
			},
			"": func(*rapid.T) {},
		})
	})
}
