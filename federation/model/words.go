package model

import (
	"fmt"
	"strings"
)

// transcript follows a way through canonical states with members, leaders and
// revisions that keep their names. It says what happens, and where that ends.
func (o *Options) transcript(from state, way []key) ([]string, state) {
	var lines []string
	at := from
	for _, k := range way[1:] {
		for _, n := range o.after(at, nil) {
			if o.canonical(n.state) == k {
				lines = append(lines, o.words(n.step, at, n.state))
				at = n.state
				break
			}
		}
	}
	return lines, at
}

// words say what a step from before to after is.
func (o *Options) words(what step, before, after state) string {
	q := before.quotas[what.member]
	name := memberNames[what.member]
	switch what.kind { //nolint:exhaustive // the others are below
	case stepDeliver:
		return fmt.Sprintf("%s takes the %s", name, o.writeWords(what.write))
	case stepRefused:
		return fmt.Sprintf("%s refuses the %s", name, o.writeWords(what.write))
	case stepLose:
		return fmt.Sprintf("the %s to %s is lost", o.writeWords(what.write), name)
	case stepSync:
		return fmt.Sprintf("the native controller of %s sets status.hard %s", name, o.amounts(q.hard))
	case stepAdmit:
		return fmt.Sprintf("%s admits an object: used %s", name, o.amounts(after.quotas[what.member].used))
	case stepRelease:
		return fmt.Sprintf("an object in %s ends: used %s", name, o.amounts(after.quotas[what.member].used))
	}
	if others := o.userWords(what, after); others != "" {
		return others
	}
	return fmt.Sprintf("leader %d %s", what.leader+1, o.leaderWords(what, before, after))
}

// userWords say what people do, or "".
func (o *Options) userWords(what step, after state) string {
	name := memberNames[what.member]
	switch what.kind { //nolint:exhaustive // the others are not done by people
	case stepDelete:
		return fmt.Sprintf("a user deletes the quota of %s", name)
	case stepRecreate:
		return fmt.Sprintf("a user makes the quota of %s again: %s", name, o.quotaWords(after.quotas[what.member]))
	case stepEdit:
		return fmt.Sprintf("a user edits the quota of %s: spec.hard %s", name, o.amounts(after.quotas[what.member].hard))
	case stepUser:
		return fmt.Sprintf("the user's limit is now %s", o.amounts(after.user))
	case stepLoseRecord:
		return "the record is lost"
	case stepSave:
		return "somebody keeps a copy of the record"
	case stepRestore:
		return "the older copy of the record is put back"
	}
	return ""
}

//nolint:gochecknoglobals // a table that nobody writes
var memberNames = [maxMembers]string{"eu", "us", "ap"}

func (o *Options) leaderWords(what step, before, after state) string {
	name := memberNames[what.member]
	row := after.record.rows[what.member]
	switch what.kind { //nolint:exhaustive // the others are no steps of leaders
	case stepMakeRecord:
		return "makes a record: hard " + o.amounts(after.record.hard)
	case stepReadRecord:
		return "reads the record"
	case stepRead:
		return o.readWords(what, before, after)
	case stepCrash:
		return "crashes, or gives up"
	case stepIntent:
		return fmt.Sprintf("records for %s: target %s, granted %s, revision %d%s", name, o.amounts(row.target), o.amounts(row.granted), row.revision, sending(after.leaders[what.leader], before.leaders[what.leader]))
	case stepFence:
		return fmt.Sprintf("records that %s is fenced with revision %d%s", name, row.revision, sending(after.leaders[what.leader], before.leaders[what.leader]))
	case stepBelieve:
		return fmt.Sprintf("believes %s: target %s, granted %s", name, o.amounts(row.target), o.amounts(row.granted))
	case stepCredit:
		return fmt.Sprintf("credits %s: granted %s", name, o.amounts(row.granted))
	case stepConflict:
		return "cannot write the record: it has changed"
	case stepSend:
		return "sends its write to " + name
	}
	return ""
}

func sending(after, before leader) string {
	switch {
	case after.op == opSend:
		return ""
	case before.absent:
		return ", and sends the quota"
	case before.late:
		return ", and sends a patch to what is no more"
	}
	return fmt.Sprintf(", and sends the patch (test %d)", before.grant)
}

func (o *Options) readWords(what step, before, after state) string {
	h := after.leaders[what.leader]
	text := fmt.Sprintf("reads the record, and %s: %s", memberNames[what.member], o.quotaWords(before.quotas[what.member]))
	switch h.op { //nolint:exhaustive // the others are not what a reading leads to
	case opBelieve:
		return text + "; that is its fence"
	case opCredit:
		return text + "; the target is in force"
	}
	return text
}

func (o *Options) quotaWords(q quota) string {
	if !q.present {
		return "no quota"
	}
	status := "none"
	if q.synced {
		status = o.amounts(q.limit)
	}
	return fmt.Sprintf("annotation %d, spec.hard %s, status.hard %s, used %s", q.grant, o.amounts(q.hard), status, o.amounts(q.used))
}

func (o *Options) writeWords(w write) string {
	if w.kind == writeCreate {
		return fmt.Sprintf("quota (revision %d, hard 0)", w.grant)
	}
	if o.Variant.ResourceVersionOnly && w.grant == 0 {
		return fmt.Sprintf("patch (test resourceVersion, hard %s)", o.amounts(w.hard))
	}
	if w.sets {
		return fmt.Sprintf("patch (test %d, revision %d, hard %s)", w.test, w.grant, o.amounts(w.hard))
	}
	return fmt.Sprintf("patch (test %d, revision %d)", w.test, w.grant)
}

// sum says how the promise stands.
func (o *Options) sum(s state) string {
	var parts []string
	for i := range o.Members {
		word := fmt.Sprintf("%s may use %s of granted %s", memberNames[i], o.amounts(o.mayUse(&s, i)), o.amounts(s.record.rows[i].granted))
		if !s.covered[i] {
			word = fmt.Sprintf("%s is not covered and has granted %s", memberNames[i], o.amounts(s.record.rows[i].granted))
		}
		parts = append(parts, word)
	}
	limit := s.lost
	if s.record.made {
		limit = limit.most(s.record.hard)
	}
	return strings.Join(parts, ", ") + ", with the limit on record " + o.amounts(limit)
}

func (o *Options) amounts(a amounts) string {
	if o.Keys == 1 {
		return fmt.Sprint(a[0])
	}
	return fmt.Sprintf("%d/%d", a[0], a[1])
}
