package recorder_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fleetquota/fleetquota/hack/e2e/recorder"
)

const hard = 10

// second is a moment of a made-up history.
func second(n int) time.Time { return time.Unix(int64(n), 0) }

// record is a version of the record at a moment, with rows of east and west.
func record(at int, east, west recorder.Row) recorder.Record {
	return recorder.Record{
		At: second(at), Version: uint64(at), UID: "u", Hard: hard,
		Rows: map[string]recorder.Row{"east": east, "west": west},
	}
}

func row(revision, granted, target int64) recorder.Row {
	return recorder.Row{Revision: revision, Granted: granted, Target: target}
}

// quota is a version of a quota at a moment.
func quota(at int, mark string, spec, status, used int64) recorder.Quota {
	return recorder.Quota{At: second(at), Version: uint64(at), Mark: mark, Hard: spec, Limit: status, Used: used}
}

// moved is how 4 of 10 move from east to west: east is lowered, the record is
// credited, west is raised. Each test breaks a copy of it.
func moved() recorder.History {
	const none = recorder.Absent
	return recorder.History{
		Hard: []recorder.Hard{{At: second(0), Hard: hard}},
		Records: []recorder.Record{
			record(1, row(1, none, 0), row(2, none, 0)),
			record(4, row(3, 7, 7), row(4, 3, 3)),
			record(7, row(5, 7, 3), row(4, 3, 3)),
			record(9, row(5, 3, 3), row(6, 7, 7)),
		},
		Quotas: map[string][]recorder.Quota{
			"east": {
				quota(2, "u.1", 0, none, none), quota(3, "u.1", 0, 0, 0), quota(5, "u.3", 7, 7, 0), quota(6, "u.3", 7, 7, 2),
				quota(8, "u.5", 3, 7, 2), quota(8, "u.5", 3, 3, 2),
			},
			"west": {quota(2, "u.2", 0, none, none), quota(3, "u.2", 0, 0, 0), quota(5, "u.4", 3, 3, 0), quota(10, "u.6", 7, 7, 3)},
		},
		Pods:    map[string][]recorder.Pods{"east": {{At: second(7), Version: 7, Count: 2}}},
		Moments: map[string][]recorder.Moment{"": moments(), "east": moments(), "west": moments()},
	}
}

// moments are looks at a cluster half a second before each version.
func moments() []recorder.Moment {
	var looks []recorder.Moment
	for at := range 20 {
		looks = append(looks, recorder.Moment{At: second(at + 1).Add(-time.Second / 2), Version: uint64(at)})
	}
	return looks
}

func TestWhatHeldIsProven(t *testing.T) {
	t.Parallel()
	v := moved().Check()
	if v.Broken > 0 || v.Credits != 1 || v.Peak != hard || v.Certain != hard || v.Proven < 10 || v.MostPods != 2 || v.CertainPods != 2 {
		t.Errorf("%+v", v)
	}
}

func TestACheckCanFail(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		breaks func(h *recorder.History)
		want   string
	}{
		"the record grants more than its limit": {
			func(h *recorder.History) { h.Records[3].Rows["west"] = row(6, 8, 8) },
			"sum of granted: 11 of 10 in record 9",
		},
		"the limit on record is nobody's": {
			func(h *recorder.History) { h.Records[2].Hard = 11 },
			"limit on record: 11",
		},
		"west is raised before east is lowered": {
			func(h *recorder.History) {
				h.Quotas["west"][3].Mark, h.Quotas["west"][3].At = "u.4", second(6)
			},
			"overlap of limits: 14 of 10",
		},
		"west is raised before the record is written that intends it": {
			func(h *recorder.History) { h.Quotas["west"][3] = quota(6, "u.6", 7, 7, 3) },
			"too early west: version 6 with mark u.6 was there 2.5s before the record 9 that intended it",
		},
		"an overlap for certain": {
			func(h *recorder.History) { h.Quotas["west"][3] = quota(6, "u.6", 7, 7, 3) },
			"certain overlap of limits: 14 of 10",
		},
		"too many pods for certain": {
			func(h *recorder.History) { h.Pods["east"][0].Count = 11 },
			"certain overlap of pods: 11 of 10",
		},
		"a credit of before east is lowered": {
			func(h *recorder.History) { h.Records[3].At = second(7).Add(time.Millisecond) },
			"credit too early east: record 9 was there 499ms before version 8 that allows it",
		},
		"an overlap is uncovered too": {
			func(h *recorder.History) { h.Quotas["west"][3].Mark = "u.4" },
			"uncovered west: version 10 with mark u.4 lets it use 7 (spec 7, status 7, used 3), and record 4 grants 3",
		},
		"status.hard is still above the target after the credit": {
			func(h *recorder.History) {
				h.Quotas["east"] = append(h.Quotas["east"], quota(9, "u.5", 3, 7, 2))
			},
			"uncovered east: version 9 with mark u.5 lets it use 7 (spec 3, status 7, used 2), and record 9 grants 3",
		},
		"a patch of before the credit arrives late": {
			func(h *recorder.History) {
				h.Quotas["east"] = append(h.Quotas["east"], quota(11, "u.3", 7, 7, 2))
			},
			`old mark east: "u.3" comes again in version 11`,
		},
		"used rises above what is left": {
			func(h *recorder.History) { h.Quotas["east"] = append(h.Quotas["east"], quota(11, "u.5", 3, 3, 4)) },
			"uncovered east: version 11",
		},
		"a credit that nothing allows": {
			func(h *recorder.History) { h.Quotas["east"] = h.Quotas["east"][:5] },
			"credit east: record 9 lowers 7 to 3",
		},
		"a credit that leaves less than is used": {
			func(h *recorder.History) { h.Quotas["east"][5].Used = 4 },
			"credit east: record 9 lowers 7 to 3",
		},
		"a revision that no record has intended": {
			func(h *recorder.History) { h.Records[1].Rows["east"] = row(1, 7, 7) },
			`unknown mark east: "u.3" in version 5`,
		},
		"a revision that goes back": {
			func(h *recorder.History) { h.Records[3].Rows["east"] = row(4, 3, 3) },
			"revision east: 4 after 5 in record 9",
		},
		"a limit before the row is believed": {
			func(h *recorder.History) { h.Quotas["west"][0] = quota(2, "u.2", 5, 5, 0) },
			"uncovered west: version 2 with mark u.2 lets it use 5 (spec 5, status 5, used 0), and record 1 grants 0",
		},
		"more pods than are used": {
			func(h *recorder.History) {
				h.Pods["east"] = append(h.Pods["east"], recorder.Pods{At: second(8), Version: 8, Count: 3})
			},
			"pods east: 3 of 2 used in version 8",
		},
		"used is lowered below the pods": {
			func(h *recorder.History) { h.Quotas["east"][5].Used = 1 },
			"pods east: 2 of 1 used in version 8",
		},
		"a version that nobody has seen": {
			func(h *recorder.History) {
				h.Gaps = []recorder.Gap{{Of: "FleetGrant", From: 4, To: 9, Err: errLost}}
			},
			"gap FleetGrant: from 4 to 9: it is lost",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := moved()
			test.breaks(&h)
			v := h.Check()
			if !strings.Contains(strings.Join(v.Faults, "\n"), test.want) {
				t.Errorf("%d faults: %q, want %q", v.Broken, v.Faults, test.want)
			}
		})
	}
}

type lostError string

func (e lostError) Error() string { return string(e) }

const errLost = lostError("it is lost")

// A lowering that arrives after the raise which it has made room for is no
// overlap: the raise itself says that the lowering is over.
func TestALateArrivalIsNoOverlap(t *testing.T) {
	t.Parallel()
	h := moved()
	h.Quotas["east"][4].At, h.Quotas["east"][5].At, h.Records[3].At = second(20), second(20), second(21)
	v := h.Check()
	if v.Broken > 0 || v.Peak != hard || v.Arrived <= hard {
		t.Errorf("%+v", v)
	}
}

// Where members recount by themselves used may pass a limit, and limits may not.
func TestWhereMembersRecount(t *testing.T) {
	t.Parallel()
	h := moved()
	h.Recounts = true
	h.Quotas["east"] = append(h.Quotas["east"], quota(11, "u.5", 3, 3, 4))
	h.Pods["east"] = append(h.Pods["east"], recorder.Pods{At: second(12), Version: 12, Count: 5})
	if v := h.Check(); v.Broken > 0 || v.CertainUsed != 7 {
		t.Errorf("%+v", v)
	}
	h.Quotas["east"] = append(h.Quotas["east"], quota(13, "u.5", 4, 3, 4))
	if v := h.Check(); v.Broken == 0 || v.Certain != 11 {
		t.Errorf("%+v", v)
	}
}

// Pods of which nothing is known are compared with nothing.
func TestPodsAfterAGap(t *testing.T) {
	t.Parallel()
	h := moved()
	h.Quotas["east"][5].Used = 1
	h.Pods["east"] = append(
		h.Pods["east"],
		recorder.Pods{At: second(8), Version: 8, Count: recorder.Absent}, recorder.Pods{At: second(9), Version: 9, Count: 1},
	)
	if v := h.Check(); v.Broken > 0 {
		t.Errorf("%+v", v)
	}
}

// West is denied from second 6 on, while east has 5 free; it gets some in second
// 10.
func TestMeasure(t *testing.T) {
	t.Parallel()
	h := moved()
	h.Quotas["west"] = append(h.Quotas["west"][:3], quota(6, "u.4", 3, 3, 3), h.Quotas["west"][3])
	for at := 6; at < 10; at++ {
		h.Tries = append(h.Tries, recorder.Try{At: second(at), Member: "west", Denied: true})
	}
	m := h.Measure(second(5), second(15))
	if len(m.Stuck) != 1 || len(m.Moves) != 1 || m.Stuck[0] != 4*time.Second || m.Moves[0] != 4*time.Second {
		t.Errorf("%+v", m)
	}
	// 4 of 10 are in force nowhere for 2 of 10 s, and 2 pods are there for 8 s.
	if m.Units != 4+7+3 || m.Usable != 0.92 || m.PodsPart != 0.16 {
		t.Errorf("%+v", m)
	}
}

// Who is stuck to the end is stuck for all that time, and who was before counts
// from the beginning.
func TestMeasureOfWhoStaysStuck(t *testing.T) {
	t.Parallel()
	h := moved()
	h.Quotas["west"] = append(h.Quotas["west"][:3], quota(6, "u.4", 3, 3, 3))
	for at := range 30 {
		h.Tries = append(h.Tries, recorder.Try{At: second(6 + at), Member: "west", Denied: true})
	}
	m := h.Measure(second(10), second(20))
	if len(m.Stuck) != 1 || m.Stuck[0] != 10*time.Second || len(m.Moves) != 0 {
		t.Errorf("%+v", m)
	}
}

// While somebody is away nobody is stuck.
func TestMeasureBetweenOutages(t *testing.T) {
	t.Parallel()
	h := moved()
	h.Quotas["west"] = append(h.Quotas["west"][:3], quota(6, "u.4", 3, 3, 3))
	for at := range 30 {
		h.Tries = append(h.Tries, recorder.Try{At: second(6 + at), Member: "west", Denied: true})
	}
	m := h.MeasureBetween(second(8), second(20), []recorder.Outage{{From: second(7), To: second(9)}, {From: second(10), To: second(17)}})
	want := []time.Duration{time.Second, 3 * time.Second}
	if !slices.Equal(m.Stuck, want) || m.Took != 4*time.Second || math.Abs(m.Usable-0.6) > 1e-9 {
		t.Errorf("%+v, want %v stuck", m, want)
	}
}

// West wants 7 from second 6 on, and may use them in second 10; then it wants 8,
// and never may.
func TestMeasureOfWhatIsWanted(t *testing.T) {
	t.Parallel()
	h := moved()
	for i, amount := range []int64{7, 8, 2} {
		h.Wants = append(h.Wants, recorder.Want{At: second(6 + 5*i), Member: "west", Amount: amount})
	}
	m := h.Measure(second(5), second(20))
	if len(m.Met) != 1 || m.Met[0] != 4*time.Second || m.Unmet != 1 {
		t.Errorf("%+v", m)
	}
}

// Who gives up is stuck no longer than until the last denial.
func TestMeasureOfWhoGivesUp(t *testing.T) {
	t.Parallel()
	h := moved()
	h.Quotas["west"] = append(h.Quotas["west"][:3], quota(6, "u.4", 3, 3, 3), h.Quotas["west"][3])
	h.Tries = []recorder.Try{{At: second(6), Member: "west", Denied: true}, {At: second(7), Member: "west", Denied: true}}
	m := h.Measure(second(5), second(15))
	if len(m.Stuck) != 1 || m.Stuck[0] != time.Second || len(m.Moves) != 0 {
		t.Errorf("%+v", m)
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	var all []time.Duration
	for i := range 200 {
		all = append(all, time.Duration(200-i))
	}
	for part, want := range map[float64]time.Duration{0.5: 100, 0.99: 198, 1: 200, 0: 1} {
		if got := recorder.Percentile(all, part); got != want {
			t.Errorf("%v: %d, want %d", part, got, want)
		}
	}
	if got := recorder.Percentile(nil, 0.99); got != 0 {
		t.Errorf("of none: %d", got)
	}
}
