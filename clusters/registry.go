package clusters

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// registration is what one Secret asks for.
type registration struct {
	uid     types.UID // of the Secret
	version string    // resourceVersion
	since   time.Time // its creation
	invalid *Refusal  // it cannot be any member
	offer   Offer
}

// newer says whether r describes a later version of its Secret than o, as far as
// can be told.
func (r *registration) newer(o *registration) bool {
	order, err := resourceversion.CompareResourceVersion(r.version, o.version)
	return err != nil || r.uid != o.uid || order >= 0
}

// registry gives each name to the oldest Secret that asks for it, and tells the
// sink.
type registry struct {
	sink    Sink
	entries map[types.NamespacedName]*registration
	owners  map[string]*registration // name -> whose offer was made
	refused map[types.NamespacedName]Refusal
}

func newRegistry(sink Sink) *registry {
	return &registry{
		sink:    sink,
		entries: map[types.NamespacedName]*registration{},
		owners:  map[string]*registration{},
		refused: map[types.NamespacedName]Refusal{},
	}
}

// put says what a Secret asks for now. nil: it exists no more, or asks for
// nothing.
func (r *registry) put(key types.NamespacedName, now *registration) {
	before := r.entries[key]
	if now != nil && before != nil && !now.newer(before) {
		return // a late word from a watch; the Secret was read since
	}
	r.store(key, now)
	if now.name() != "" {
		r.settle(now.name())
	}
	if before.name() != "" && before.name() != now.name() {
		r.settle(before.name())
	}
}

// refresh is put for a Secret that was read and not watched: one that is not
// known any more may have been deleted since.
func (r *registry) refresh(key types.NamespacedName, now *registration) {
	if before := r.entries[key]; before != nil && before.uid == now.uid {
		r.put(key, now)
	}
}

func (r *registry) store(key types.NamespacedName, now *registration) {
	if now == nil {
		delete(r.entries, key)
		delete(r.refused, key)
		return
	}
	r.entries[key] = now
	if now.invalid != nil {
		r.refuse(key, *now.invalid)
	}
}

// settle gives one name to whom it belongs.
func (r *registry) settle(name string) {
	owner, holder := r.oldest(name)
	if owner == nil {
		if r.owners[name] != nil {
			delete(r.owners, name)
			r.sink.Withdraw(name)
		}
		return
	}
	delete(r.refused, holder)
	if r.owners[name] != owner {
		r.owners[name] = owner
		r.sink.Offer(owner.offer)
	}
	for key, entry := range r.entries {
		if key != holder && entry.name() == name {
			r.refuse(key, Refusal{ReasonNameTaken, takenBy(name, holder)})
		}
	}
}

func (r *registry) oldest(name string) (*registration, types.NamespacedName) {
	var owner *registration
	var holder types.NamespacedName
	for key, entry := range r.entries {
		if entry.name() != name {
			continue
		}
		older := owner == nil || entry.since.Before(owner.since) ||
			(entry.since.Equal(owner.since) && strings.Compare(key.String(), holder.String()) < 0)
		if older {
			owner, holder = entry, key
		}
	}
	return owner, holder
}

// name is the one that is asked for. Empty: none.
func (r *registration) name() string {
	if r == nil || r.invalid != nil {
		return ""
	}
	return r.offer.Member.Name
}

// refuse tells of a Secret once per reason.
func (r *registry) refuse(key types.NamespacedName, why Refusal) {
	if r.refused[key] != why {
		r.refused[key] = why
		r.sink.Refuse(key, why.Reason, why.Message)
	}
}

func takenBy(name string, holder types.NamespacedName) string {
	if holder == (types.NamespacedName{}) {
		return fmt.Sprintf("the name %q is that of the hub itself", name)
	}
	return fmt.Sprintf("the name %q is taken by Secret %s, which is older", name, holder)
}
