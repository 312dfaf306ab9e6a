package controller

import (
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/federation"
)

// rooms notes the largest charge of late of each share: how much its use has grown
// from one version to the next. What admission has charged in one write may be of
// several objects; so much came at once then.
type rooms struct {
	mu    sync.Mutex // guards all below
	rooms map[types.NamespacedName]*room
}

// room is one share's. Charges are remembered for one to two spans.
type room struct {
	since      time.Time
	now, older corev1.ResourceList
}

const roomSpan = 10 * time.Minute

// grew notes two versions of a share, one after the other.
func (r *rooms) grew(key types.NamespacedName, before, now corev1.ResourceList, at time.Time) {
	charge := federation.Growth(before, now)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.rooms == nil {
		r.rooms = map[types.NamespacedName]*room{}
	}
	of := r.rooms[key]
	if of == nil {
		of = &room{since: at}
		r.rooms[key] = of
	}
	of.age(at)
	of.now = federation.Most(of.now, charge)
}

// of is the largest charge of late, by resource.
func (r *rooms) of(key types.NamespacedName, at time.Time) corev1.ResourceList {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.rooms[key]
	if of == nil {
		return nil
	}
	of.age(at)
	return federation.Most(of.now, of.older)
}

func (r *rooms) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.rooms, key)
}

// age forgets what is too old.
func (r *room) age(at time.Time) {
	switch passed := at.Sub(r.since); {
	case passed < roomSpan:
	case passed < 2*roomSpan:
		r.since, r.now, r.older = at, nil, r.now
	default:
		r.since, r.now, r.older = at, nil, nil
	}
}
