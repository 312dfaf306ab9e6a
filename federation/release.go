package federation

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/fleetquota/fleetquota/evaluator"
)

// Release decides how far the used amounts of one quota may be lowered where
// nobody else lowers them. Admission charges a quota before the object is
// stored, so that a plain recount can take back what was charged a moment ago,
// and then too much is admitted.
//
// It keeps this promise: used covers every object that is stored and every one
// that admission has charged for and that may still be stored, as long as it
// did before, and as long as a request ends within the time to settle. For each
// resource by itself:
//
//   - used is raised to the ledger at once;
//   - used is lowered by what was seen to be released since the last write,
//     each release once;
//   - or down to the ledger and what may still be on its way: what admission has
//     charged within the time to settle, less the charges of objects that were
//     created within it and have been seen.
//
// The second is fast and may leave used too high, after a creation that failed
// once it was charged, or after a write whose answer was lost. The third puts
// that right. What a change costs does not depend on how many objects there
// are. A Release does no I/O and never asks for the time; it is safe for
// concurrent use.
type Release struct {
	options  ReleaseOptions
	selector evaluator.Selector

	mu       sync.Mutex // guards all below
	changes  int        // counts the calls of Moved
	version  string     // the newest resourceVersion of the quota that was seen
	used     corev1.ResourceList
	accounts map[corev1.ResourceName]*account  // of what can be lowered
	current  map[corev1.ResourceName]time.Time // resource -> the ledger is known to hold all of it that was stored before
	listed   map[schema.GroupResource]lastList // kind -> the last list that it agreed with
	sending  *sending                          // the write that is under way
	lost     corev1.ResourceList               // the least that was written on this version when nobody knows whether it was stored
	unread   []version                         // seen while a write is under way
}

// ReleaseOptions say what a [Release] can rely on. The zero value is of no use:
// see [Release] for what the time to settle is for.
type ReleaseOptions struct {
	Settle     time.Duration // a request has ended, and what it stored can be read, this long after it was charged
	ClockError time.Duration // how far the member's clock may be from what is believed
}

// account is the history of one resource of a quota.
type account struct {
	began   time.Time         // since when it is complete
	freed   resource.Quantity // releases that no write has used yet, less growth that admission may not have charged
	charged history           // by admission, by when it was seen
	stored  history           // the charges of new objects, by when they were created
}

// lastList is a list that the ledger agreed with, object by object.
type lastList struct {
	version string    // its resourceVersion
	recent  time.Time // what was created from then on counted as on its way when it was made
}

// version is a quota as it was seen.
type version struct {
	resourceVersion string
	used            corev1.ResourceList
	at              time.Time
}

// sending is a write that is under way.
type sending struct {
	used  corev1.ResourceList
	taken map[corev1.ResourceName]resource.Quantity // of the releases
}

// Decision is what should be done now.
type Decision struct {
	Version string                // the resourceVersion that it was made for: no other may be overwritten
	Used    corev1.ResourceList   // what should be written, of the resources that the ledger knows
	Truth   corev1.ResourceList   // what is counted, and what may be on its way if the ledger is current; never above what is used for that
	Again   time.Time             // when to look again, even if nothing happens; zero: no need
	Confirm []corev1.ResourceName // of which less may be used, if the ledger is current

	taken map[corev1.ResourceName]resource.Quantity // of what is freed, by what is lowered or raised
}

// NewRelease makes a Release for the objects in the scopes of a quota. All that
// is used beyond the ledger counts as just charged.
func NewRelease(selector evaluator.Selector, o ReleaseOptions) *Release {
	return &Release{
		options: o, selector: selector, accounts: map[corev1.ResourceName]*account{},
		current: map[corev1.ResourceName]time.Time{}, listed: map[schema.GroupResource]lastList{},
	}
}

// Moved notes a change of an object's charge in the quota's namespace. It must
// be called before anybody can read a ledger with that change.
func (r *Release) Moved(c Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
	for name, a := range r.accounts {
		canonical := evaluator.Canonical(name)
		more, before := r.amount(c.Is, canonical), r.amount(c.Was, canonical)
		more.Sub(before)
		switch {
		case c.Was != nil || r.late(c):
			a.freed.Sub(more) // growth that used does not cover for sure is not freed later
		case !c.Created.Before(a.began.Add(r.options.ClockError)):
			a.stored.drop(c.Created.Add(-r.options.memory()))
			a.stored.add(c.Created, more, 0)
		}
	}
}

// late says whether a new object has come, and may have gone, before a list that
// did not show it, so that used was lowered without it.
func (r *Release) late(c Change) bool {
	last, ok := r.listed[c.Kind]
	return ok && c.Version != "" && !newer(c.Version, last.version) && c.Created.Before(last.recent)
}

// amount is how much of a resource a cost takes from the quota.
func (r *Release) amount(c *Cost, name corev1.ResourceName) resource.Quantity {
	if c == nil || !r.selector.Matches(c.Class) {
		return resource.Quantity{}
	}
	i, found := slices.BinarySearchFunc(c.Amounts, name, func(a evaluator.Amount, name corev1.ResourceName) int {
		return cmp.Compare(a.Name, name)
	})
	if !found {
		return resource.Quantity{}
	}
	return c.Amounts[i].Quantity.DeepCopy()
}

// Saw notes a version of the quota. Those that are older than one seen before
// say nothing new.
func (r *Release) Saw(resourceVersion string, used corev1.ResourceList, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := version{resourceVersion, used, now}
	if r.sending != nil {
		r.unread = append(r.unread, v)
		return
	}
	r.read(v)
}

// read learns from a newer version what admission has charged.
func (r *Release) read(v version) {
	if !newer(v.resourceVersion, r.version) {
		return
	}
	for name, a := range r.accounts {
		now, known := v.used[name]
		if !known {
			delete(r.accounts, name)
			continue
		}
		more := now.DeepCopy()
		more.Sub(r.before(name))
		switch more.Sign() {
		case -1: // somebody else lowers it: what is freed may be freed already
			delete(r.accounts, name)
		case 1:
			a.charged.drop(v.at.Add(-r.options.memory()))
			a.charged.add(v.at, more, r.options.Settle/grains)
		}
	}
	r.version, r.used, r.lost = v.resourceVersion, v.used, nil
}

// grains is in how many parts the time to settle is told apart.
const grains = 64

// memory is how long charges are remembered: long enough for a ledger that is
// some way behind.
func (o ReleaseOptions) memory() time.Duration { return 3 * o.Settle }

// before is what was used before the version that is being read: of a write
// that was lost, the least that it can have been.
func (r *Release) before(name corev1.ResourceName) resource.Quantity {
	was := r.used[name]
	if sent, ok := r.lost[name]; ok && sent.Cmp(was) < 0 {
		return sent
	}
	return was
}

// newer says whether a resourceVersion comes after another; what cannot be
// compared is taken for newer if it differs.
func newer(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	if err != nil {
		return a != b
	}
	return order > 0
}

// Confirmed notes that the ledger holds everything of a resource that was stored
// before a time. If that is so because it agrees, object by object, with lists
// that were made then, their resourceVersions must be given: the ledger may still
// be told of what came and went before.
func (r *Release) Confirmed(name corev1.ResourceName, before time.Time, lists map[schema.GroupResource]string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if before.After(r.current[name]) {
		r.current[name] = before
	}
	for kind, version := range lists {
		r.listed[kind] = lastList{version, r.start(before).Add(r.options.ClockError)}
	}
}

// Decide says what should be written. It reads the ledger through the function:
// the resources that are known, under the names that the quota has for them.
func (r *Release) Decide(ledger func() corev1.ResourceList, now time.Time) Decision {
	r.mu.Lock()
	defer r.mu.Unlock()
	counted := r.consistent(ledger)
	maps.DeleteFunc(r.accounts, func(name corev1.ResourceName, _ *account) bool {
		_, known := counted[name]
		return !known
	})
	d := Decision{
		Version: r.version, Used: corev1.ResourceList{}, Truth: corev1.ResourceList{},
		taken: map[corev1.ResourceName]resource.Quantity{},
	}
	for name, count := range counted {
		d.Used[name], d.Truth[name] = count.DeepCopy(), count
		if used, known := r.used[name]; known {
			r.decide(name, used, count, now, &d)
		}
	}
	return d
}

// consistent reads the ledger so that the accounts have noted exactly those
// changes that it holds. Moved is called with the ledger locked, so that the
// lock must be given up meanwhile.
func (r *Release) consistent(ledger func() corev1.ResourceList) corev1.ResourceList {
	for {
		before := r.changes
		r.mu.Unlock()
		counted := ledger()
		r.mu.Lock()
		if r.changes == before {
			return counted
		}
	}
}

// account finds or makes the account of a resource. Of a new one nothing is
// known but what is used and what is counted: what is used beyond that may be on
// its way, and what is counted beyond that may not be charged.
func (r *Release) account(name corev1.ResourceName, surplus resource.Quantity, now time.Time) *account {
	a := r.accounts[name]
	if a == nil {
		a = &account{began: now}
		r.accounts[name] = a
		switch surplus.Sign() {
		case 1:
			a.charged.add(now, surplus, 0)
		case -1:
			a.freed = surplus.DeepCopy()
		}
	}
	return a
}

// decide adds a resource to a decision that holds what is counted.
func (r *Release) decide(name corev1.ResourceName, used, count resource.Quantity, now time.Time, d *Decision) {
	surplus := used.DeepCopy()
	surplus.Sub(count)
	a := r.account(name, surplus, now)
	if surplus.Sign() <= 0 {
		if taken := a.raised(surplus); !taken.IsZero() {
			d.taken[name] = taken
		}
		return
	}
	target := r.target(a, used, count, r.current[name], now)
	d.Used[name] = target
	lowered := used.DeepCopy()
	lowered.Sub(target)
	if a.freed.Sign() > 0 && lowered.Sign() > 0 {
		d.taken[name] = lesser(a.freed.DeepCopy(), lowered)
	}
	possible, _ := r.bound(a, count, now, now)
	d.Truth[name] = lesser(possible, used).DeepCopy()
	if target.Cmp(count) == 0 {
		return
	}
	if possible.Cmp(target) < 0 {
		d.Confirm = append(d.Confirm, name)
	}
	settle := r.options.Settle
	d.again(a.charged.next(now.Add(-settle)).Add(settle), now.Add(settle/grains))
}

// target is how far what is used may be lowered towards what is counted.
func (r *Release) target(a *account, used, count resource.Quantity, current, now time.Time) resource.Quantity {
	a.charged.drop(now.Add(-r.options.memory()))
	bound, bounded := r.bound(a, count, current, now)
	if bounded && a.freed.Sign() < 0 && used.Cmp(bound) >= 0 {
		a.freed = resource.Quantity{} // whatever grew without a charge, used covers all again
	}
	target := used.DeepCopy()
	if a.freed.Sign() > 0 {
		target.Sub(a.freed)
	}
	if bounded {
		target = lesser(target, bound)
	}
	if target.Cmp(count) < 0 {
		return count.DeepCopy()
	}
	return target
}

// raised is what is taken of the releases, less growth, where used is raised by
// what it lacks: growth that it covers from now on, or releases that it may
// never have covered.
func (a *account) raised(surplus resource.Quantity) resource.Quantity {
	switch {
	case surplus.IsZero():
		return resource.Quantity{}
	case a.freed.Cmp(surplus) < 0:
		return surplus.DeepCopy()
	}
	return a.freed.DeepCopy()
}

// again asks to look again at a time, and not before another.
func (d *Decision) again(at, earliest time.Time) {
	if at.Before(earliest) {
		at = earliest
	}
	if d.Again.IsZero() || at.Before(d.Again) {
		d.Again = at
	}
}

// bound is what is used at most, if the ledger holds everything that was stored
// before the given time; false when that is too long ago to say.
func (r *Release) bound(a *account, count resource.Quantity, current, now time.Time) (resource.Quantity, bool) {
	start := r.start(current)
	if start.Before(now.Add(-r.options.memory())) {
		return resource.Quantity{}, false
	}
	stamped := start.Add(r.options.ClockError)
	if start.Before(a.began) {
		stamped = a.began.Add(r.options.ClockError)
	}
	onItsWay := a.charged.since(start)
	onItsWay.Sub(a.stored.since(stamped))
	bound := count.DeepCopy()
	if onItsWay.Sign() > 0 {
		bound.Add(onItsWay)
	}
	return bound, true
}

// start is a time before which all that was charged is stored and seen, or has
// failed. An object is stamped, to the second, before it is charged: one with a
// later stamp was charged later. So it is best where the stamps have a step.
func (r *Release) start(current time.Time) time.Time {
	return current.Add(r.options.ClockError - r.options.Settle).Truncate(time.Second).Add(-r.options.ClockError)
}

func lesser(a, b resource.Quantity) resource.Quantity {
	if b.Cmp(a) < 0 {
		return b
	}
	return a
}

// Sending notes that a decision is being written, on the version that it was
// made for. One of Stored, Refused and Lost must follow.
func (r *Release) Sending(d Decision) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, taken := range d.taken {
		if a := r.accounts[name]; a != nil {
			a.freed.Sub(taken)
		}
	}
	r.sending = &sending{used: maps.Clone(d.Used), taken: d.taken}
}

// Stored notes that the write has become this version.
func (r *Release) Stored(resourceVersion string, used corev1.ResourceList, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.sending; s != nil && newer(resourceVersion, r.version) {
		for name := range s.used {
			if _, had := r.used[name]; !had {
				r.account(name, resource.Quantity{}, now) // from now on admission charges it
			}
		}
		r.version, r.used, r.lost = resourceVersion, used, nil
	}
	r.sending = nil
	r.catchUp()
}

// Refused notes that the write was not stored and never will be.
func (r *Release) Refused() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sending == nil {
		return
	}
	for name, taken := range r.sending.taken {
		if a := r.accounts[name]; a != nil {
			a.freed.Add(taken)
		}
	}
	r.sending = nil
	r.catchUp()
}

// Lost notes that nobody knows whether the write was stored, or will be. What
// it released counts as released, and what it raised does not count as raised.
func (r *Release) Lost() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sending == nil {
		return
	}
	for name, taken := range r.sending.taken {
		if a := r.accounts[name]; a != nil && taken.Sign() < 0 {
			a.freed.Add(taken)
		}
	}
	least := r.sending.used
	for name, sent := range r.lost {
		if now, ok := least[name]; !ok || sent.Cmp(now) < 0 {
			least[name] = sent
		}
	}
	r.lost, r.sending = least, nil
	r.catchUp()
}

// catchUp reads the versions that were seen while a write was under way.
func (r *Release) catchUp() {
	unread := r.unread
	r.unread = nil
	for _, v := range unread {
		r.read(v)
	}
}
