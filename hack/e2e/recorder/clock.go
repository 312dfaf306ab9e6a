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

// spans are those of versions of one cluster that are not empty, in order.
func (h History) spans(cluster string, versions []version) []span {
	var spans []span
	for i, v := range versions {
		s := span{from: v.at, most: v.most}
		if i+1 < len(versions) {
			s.to = h.began(cluster, versions[i+1].number)
			if !s.from.Before(s.to) {
				continue
			}
		}
		spans = append(spans, s)
	}
	return spans
}

// version is what the clock is about: of a quota, or of how many pods there are.
type version struct {
	at     time.Time
	number uint64
	most   int64
}

// clocked checks by the clock alone what is in force for certain at any time, and
// that what the proof takes to be earlier was not later for certain.
func (c *checker) clocked() {
	var limits, used, pods [][]span
	for _, member := range c.members() {
		var ofQuota, ofUsed, ofPods []version
		for _, q := range c.Quotas[member] {
			ofQuota = append(ofQuota, version{q.At, q.Version, c.most(q)})
			ofUsed = append(ofUsed, version{q.At, q.Version, max(q.Used, 0)})
		}
		for _, p := range c.Pods[member] {
			ofPods = append(ofPods, version{p.At, p.Version, max(p.Count, 0)})
		}
		limits, used = append(limits, c.spans(member, ofQuota)), append(used, c.spans(member, ofUsed))
		pods = append(pods, c.spans(member, ofPods))
		c.inTime(member)
	}
	c.Certain, c.CertainUsed, c.CertainPods = c.certain(ofLimits, limits), c.certain("used", used), c.certain("pods", pods)
}

const ofLimits = "limits"

// certain is the most that is there for certain at any time, in all members.
func (c *checker) certain(what string, members [][]span) int64 {
	var most int64
	for _, spans := range members {
		for _, begins := range spans {
			sum := sumAt(begins.from, members)
			most = max(most, sum)
			if limit, promised := c.limitAt(begins.from); promised && sum > limit && (what == ofLimits || !c.Recounts) {
				c.fault("certain overlap", "of "+what, "%d of %d at %s", sum, limit, begins.from.Format(clock))
			}
		}
	}
	return most
}

// sumAt adds up the spans of all members that are at a time.
func sumAt(at time.Time, members [][]span) int64 {
	var sum int64
	for _, spans := range members {
		// The spans of a member are in order and do not overlap.
		i, found := slices.BinarySearchFunc(spans, at, func(s span, at time.Time) int { return s.from.Compare(at) })
		if !found {
			i--
		}
		if i >= 0 && spans[i].at(at) {
			sum += spans[i].most
		}
	}
	return sum
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
