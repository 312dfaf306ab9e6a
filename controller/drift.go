package controller

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
)

// drift is by how much the status of a quota that another controller keeps
// differs from what is counted, by resource. Between a change and its answer
// every status differs, so what counts is the least of what was seen over some
// time. It is shown, and nothing else is done about it.
type drift map[corev1.ResourceName]*difference

// difference is that of one resource: status.used less what is counted.
type difference struct {
	shown resource.Quantity // zero: not for long enough yet
	least resource.Quantity // that was seen
	since time.Time
}

// driftEvery is how often a status is looked at while it is not clear whether
// it differs for good.
const driftEvery = 250 * time.Millisecond

// sample notes what is used and what should be. It says whether to look again
// although nothing happens, and whether what is shown has changed. What is not
// known stays as it was.
func (d drift) sample(used, truth corev1.ResourceList, within time.Duration, now time.Time) (again, changed bool) {
	for name, is := range used {
		right, known := truth[name]
		if !known {
			continue
		}
		off := is.DeepCopy()
		off.Sub(right)
		more, other := d.one(name, off, within, now)
		again, changed = again || more, changed || other
	}
	for name, was := range d {
		if _, ok := used[name]; !ok {
			delete(d, name)
			changed = changed || !was.shown.IsZero()
		}
	}
	return again, changed
}

// one notes the difference of one resource.
func (d drift) one(name corev1.ResourceName, off resource.Quantity, within time.Duration, now time.Time) (again, changed bool) {
	was := d[name]
	if was != nil && was.least.Sign() != off.Sign() {
		delete(d, name)
		changed, was = !was.shown.IsZero(), nil
	}
	switch {
	case off.IsZero():
		return false, changed
	case was == nil:
		d[name] = &difference{least: off, since: now}
		return true, changed
	case farther(was.least, off):
		was.least = off
	}
	if now.Sub(was.since) >= within {
		changed = was.shown.Cmp(was.least) != 0
		was.shown, was.least, was.since = was.least, off, now
	}
	return was.shown.Cmp(off) != 0, changed
}

// farther says whether a quantity is farther from zero than another of its sign.
func farther(a, b resource.Quantity) bool {
	return a.Cmp(b) == a.Sign()
}

// drifts notes what is used according to the status of a quota, and what should
// be. See [drift.sample].
func (a *answers) drifts(key types.NamespacedName, used, truth corev1.ResourceList, now time.Time) (again, changed bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	entry := a.quotas[key]
	if entry == nil || entry.ours {
		return false, false
	}
	if entry.drift == nil {
		entry.drift = drift{}
	}
	return entry.drift.sample(used, truth, a.within, now)
}

// drifted is one resource of a local quota whose status another controller keeps
// and which is not what is counted.
type drifted struct {
	quota    types.NamespacedName
	resource corev1.ResourceName
	by       resource.Quantity // status.used less what is counted
}

// drifting is every difference that is shown, in order.
func (a *answers) drifting() []drifted {
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []drifted
	for key, entry := range a.quotas {
		for name, d := range entry.drift {
			if !d.shown.IsZero() {
				all = append(all, drifted{key, name, d.shown.DeepCopy()})
			}
		}
	}
	slices.SortFunc(all, func(a, b drifted) int {
		return cmp.Or(strings.Compare(a.quota.String(), b.quota.String()), cmp.Compare(a.resource, b.resource))
	})
	return all
}

// contested names the quotas that are.
func (a *answers) contested() iter.Seq[string] {
	a.mu.Lock()
	defer a.mu.Unlock()
	names := map[string]struct{}{}
	for key, entry := range a.quotas {
		if entry.contested != nil {
			names[key.String()] = struct{}{}
		}
	}
	return maps.Keys(names)
}

// agreement says in one word and a sentence whether the local quotas that
// another controller keeps are as they are counted.
func (a *answers) agreement() (agree bool, reason, message string) {
	if names := slices.Sorted(a.contested()); len(names) > 0 {
		return false, reasonContested, "another quota controller counts otherwise and has reversed every write, so the hub no longer writes: " + some(names)
	}
	differs := map[string][]string{}
	for _, d := range a.drifting() {
		name := d.quota.String()
		differs[name] = append(differs[name], string(d.resource))
	}
	if len(differs) == 0 {
		return true, "Agrees", "what other controllers write is what the hub counts"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(differs)) {
		parts = append(parts, fmt.Sprintf("%s (%s)", name, some(differs[name])))
	}
	return false, "Drift", "another controller's status is not what the hub counts: " + some(parts)
}

const reasonContested = "Contested"

// some names the first few.
func some(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
}
