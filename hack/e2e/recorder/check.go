package recorder

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Verdict is what a History proves.
type Verdict struct {
	Faults   []string // what breaks the promise; the first of each kind and member
	Broken   int      // how many there are
	Proven   int      // pairs of a version of a quota and of the record that were compared
	Credits  int      // times that the record has lowered what a member holds
	Peak     int64    // the largest sum of limits known to be in force at one time
	Arrived  int64    // the same by arrival alone, where a lowering may be late
	Certain  int64    // the same by the clock alone, as far as it is certain
	MostPods int64    // the most pods at one time, by arrival

	CertainPods int64 // the same by the clock alone, as far as it is certain
	CertainUsed int64 // the most that was used by that
}

// Check proves that the limits in force never added up to more than the limit on
// record.
//
// Call B what a version of a member's quota lets it use: the largest of
// spec.hard, status.hard and status.used. The proof needs no clock:
//
//  1. In each version of the record the sum of granted is at most its hard, and
//     that is at most the largest limit that the user had asked for.
//  2. A quota's annotation names the version of the record that intended it, the
//     first with that revision in the member's row. The quota's version begins
//     after that.
//  3. A record that lowers a member's granted was written by who had seen the
//     last revision in force, in some version of the quota. The first version
//     that allows this credit is no later than the one that was seen, so that
//     all versions before it are over when the record is written.
//  4. Between the two, a version of the quota may be in force while a version of
//     the record is the newest. For each such pair, B is at most granted.
//
// At any moment one version of the record is the newest, and one version of each
// quota is in force. All of these are pairs of 4, so that the sum of B is at
// most the sum of granted, and by 1 at most hard. (A version whose annotation no
// record has intended, or whose annotation was there before another, fails 2; a
// record that is lowered though no version allows it fails 3.)
//
// Then the same is looked at by arrival, with one clock. A version was in force
// from its arrival on at the latest, and until the next had arrived, or something
// that knows of the next by 2 and 3: a record, or a version of another quota.
//
// What 2 and 3 suppose of time is checked with the clock as far as it goes: between
// two looks at a cluster nobody knows when a version began. So is the sum of what
// was in force for certain, which supposes nothing of how limits are divided.
//
// For pods: in one member all versions come from one counter. In each, pods are
// at most used. Therefore the pods of all members are at most hard, too.
//
// Where members recount by themselves, used may pass a limit: they lower it too far
// now and then, and let one more in. There B is without used, pods are not compared,
// and only the limits are proven.
//
// Histories in which others make or change quotas, or records are lost, cannot be
// checked: there a member's row may say nothing for a while.
func (h History) Check() Verdict {
	c := &checker{History: h, intents: map[string]map[string]int{}, over: map[string][]int{}, said: map[string]bool{}}
	c.records()
	for _, member := range c.members() {
		c.intended(member)
		c.credited(member)
		c.covered(member)
		c.counted(member)
	}
	c.overlap()
	c.clocked()
	c.gaps()
	return c.Verdict
}

type checker struct {
	History
	Verdict

	intents map[string]map[string]int // member -> mark -> the record that intended it
	over    map[string][]int          // member -> for each record, the first version of the quota that may not be over
	said    map[string]bool           // kinds of faults
}

// fault notes a fault; of one kind and member only the first is described.
func (c *checker) fault(kind, member, format string, args ...any) {
	c.Broken++
	if key := kind + "/" + member; !c.said[key] {
		c.said[key] = true
		c.Faults = append(c.Faults, fmt.Sprintf("%s %s: "+format, slices.Concat([]any{kind, member}, args)...))
	}
}

// members are those with a quota or a row.
func (c *checker) members() []string {
	var names []string
	for member := range c.Quotas {
		names = append(names, member)
	}
	for _, record := range c.Records {
		for member := range record.Rows {
			names = append(names, member)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// records checks the sums of the record.
func (c *checker) records() {
	var asked int64
	for _, hard := range c.Hard {
		asked = max(asked, hard.Hard)
	}
	for _, record := range c.Records {
		var sum int64
		for member := range record.Rows {
			sum += record.granted(member)
		}
		if sum > record.Hard {
			c.fault("sum", "of granted", "%d of %d in record %d", sum, record.Hard, record.Version)
		}
		if record.Hard > asked {
			c.fault("limit", "on record", "%d in record %d, and no more than %d was asked for", record.Hard, record.Version, asked)
		}
	}
}

// intended finds the record that intended each mark of a member.
func (c *checker) intended(member string) {
	intents := map[string]int{}
	c.intents[member] = intents
	var last int64
	for k, record := range c.Records {
		row, ok := record.Rows[member]
		if !ok {
			continue
		}
		if row.Revision < last {
			c.fault("revision", member, "%d after %d in record %d", row.Revision, last, record.Version)
		}
		last = row.Revision
		if mark := record.mark(member); row.Revision > 0 {
			if _, there := intents[mark]; !there {
				intents[mark] = k
			}
		}
	}
	var before string
	seen := map[string]bool{}
	for _, quota := range c.Quotas[member] {
		if _, ok := intents[quota.Mark]; !ok && c.most(quota) > 0 {
			c.fault("unknown mark", member, "%q in version %d was never on record", quota.Mark, quota.Version)
		}
		if quota.Mark != before && seen[quota.Mark] {
			c.fault("old mark", member, "%q comes again in version %d", quota.Mark, quota.Version)
		}
		before, seen[quota.Mark] = quota.Mark, true
	}
}

// credited finds, for each record, the versions of a member's quota that are over.
func (c *checker) credited(member string) {
	over := make([]int, len(c.Records))
	for k, record := range c.Records {
		if k == 0 {
			continue
		}
		over[k] = over[k-1]
		was := c.Records[k-1]
		row, ok := was.Rows[member]
		if !ok || row.Granted == Absent || record.granted(member) >= row.Granted {
			continue
		}
		c.Credits++
		first := c.allows(member, over[k], was, record)
		if first < 0 {
			c.fault("credit", member, "record %d lowers %d to %d, and no version of the quota with revision %d allows it",
				record.Version, row.Granted, record.granted(member), row.Revision)
			continue
		}
		over[k] = first
	}
	c.over[member] = over
}

// allows is the first version of a quota that allows a credit; -1: none does.
func (c *checker) allows(member string, from int, was, record Record) int {
	mark, target := was.mark(member), was.Rows[member].Target
	for j, quota := range c.Quotas[member][from:] {
		if quota.Mark == mark && quota.Hard == target && quota.Limit != Absent && quota.Limit <= target &&
			quota.Used != Absent && quota.Used <= record.granted(member) {
			return from + j
		}
	}
	return -1
}

// covered compares each version of a quota with each record beside which it may
// have been in force.
func (c *checker) covered(member string) {
	for j, quota := range c.Quotas[member] {
		first, ok := c.intents[member][quota.Mark]
		if !ok {
			continue
		}
		for k := first; k < len(c.Records) && c.over[member][k] <= j; k++ {
			if c.Records[k].UID == "" {
				break // the record is gone: nothing is promised any more
			}
			c.Proven++
			if granted := c.Records[k].granted(member); c.most(quota) > granted {
				c.fault("uncovered", member, "version %d with mark %s lets it use %d (spec %d, status %d, used %d), and record %d grants %d",
					quota.Version, quota.Mark, c.most(quota), quota.Hard, quota.Limit, quota.Used, c.Records[k].Version, granted)
			}
		}
	}
}

// counted compares, in each version, the pods of a member with what its quota says
// is used.
func (c *checker) counted(member string) {
	quotas, pods := c.Quotas[member], c.Pods[member]
	i, used, count := 0, int64(Absent), int64(Absent)
	for _, event := range pods {
		for ; i < len(quotas) && quotas[i].Version < event.Version; i++ {
			used = quotas[i].Used
			c.compare(member, quotas[i].Version, count, used)
		}
		count = event.Count
		c.compare(member, event.Version, count, used)
	}
	for ; i < len(quotas); i++ {
		c.compare(member, quotas[i].Version, count, quotas[i].Used)
	}
}

func (c *checker) compare(member string, version uint64, count, used int64) {
	if !c.Recounts && count != Absent && used != Absent && count > used {
		c.fault("pods", member, "%d of %d used in version %d", count, used, version)
	}
}

// arrival is something that has arrived.
type arrival struct {
	at     time.Time
	member string // of a quota or of pods
	index  int    // of the version, or of the record
	kind   int
}

const (
	ofRecord = iota
	ofQuota
	ofPods
)

func (c *checker) arrivals() []arrival {
	var all []arrival
	for k, record := range c.Records {
		all = append(all, arrival{record.At, "", k, ofRecord})
	}
	for member, quotas := range c.Quotas {
		for j, quota := range quotas {
			all = append(all, arrival{quota.At, member, j, ofQuota})
		}
	}
	for member, pods := range c.Pods {
		for j, event := range pods {
			all = append(all, arrival{event.At, member, j, ofPods})
		}
	}
	slices.SortStableFunc(all, func(a, b arrival) int {
		return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.kind, b.kind), cmp.Compare(a.member, b.member), cmp.Compare(a.index, b.index))
	})
	return all
}

// overlap adds up, at each arrival, what is in force.
func (c *checker) overlap() {
	newest := -1
	arrived, known, pods := map[string]int{}, map[string]int{}, map[string]int64{}
	for _, a := range c.arrivals() {
		switch a.kind {
		case ofRecord:
			newest = max(newest, a.index)
		case ofQuota:
			arrived[a.member], known[a.member] = a.index, max(known[a.member], a.index)
			if k, ok := c.intents[a.member][c.Quotas[a.member][a.index].Mark]; ok {
				newest = max(newest, k)
			}
		case ofPods:
			pods[a.member] = max(c.Pods[a.member][a.index].Count, 0)
		}
		var sum, late, there int64
		for member := range arrived {
			if newest >= 0 {
				known[member] = max(known[member], c.over[member][newest])
			}
			sum += c.most(c.Quotas[member][known[member]])
			late += c.most(c.Quotas[member][arrived[member]])
			there += pods[member]
		}
		c.Peak, c.Arrived, c.MostPods = max(c.Peak, sum), max(c.Arrived, late), max(c.MostPods, there)
		if newest >= 0 && c.Records[newest].UID != "" && sum > c.Records[newest].Hard {
			c.fault("overlap", "of limits", "%d of %d at %s", sum, c.Records[newest].Hard, a.at.Format(time.TimeOnly))
		}
	}
}

// gaps are versions that nobody has seen: nothing is proven of them.
func (c *checker) gaps() {
	for _, gap := range c.Gaps {
		if gap.Err != nil {
			c.fault("gap", gap.Of, "from %d to %d: %v", gap.From, gap.To, gap.Err)
		}
	}
}
