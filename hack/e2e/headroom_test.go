package e2e_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/fleetquota/fleetquota/hack/e2e/recorder"
)

// stuckWithin is how long a member may be denied, in 99 of 100 cases, while it
// could be given headroom and all members are within reach.
const stuckWithin = 5 * time.Second

// Headroom follows demand from member to member within seconds, and hardly any of
// the limit is on its way at any time.
func TestHeadroomFollowsDemand(t *testing.T) {
	c := newContest(t, false)
	long, each := 2*time.Minute, 8*time.Second
	if testing.Short() {
		long = 20 * time.Second
	}
	began := time.Now()
	favour := c.runs(t, func(ctx context.Context) { c.favours(ctx, contestLimit-15, each) })
	work := c.runs(t, c.work)
	churnPause(t.Context(), long)
	ended := time.Now()
	favour()
	work()
	c.converges(time.Minute)
	m := c.proves().Measure(began, ended)
	printMeasures(t, "all are within reach", m)
	notStuck(t, m)
	c.plants()
}

// notStuck wants headroom to have followed demand in time. A short run, whose
// machine may be busy, only says so.
func notStuck(t *testing.T, m recorder.Measures) {
	t.Helper()
	complain := t.Errorf
	if testing.Short() {
		complain = t.Logf
	}
	if p99 := recorder.Percentile(m.Stuck, 0.99); p99 > stuckWithin {
		complain("headroom was stuck for %s at p99, want at most %s", p99, stuckWithin)
	}
	if len(m.Stuck) == 0 {
		complain("nobody was ever denied while there was headroom elsewhere: this measures nothing")
	}
}

// plants breaks the promise by hand, once no hub is there to repair it, and wants
// the check to find it in what was recorded. Then it does so where nobody watches,
// and undoes it before the watch is taken up.
func (c *contest) plants() {
	c.t.Helper()
	c.must(c.hub.Kill())
	c.hub = nil
	seen, unseen := c.members[0], c.members[1]
	c.limit(seen, contestQuota, "pods", strconv.Itoa(contestLimit))
	c.finds("uncovered "+seen, "overlap of limits", "certain overlap of limits")

	c.stopRecord()
	had, err := c.local(c.t.Context(), unseen, contestQuota)
	c.must(err)
	before := had.Spec.Hard.Pods().String()
	c.limit(unseen, contestQuota, "pods", strconv.Itoa(contestLimit))
	c.limit(unseen, contestQuota, "pods", before)
	c.must(c.Member(unseen).Restart(c.t.Context()))
	c.stopRecord = c.runs(c.t, c.record.Run)
	c.finds("uncovered " + unseen)
}

// finds wants the check to find faults of these kinds.
func (c *contest) finds(kinds ...string) {
	c.t.Helper()
	c.eventually(soon, c.record.CaughtUp)
	found := strings.Join(c.record.History().Check().Faults, "\n")
	for _, kind := range kinds {
		if !strings.Contains(found, kind) {
			c.t.Errorf("a limit was raised by hand, and the check says nothing of %q:\n%s", kind, found)
		}
	}
}

// printMeasures prints a table as the documentation has it, and the raw lists.
func printMeasures(t *testing.T, when string, m recorder.Measures) {
	t.Helper()
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 1, ' ', tabwriter.Debug)
	row := func(what, format string, args ...any) {
		fmt.Fprintf(table, "%s\t "+format+"\n", append([]any{what}, args...)...)
	}
	seconds := m.Took.Seconds()
	row("time", "%.0f s", seconds)
	row("changes of limits in force", "%.1f per s", float64(m.Limits)/seconds)
	row("pods of headroom moved", "%.1f per s", float64(m.Units)/seconds)
	row("time to move headroom, p50", "%.2f s", recorder.Percentile(m.Moves, 0.5).Seconds())
	row("time to move headroom, p99", "%.2f s of %d", recorder.Percentile(m.Moves, 0.99).Seconds(), len(m.Moves))
	row("headroom stuck, p50", "%.2f s", recorder.Percentile(m.Stuck, 0.5).Seconds())
	row("headroom stuck, p99", "%.2f s of %d", recorder.Percentile(m.Stuck, 0.99).Seconds(), len(m.Stuck))
	row("headroom stuck, longest", "%.2f s", recorder.Percentile(m.Stuck, 1).Seconds())
	if len(m.Met) > m.Unmet {
		row("limit follows demand for all, p50", "%.2f s", recorder.Percentile(m.Met, 0.5).Seconds())
		row("limit follows demand for all, longest", "%.2f s of %d, and %d not", recorder.Percentile(m.Met, 1).Seconds(), len(m.Met), m.Unmet)
	}
	row("the limit that was usable", "%.1f %%", 100*m.Usable)
	row("the limit that was used", "%.1f %%", 100*m.UsedPart)
	row("the limit that pods took", "%.1f %%", 100*m.PodsPart)
	if err := table.Flush(); err != nil {
		t.Error(err)
	}
	t.Logf("%s; %d workers in each of the members, for a limit of %d:\n%s", when, contestWorkers, contestLimit, b.String())
}
