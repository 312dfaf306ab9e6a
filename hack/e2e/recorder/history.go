package recorder

import (
	"strconv"
	"time"
)

// Absent is an amount that an object does not have.
const Absent = -1

// History is all versions that were seen of what divides one FleetQuota, for one
// resource. The versions of one object are in their true order. Objects of
// different clusters have no order among them but that of what one knows of
// another, and that of arrival, which may be late.
type History struct {
	Hard    []Hard             // of the FleetQuota
	Records []Record           // of the FleetGrant
	Quotas  map[string][]Quota // member -> versions of its ResourceQuota
	Pods    map[string][]Pods  // member -> how many pods it has had
	Tries   []Try              // creations that were answered, in the order of the answers
	Wants   []Want
	Gaps    []Gap
	Moments map[string][]Moment // member, or empty for the hub -> looks at it, in order

	Recounts bool // members recount by themselves: used may pass their limits, and says nothing
}

// Hard is the limit that the user asked for.
type Hard struct {
	At      time.Time // of arrival
	Version uint64    // resourceVersion
	Hard    int64
}

// Record is one version of the FleetGrant. One that is gone has no rows.
type Record struct {
	At      time.Time
	Version uint64
	UID     string
	Hard    int64
	Rows    map[string]Row // by member
}

// Row is what a record says of a member.
type Row struct {
	Revision        int64
	State           string
	Granted, Target int64
}

// Quota is one version of a member's ResourceQuota. The zero amounts of one that
// is gone are Absent.
type Quota struct {
	At                time.Time
	Version           uint64
	Mark              string // the annotation
	Hard, Limit, Used int64  // spec.hard, status.hard, status.used
}

// most is what the member may use by a version.
func (h History) most(q Quota) int64 {
	if h.Recounts {
		return max(q.Hard, q.Limit, 0)
	}
	return max(q.Hard, q.Limit, q.Used, 0)
}

// mark is the annotation that a member's quota bears once the last write that this
// record intended has arrived.
func (r Record) mark(member string) string {
	return r.UID + "." + strconv.FormatInt(r.Rows[member].Revision, 10)
}

// granted is what a record lets a member use. It is nothing where the record does
// not know yet.
func (r Record) granted(member string) int64 { return max(r.Rows[member].Granted, 0) }

// Pods is how many pods a member has, counted as quota does, from this version on.
type Pods struct {
	At      time.Time
	Version uint64 // of the same counter as those of the member's quotas
	Count   int64  // Absent: not known, a watch was broken
}

// Try is a creation that was answered.
type Try struct {
	At     time.Time
	Member string
	Denied bool // by the quota
}

// Want is that a member wants another amount from now on.
type Want struct {
	At     time.Time
	Member string
	Amount int64
}

// Gap is a watch that could not be taken up where it was broken.
type Gap struct {
	Of       string // the object and its cluster
	From, To uint64
	Filled   int   // versions that were read from history
	Err      error // why some are missing; nil: none is
}

// Outage is when not all clusters were within reach.
type Outage struct{ From, To time.Time }
