package federation_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// The promise, as docs/guarantees.md has it and federation/model/promise.go in
// small numbers. Left out is what that page leaves out, and no more:
//
//   - a member from when others delete, edit or replace its quota, or its etcd
//     comes back from a backup, until a write of ours was confirmed there;
//   - all members from when an older copy of the record is put back, until the same;
//   - members that have no row, or are fenced, or released, from when their quota
//     is to be deleted or has lost its marks, or if the record was lost and what
//     they hold was not found out before;
//   - resources that are not governed, or of which nothing was confirmed yet;
//   - use that no status.hard limits, and what status.used does not count.
//
// In mode Shared no promise is made of the user's limit; the limit on record
// rises with what is granted, and must cover that.

// check looks at the promise in the world as it is now.
func (w *grantWorld) check() {
	if w.broken != "" || w.record == nil && w.lost == (perKey{}) {
		return
	}
	w.cover()
	whole := w.lost == perKey{}
	for k := range simNames {
		limit, sum := w.lost[k], 0
		if w.record != nil {
			limit = max(limit, w.record.hard[k])
		}
		for _, m := range w.members {
			switch {
			case m.covered[k]:
				sum += w.mayUse(m, k)
			case whole && w.record != nil:
				sum += max(0, w.record.granted[m.name][k])
			}
		}
		if sum > max(0, limit) {
			w.fail("the promise is broken: %d %s may be used of %d; record %v", sum, simNames[k], limit, w.record)
			return
		}
	}
}

// cover notes whom the promise covers from now on: a member whose quota shows the
// last write that the record knows of, and with it no more than is granted.
func (w *grantWorld) cover() {
	if w.record == nil || w.recovering() {
		return
	}
	for i := range w.record.Spec.Members {
		row := &w.record.Spec.Members[i]
		m := w.member(row.Cluster)
		q := &m.quota
		if row.State != "" || m.doubted || q.uid == "" || row.QuotaUID != q.uid || q.mark != markOf(w.record.Record, row) {
			continue
		}
		for k, granted := range w.record.granted[row.Cluster] {
			if q.hard[k] != absent && q.limit[k] != absent && q.used[k] != absent && granted >= max(q.hard[k], q.limit[k], q.used[k]) {
				m.covered[k] = true
			}
		}
	}
}

const unlimited = 1_000_000

// mayUse is the most that a member may use, by what is stored there and by every
// request that could still take effect, alone or after another.
func (w *grantWorld) mayUse(m *member, k int) int {
	q := m.quota
	if q.uid == "" || q.limit[k] == absent || q.hard[k] == absent {
		return unlimited
	}
	most := max(q.hard[k], q.limit[k], q.used[k])
	marks := []string{q.mark}
	for n := 0; n < len(marks); n++ {
		q.mark = marks[n]
		for _, l := range w.mail {
			if l.to != m || l.Kind == federation.WriteCreate || !l.passes(&q) {
				continue
			}
			hard := q.hard[k]
			if l.Kind == federation.WritePatch {
				hard = l.patched(q.hard)[k]
			}
			if l.Kind == federation.WriteDelete || hard == absent {
				return unlimited
			}
			most = max(most, hard)
			if !slices.Contains(marks, l.Mark) {
				marks = append(marks, l.Mark)
			}
		}
	}
	return most
}

func (w *grantWorld) fail(format string, args ...any) {
	if w.broken != "" {
		return
	}
	w.broken = fmt.Sprintf(format, args...)
	for _, m := range w.members {
		w.broken += fmt.Sprintf("\n\t%v", m)
	}
	for _, l := range w.mail {
		w.broken += fmt.Sprintf("\n\ton its way: %v", l)
	}
}

func (w *grantWorld) recovering() bool {
	return slices.ContainsFunc(w.record.Spec.Members, func(row v1alpha1.Grant) bool { return row.State == v1alpha1.Recovering })
}

// commit is a write of the record on its way.
type commit struct {
	*attempt

	seen map[string]federation.Seen
	pass federation.Pass
}

// row is a row of the record that is written.
func (c *commit) row(cluster string) *v1alpha1.Grant {
	return federation.Record{Spec: c.pass.Spec}.Row(cluster)
}

// audit looks at what a pass writes to the record, before that is done.
func (w *grantWorld) audit(c *commit) {
	if err := (federation.Record{Spec: c.pass.Spec}).Check(); err != nil {
		w.fail("the hub refuses the record: %v", err)
	}
	w.auditLimit(c)
	for i, m := range w.members {
		w.auditRow(c, i, m)
	}
	for _, write := range c.pass.Writes {
		row := c.row(write.Cluster)
		if row == nil || !w.restored && (row.Revision <= c.record.Spec.Revision || row.Revision > c.pass.Spec.Revision) {
			w.fail("%s gets a write with the row %v after revision %d", write.Cluster, row, c.record.Spec.Revision)
		}
		if write.Mark != "" && w.marks[write.Mark] && !w.restored {
			w.fail("the annotation %q comes twice", write.Mark)
		}
		w.marks[write.Mark] = true
		if write.Kind == federation.WriteDelete {
			w.member(write.Cluster).covered = [simKeys]bool{}
		}
		w.auditWrite(c, write)
	}
}

// auditLimit looks at the limit on record: it covers what is granted, and is
// above the user's only for what was granted before, or was found in members
// after the record was lost.
func (w *grantWorld) auditLimit(c *commit) {
	sums, hard := perKeyOf(federation.Record{Spec: c.pass.Spec}.Granted()), perKeyOf(c.pass.Spec.Hard)
	before, limit := perKeyOf(c.record.Spec.Hard), perKeyOf(c.limit)
	for k, sum := range sums {
		most := max(before[k], limit[k])
		for _, row := range c.record.Spec.Members {
			if now := c.row(row.Cluster); row.State == v1alpha1.Recovering && now != nil {
				most += max(0, perKeyOf(now.Granted)[k])
			}
		}
		if sum > hard[k] || hard[k] > most && !c.shared() {
			w.fail("%d %s are granted of %d, and the user's limit is %d", sum, simNames[k], hard[k], limit[k])
		}
	}
}

func (t *attempt) shared() bool {
	d := t.wishes.spec.Distribution
	return d != nil && d.Mode == v1alpha1.Shared
}

// auditWrite looks for what must not be sent: anything to a quota of others that
// was not given to us, an annotation that does not count up, and more than there
// is while a member may hold what is not on record.
func (w *grantWorld) auditWrite(c *commit, write federation.Write) {
	seen, before := c.seen[write.Cluster], c.record.Row(write.Cluster)
	adopts := c.wishes.spec.Distribution != nil && c.wishes.spec.Distribution.AdoptExisting
	if seen.Present && seen.Mark == "" && !adopts && (before == nil || len(before.Granted) == 0) {
		w.fail("the quota of others in %s is written to", write.Cluster)
	}
	if was, ours := numberOf(c.record.Record, seen.Mark); ours && write.Mark != "" {
		if next, _ := numberOf(c.record.Record, write.Mark); next <= was {
			w.fail("the annotation %q follows on %q", write.Mark, seen.Mark)
		}
	}
	stopped := func(k int) bool {
		return slices.ContainsFunc(c.pass.Spec.Members, func(row v1alpha1.Grant) bool {
			bounded := perKeyOf(row.Granted)[k] != absent
			return row.State == v1alpha1.Recovering && !bounded || row.State == v1alpha1.Repairing && bounded
		})
	}
	there, granted := perKeyOf(seen.Hard), nothingThere
	if before != nil {
		granted = perKeyOf(before.Granted)
	}
	for k, n := range perKeyOf(write.Set) {
		if stopped(k) && n > max(there[k], granted[k], 0) {
			w.fail("%s of %s rises although others may hold what is not on record", simNames[k], write.Cluster)
		}
	}
}

// auditRow looks for what a pass must not do to a row, and notes whom the promise
// does not cover any more.
func (w *grantWorld) auditRow(c *commit, i int, m *member) {
	before, row := c.record.Row(m.name), c.row(m.name)
	granted, limit := nothingThere, perKeyOf(c.limit)
	if row != nil {
		granted = perKeyOf(row.Granted)
	}
	if before != nil && row == nil && !c.wishes.fenced[i] && c.seen[m.name].Mark != "" && m.covered != [simKeys]bool{} {
		w.fail("the row of %s is dropped", m.name)
	}
	w.auditBelief(c, before, row)
	w.auditGranted(c, before, row)
	w.auditState(c, m, before, row)
	for k := range granted {
		if limit[k] == absent || before != nil && row == nil || row != nil && row.State == v1alpha1.Releasing && granted[k] == absent {
			m.covered[k] = false
		}
		if row != nil && granted[k] != absent && perKeyOf(row.Target)[k] > granted[k] {
			w.fail("%s shall have more %s than is granted", m.name, simNames[k])
		}
	}
}

// auditBelief looks for a quota that is believed, though no write of this record
// was confirmed there: it is ahead of the record, or another than the row's.
func (w *grantWorld) auditBelief(c *commit, before, row *v1alpha1.Grant) {
	if before == nil || row == nil {
		return
	}
	seen := c.seen[row.Cluster]
	n, ours := numberOf(c.record.Record, seen.Mark)
	if ours && int64(n) > before.Revision && before.State == "" && row.State == "" && len(row.Granted) > 0 {
		w.fail("%s is ahead of the record, and believed", row.Cluster)
	}
	if before.QuotaUID != "" && row.QuotaUID != before.QuotaUID && row.Revision == before.Revision {
		w.fail("%s has another quota than the row's, and is believed", row.Cluster)
	}
}

// auditGranted looks at what is given back: it must not be in force.
func (w *grantWorld) auditGranted(c *commit, before, row *v1alpha1.Grant) {
	if before == nil || row == nil || before.State == v1alpha1.Recovering {
		return
	}
	force, was, limit := strongest(c.seen[row.Cluster]), perKeyOf(before.Granted), perKeyOf(c.limit)
	for k, n := range perKeyOf(row.Granted) {
		switch {
		case limit[k] == absent:
		case n == absent && was[k] != absent:
			w.fail("the grant of %s of %s is forgotten", simNames[k], row.Cluster)
		case n < was[k] && n < force[k]:
			w.fail("%s gives back %s that are in force", row.Cluster, simNames[k])
		}
	}
}

// auditState looks at the states that a row enters and leaves.
func (w *grantWorld) auditState(c *commit, m *member, before, row *v1alpha1.Grant) {
	if before == nil || row == nil || before.State == row.State {
		return
	}
	if row.State == v1alpha1.Repairing && before.State == "" && !m.harmed {
		w.fail("%s is repaired, and nobody has changed it", m.name)
	}
	if row.State != "" || before.State == v1alpha1.Releasing {
		return
	}
	force, granted, was := strongest(c.seen[m.name]), perKeyOf(row.Granted), perKeyOf(before.Granted)
	for k, most := range perKeyOf(c.limit) {
		unbounded := before.State == v1alpha1.Repairing && was[k] == absent // as it was before
		if most != absent && !unbounded && granted[k] < force[k] {
			w.fail("%s is %s no more, and more %s are in force than granted", m.name, before.State, simNames[k])
		}
	}
}

// strongest is the most that one version of a quota lets a member use.
func strongest(seen federation.Seen) perKey {
	hard, limit, used := perKeyOf(seen.Hard), perKeyOf(seen.Limit), perKeyOf(seen.Used)
	for k := range hard {
		hard[k] = max(hard[k], limit[k], used[k])
	}
	return hard
}

// markOf is the annotation of a row's last write.
func markOf(r federation.Record, row *v1alpha1.Grant) string {
	return string(r.ID) + "." + strconv.FormatInt(row.Revision, 10)
}

// numberOf is the number in an annotation of a record.
func numberOf(r federation.Record, mark string) (n int, ours bool) {
	text, ours := strings.CutPrefix(mark, string(r.ID)+".")
	n, err := strconv.Atoi(text)
	return n, ours && err == nil
}
