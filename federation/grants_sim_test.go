package federation_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// grantWorld is one FleetQuota, its record of grants, up to four members, and up to two
// hubs that act at the same time. There are no goroutines that run side by side and
// there is no clock but that of the world: a seed says what happens next, one small
// thing at a time, and tells one story. First everything that can go wrong goes
// wrong; then faults stop, and every member must come to its share. After each
// thing that happens the promise is checked (grants_sim_promise_test.go).
type grantWorld struct {
	random *rand.Rand
	odds   [acts]int
	now    time.Time

	members []*member
	hubs    []*hub
	mail    []*letter // on its way, in no order
	wishes  *wishes
	noted   types.UID // status.grantUID
	record  *grant    // nil: there is none
	copies  []*grant  // older ones that somebody kept
	held    map[string]bool
	ids     int

	// Only for the check.
	lost     perKey          // the limit on the record that was lost, until that is made good
	marks    map[string]bool // that were intended
	restored bool            // an older copy of the record was put back
	broken   string          // what was found first
	tell     func(format string, args ...any)
}

// grant is a FleetGrant, which nobody changes once it is stored, and the same in
// numbers.
type grant struct {
	federation.Record

	version int
	hard    perKey
	granted map[string]perKey
}

// String is the record in few words.
func (g *grant) String() string {
	if g == nil {
		return "none"
	}
	text := fmt.Sprintf("%s hard %v revision %d", g.ID, g.hard, g.Spec.Revision)
	for i := range g.Spec.Members {
		row := &g.Spec.Members[i]
		text += fmt.Sprintf(" [%s %s#%s r%d granted %v target %v]",
			row.Cluster, row.State, row.QuotaUID, row.Revision, perKeyOf(row.Granted), perKeyOf(row.Target))
	}
	return text
}

// What happens next.
const (
	actHub = iota
	actWatch
	actDeliver
	actLook
	actWrite
	actStart
	actEnd
	actTime
	faults
	actLose
	actCrash
	actSleep
	actLimit
	actKey
	actMode
	actPolicy
	actDivide
	actSelect
	actFence
	actCut
	actController
	tampering
	actEdit
	actMark
	actDelete
	actMake
	actNamespace
	actBackup
	actRollBack
	actLoseRecord
	actCopy
	actRestore
	acts
)

// newGrantWorld draws the size of a world, and what goes wrong in it and how often.
func newGrantWorld(seed uint64) *grantWorld {
	w := &grantWorld{
		random: rand.New(rand.NewPCG(seed, 7)), now: time.Unix(1_700_000_000, 0),
		held: map[string]bool{}, marks: map[string]bool{}, tell: func(string, ...any) {},
	}
	for i := range 2 + w.random.IntN(3) {
		w.members = append(w.members, newMember(fmt.Sprintf("m%d", i)))
	}
	w.odds = [acts]int{
		actHub: 60, actWatch: 12, actDeliver: 4 << w.random.IntN(3), actLook: 10, actWrite: 10, actStart: 12, actEnd: 5, actTime: 4,
	}
	last := acts
	if w.coin() {
		last = tampering // so that the promise covers all for a long time
	}
	for a := faults + 1; a < last; a++ {
		if w.random.IntN(3) == 0 {
			w.odds[a] = 1 + w.random.IntN(3)
		}
	}
	w.wish()
	for range 1 + w.random.IntN(2) {
		h := newHub()
		w.hubs = append(w.hubs, h)
		w.refresh(h, always)
	}
	return w
}

func (w *grantWorld) coin() bool { return w.random.IntN(2) == 0 }

func always() bool { return true }

func (w *grantWorld) member(name string) *member {
	return w.members[slices.IndexFunc(w.members, func(m *member) bool { return m.name == name })]
}

func (w *grantWorld) newID(prefix string) types.UID {
	w.ids++
	return types.UID(prefix + strconv.Itoa(w.ids))
}

// live lets so many things happen.
func (w *grantWorld) live(steps int) {
	sum := 0
	for _, odds := range w.odds {
		sum += odds
	}
	for range steps {
		n, a := w.random.IntN(sum), actHub
		for n >= w.odds[a] {
			n -= w.odds[a]
			a++
		}
		w.do(a)
		w.check()
		if w.broken != "" {
			return
		}
	}
}

func (w *grantWorld) do(a int) {
	i := w.random.IntN(len(w.members))
	m, h := w.members[i], w.hubs[w.random.IntN(len(w.hubs))]
	switch a {
	case actHub:
		w.turn(h)
	case actWatch:
		w.refresh(h, w.coin)
	case actDeliver:
		w.deliver()
	case actTime:
		w.now = w.now.Add(time.Duration(w.random.IntN(30)) * time.Second)
	case actLose:
		w.lose()
	case actCrash:
		w.forget(h)
	case actSleep:
		h.asleep = w.random.IntN(100)
	case actLimit, actKey, actMode, actPolicy, actDivide, actSelect, actFence:
		w.change(a, i)
	case actLoseRecord, actCopy, actRestore:
		w.harm(a)
	default:
		w.happen(a, m)
	}
}

// happen is what happens in a member.
func (w *grantWorld) happen(a int, m *member) {
	switch a {
	case actLook:
		m.look()
	case actWrite:
		if !m.dead {
			m.write()
		}
	case actStart:
		m.start([simKeys]int{1, 5 * w.random.IntN(5), w.random.IntN(2)})
	case actEnd:
		if k := w.random.IntN(simKeys); m.running[k] > 0 {
			m.running[k] -= 1 + w.random.IntN(m.running[k])
		}
	case actCut:
		m.cut = !m.cut
		w.tell("%s is cut off: %t", m.name, m.cut)
	case actController:
		m.dead = !m.dead
		w.tell("the quota controller of %s is dead: %t", m.name, m.dead)
	case actBackup:
		m.backup = etcd{m.quota, m.running}
	default:
		w.tamper(a, m)
	}
}

// tamper is what others do in a member.
func (w *grantWorld) tamper(a int, m *member) {
	q := &m.quota
	switch {
	case a == actNamespace:
		if q.uid != "" {
			m.remove()
		}
		m.namespace, m.running = !m.namespace, [simKeys]int{}
	case a == actMake && m.namespace:
		if q.uid != "" {
			m.remove()
		}
		w.makeByHand(m)
	case a == actDelete && q.uid != "":
		m.remove()
	case a == actRollBack && m.backup.quota.uid != "" && m.namespace:
		version := q.version
		m.quota, m.running = m.backup.quota, m.backup.running
		m.quota.version = version + 1
	case a == actMark && q.uid != "":
		switch w.random.IntN(3) {
		case 0:
			q.mark = ""
		case 1:
			q.label = !q.label
		default:
			q.mark, q.label = "", false
		}
		q.version++
	case a == actEdit && q.uid != "":
		k := w.random.IntN(simKeys)
		q.hard[k] = (w.random.IntN(14) - 1) * simUnits[k]
		if q.hard[k] < 0 {
			q.hard[k] = absent
		}
		q.version++
	default:
		return
	}
	m.doubt()
	w.tell("others change %v", m)
}

// makeByHand is a quota that a user makes, of a copy or not.
func (w *grantWorld) makeByHand(m *member) {
	q := localQuota{uid: w.newID("q"), scopes: w.random.IntN(8) == 0}
	for k := range q.hard {
		q.hard[k] = w.random.IntN(13) * simUnits[k]
		if w.random.IntN(6) == 0 {
			q.hard[k] = absent
		}
	}
	if w.coin() {
		q.mark, q.label, q.hard = m.copied.mark, m.copied.label, m.copied.hard
	}
	m.create(q)
}

// post sends a request on its way.
func (w *grantWorld) post(l *letter) {
	w.tell("sent: %v", l)
	w.mail = append(w.mail, l)
}

// send writes the record. It is false when no answer comes, though the request
// may still arrive, and when it is refused.
func (w *grantWorld) send(c *commit) bool {
	if sameSpec(c.record.Spec, c.pass.Spec) {
		return true
	}
	if w.odds[actLose] > 0 && w.random.IntN(12) == 0 {
		w.post(&letter{record: c})
		return false
	}
	return w.take(c)
}

// take is the compare-and-swap of the record.
func (w *grantWorld) take(c *commit) bool {
	if w.record == nil || w.record.version != c.record.version {
		w.tell("a hub cannot write the record")
		return false
	}
	w.audit(c)
	w.put(federation.Record{ID: w.record.ID, Spec: c.pass.Spec})
	w.tell("a hub that has seen %v and wants %v writes the record: %v", slices.Sorted(maps.Keys(c.seen)), perKeyOf(c.limit), w.record)
	return true
}

// put stores a record.
func (w *grantWorld) put(r federation.Record) {
	w.ids++
	g := &grant{Record: r, version: w.ids, hard: perKeyOf(r.Spec.Hard), granted: map[string]perKey{}}
	for i := range r.Spec.Members {
		g.granted[r.Spec.Members[i].Cluster] = perKeyOf(r.Spec.Members[i].Granted)
	}
	w.record = g
	for k, hard := range g.hard {
		for _, m := range w.members {
			m.covered[k] = m.covered[k] && hard != absent
		}
	}
	if !w.recovering() {
		w.lost = perKey{}
	}
}

// deliver brings one request to where it goes, if that can be reached, and
// sometimes it will arrive once more.
func (w *grantWorld) deliver() {
	if len(w.mail) == 0 {
		return
	}
	n := w.random.IntN(len(w.mail))
	l := w.mail[n]
	if l.to != nil && l.to.cut {
		return
	}
	if w.odds[actLose] == 0 || w.random.IntN(8) > 0 {
		w.mail = slices.Delete(w.mail, n, n+1)
	}
	if l.record != nil {
		w.take(l.record)
		return
	}
	if row := w.row(l.to); l.Kind == federation.WriteRelease && (row == nil || row.State == v1alpha1.Releasing) && l.passes(&l.to.quota) {
		l.to.covered = [simKeys]bool{}
	}
	taken := l.to.take(l, func() types.UID { return w.newID("q") })
	w.tell("arrived: %v; taken %t, and now %v", l, taken, l.to)
}

// row is the row of a member; nil when it has none.
func (w *grantWorld) row(m *member) *v1alpha1.Grant {
	if w.record == nil {
		return nil
	}
	return w.record.Row(m.name)
}

func (w *grantWorld) lose() {
	if len(w.mail) == 0 {
		return
	}
	n := w.random.IntN(len(w.mail))
	w.tell("lost: %v", w.mail[n])
	w.mail = slices.Delete(w.mail, n, n+1)
}

// harm is what happens to the record.
func (w *grantWorld) harm(a int) {
	switch {
	case a == actCopy && w.record != nil:
		w.copies = append(w.copies, w.record)
	case a == actLoseRecord && w.record != nil:
		for k, hard := range w.record.hard {
			w.lost[k] = max(w.lost[k], hard)
		}
		w.record = nil
		w.tell("the record is lost")
	case a == actRestore && len(w.copies) > 0:
		r := w.copies[w.random.IntN(len(w.copies))].Record
		if w.coin() {
			r.ID = w.newID("r")
		}
		w.restored = true
		for _, m := range w.members {
			m.doubt()
		}
		w.put(r)
		w.tell("an older copy of the record is put back: %v", w.record)
	}
}

// story plays a seed. It says what was broken, or how many passes it took at last.
func story(seed uint64, tell func(string, ...any)) (broken string, passes int) {
	const steps = 300
	w := newGrantWorld(seed)
	if tell != nil {
		w.tell = tell
	}
	if w.random.IntN(4) > 0 { // the others begin with nothing
		odds := w.odds
		w.settle()
		w.odds = odds
	}
	if w.broken == "" {
		w.live(steps)
	}
	if w.broken == "" {
		passes = w.settle()
	}
	for _, h := range w.hubs {
		if h.stop != nil {
			h.stop()
		}
	}
	return w.broken, passes
}

// TestGrantsUnderFaults plays 10,000 stories. GRANT_SEEDS=1000000 asks for more,
// GRANT_FROM=5000 begins later, and GRANT_SEED=1234 tells one.
func TestGrantsUnderFaults(t *testing.T) {
	t.Parallel()
	if seed, err := strconv.ParseUint(os.Getenv("GRANT_SEED"), 10, 64); err == nil {
		broken, passes := story(seed, t.Logf)
		t.Logf("settled after %d passes", passes)
		if broken != "" {
			t.Error(broken)
		}
		return
	}
	first, most := fromEnv("GRANT_FROM", 0), seeds()
	workers := uint64(runtime.GOMAXPROCS(0))
	slowest := make([]int, workers)
	for worker := range workers {
		t.Run(strconv.FormatUint(worker, 10), func(t *testing.T) {
			t.Parallel()
			for seed := first + worker; seed < first+most; seed += workers {
				broken, passes := story(seed, nil)
				if broken != "" {
					t.Fatalf("GRANT_SEED=%d tells how: %s", seed, broken)
				}
				slowest[worker] = max(slowest[worker], passes)
			}
		})
	}
	t.Cleanup(func() {
		t.Logf("%d stories from %d, settled after at most %d passes", most, first, slices.Max(slowest))
	})
}

// seeds is how many stories are told.
func seeds() uint64 {
	normal := uint64(10_000)
	if testing.Short() || raceEnabled() {
		normal = 300
	}
	return fromEnv("GRANT_SEEDS", normal)
}

func fromEnv(name string, otherwise uint64) uint64 {
	if n, err := strconv.ParseUint(os.Getenv(name), 10, 64); err == nil {
		return n
	}
	return otherwise
}

// raceEnabled says whether the race detector makes all of this slow.
func raceEnabled() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
