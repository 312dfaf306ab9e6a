package recorder

import (
	"cmp"
	"slices"
	"time"
)

// Moment is a look at a cluster that was asked for at a time: all versions after
// this one began later than that.
type Moment struct {
	At      time.Time
	Version uint64
}

// began is a time after which a version of a cluster's began; zero: nothing is
// known of it.
func (h History) began(cluster string, version uint64) time.Time {
	moments := h.Moments[cluster]
	at, _ := slices.BinarySearchFunc(moments, version, func(m Moment, version uint64) int { return cmp.Compare(m.Version, version) })
	if at == 0 {
		return time.Time{}
	}
	return moments[at-1].At
}

// span is when a version was in force for certain: from its arrival until a time
// before the next began. It may be empty, since that is not known exactly.
type span struct {
	from, to time.Time // to may be zero: until the end
	most     int64
}

func (s span) at(t time.Time) bool { return !t.Before(s.from) && (s.to.IsZero() || t.Before(s.to)) }

// spans are those of a member's quota that are not empty.
func (h History) spans(member string) []span {
	var spans []span
	quotas := h.Quotas[member]
	for j, quota := range quotas {
		s := span{from: quota.At, most: quota.most()}
		if j+1 < len(quotas) {
			s.to = h.began(member, quotas[j+1].Version)
			if !s.from.Before(s.to) {
				continue
			}
		}
		spans = append(spans, s)
	}
	return spans
}

// clocked checks by the clock alone what is in force for certain at any time, and
// that what the proof takes to be earlier was not later for certain.
func (c *checker) clocked() {
	var all [][]span
	for _, member := range c.members() {
		all = append(all, c.spans(member))
		c.inTime(member)
	}
	for _, spans := range all {
		for _, begins := range spans {
			c.certain(begins.from, all)
		}
	}
}

// certain adds up what is in force for certain at a time.
func (c *checker) certain(at time.Time, all [][]span) {
	var sum int64
	for _, spans := range all {
		// The spans of a member do not overlap, and are in order.
		i, found := slices.BinarySearchFunc(spans, at, func(s span, at time.Time) int { return s.from.Compare(at) })
		if !found {
			i--
		}
		if i >= 0 && spans[i].at(at) {
			sum += spans[i].most
		}
	}
	c.Certain = max(c.Certain, sum)
	if limit, promised := c.limitAt(at); promised && sum > limit {
		c.fault("certain overlap", "of limits", "%d of %d at %s", sum, limit, at.Format(clock))
	}
}

const clock = "15:04:05.000"

// limitAt is the largest limit that may be on record at a time. Nothing is
// promised before the first record, and when it is gone.
func (c *checker) limitAt(at time.Time) (limit int64, promised bool) {
	for k, record := range c.Records {
		if k+1 < len(c.Records) && c.Records[k+1].At.Before(at) {
			continue // it was over
		}
		if c.began("", record.Version).After(at) {
			break // it was not written yet
		}
		if record.UID == "" {
			return 0, false
		}
		limit, promised = max(limit, record.Hard), true
	}
	return limit, promised
}

// inTime checks what 2 and 3 of [History.Check] suppose of time: that a version
// begins after the record that intended it, and that a record which lowers comes
// after the version that allows it.
func (c *checker) inTime(member string) {
	quotas := c.Quotas[member]
	for _, quota := range quotas {
		k, ok := c.intents[member][quota.Mark]
		if !ok {
			continue
		}
		if began := c.began("", c.Records[k].Version); quota.At.Before(began) {
			c.fault("too early", member, "version %d with mark %s was there %s before the record %d that intended it",
				quota.Version, quota.Mark, began.Sub(quota.At), c.Records[k].Version)
		}
	}
	for k := 1; k < len(c.Records); k++ {
		j := c.over[member][k]
		if j == c.over[member][k-1] {
			continue
		}
		if began := c.began(member, quotas[j].Version); c.Records[k].At.Before(began) {
			c.fault("credit too early", member, "record %d was there %s before version %d that allows it",
				c.Records[k].Version, began.Sub(c.Records[k].At), quotas[j].Version)
		}
	}
}
