package clusters

import (
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// claims say which name each cluster is engaged under. The oldest claim to a
// cluster wins; a winner that comes late waits until the one before has ended
// its engagement. A claim lasts until its member is gone or found to be another
// cluster: a member that is silent or paused keeps it, since its numbers are
// still counted.
type claims struct {
	mu    sync.Mutex // guards the rest
	byUID map[types.UID][]*claim
}

// claim is one name's. Its member alone uses it; the claims own what is in it.
type claim struct {
	name    string
	since   time.Time
	nudge   func() // has the member look at its claim again
	uid     types.UID
	engaged bool
}

func newClaims() *claims { return &claims{byUID: map[types.UID][]*claim{}} }

// stake puts the claim to a cluster, in place of one to another. Its age stays
// what it is first said to be.
func (c *claims) stake(own *claim, uid types.UID, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if own.uid == uid {
		return
	}
	c.drop(own)
	own.uid, own.since = uid, since
	c.byUID[uid] = append(c.byUID[uid], own)
	slices.SortFunc(c.byUID[uid], func(a, b *claim) int {
		if order := a.since.Compare(b.since); order != 0 {
			return order
		}
		return strings.Compare(a.name, b.name)
	})
	c.nudgeOthers(uid, own)
}

// first is the name that the claimed cluster is to be served under.
func (c *claims) first(own *claim) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if own.uid == "" {
		return own.name
	}
	return c.byUID[own.uid][0].name
}

// begin says whether the claim wins and no other is engaged. It is engaged then,
// until end.
func (c *claims) begin(own *claim) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := c.byUID[own.uid]
	if len(all) == 0 || all[0] != own || slices.ContainsFunc(all, func(o *claim) bool { return o.engaged }) {
		return false
	}
	own.engaged = true
	return true
}

// end says that the engagement has ended.
func (c *claims) end(own *claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own.engaged = false
	c.nudgeOthers(own.uid, own)
}

// leave gives the claim up.
func (c *claims) leave(own *claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(own)
}

func (c *claims) drop(own *claim) {
	uid := own.uid
	if uid == "" {
		return
	}
	own.uid = ""
	c.byUID[uid] = slices.DeleteFunc(c.byUID[uid], func(o *claim) bool { return o == own })
	c.nudgeOthers(uid, own)
	if len(c.byUID[uid]) == 0 {
		delete(c.byUID, uid)
	}
}

func (c *claims) nudgeOthers(uid types.UID, own *claim) {
	for _, other := range c.byUID[uid] {
		if other != own {
			other.nudge()
		}
	}
}
