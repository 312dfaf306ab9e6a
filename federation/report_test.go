package federation_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

func quota(hard corev1.ResourceList) *v1alpha1.FleetQuota {
	return &v1alpha1.FleetQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "compute", Generation: 7},
		Spec:       v1alpha1.FleetQuotaSpec{Hard: hard},
	}
}

// use is the usage of members' parts.
func use(parts ...federation.Part) federation.Usage {
	return federation.Usage{Parts: parts}.Recall(nil, time.Time{}) // which sums them
}

func part(member string, phase v1alpha1.Phase, used corev1.ResourceList, unknown ...corev1.ResourceName) federation.Part {
	return federation.Part{Member: member, Phase: phase, Used: used, Unknown: unknown}
}

// condition is a status, a reason and a message as one line.
func condition(status v1alpha1.FleetQuotaStatus, kind string) string {
	c := meta.FindStatusCondition(status.Conditions, kind)
	if c == nil {
		return "none"
	}
	return fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
}

func TestConditions(t *testing.T) {
	const complete, within, enforced = v1alpha1.ConditionUsageComplete, v1alpha1.ConditionWithinHard, v1alpha1.ConditionEnforced
	liveEU := part("eu", v1alpha1.Live, list("pods", "3"))
	many := []federation.Part{}
	for i := range 8 {
		many = append(many, part(fmt.Sprintf("m%d", 7-i), v1alpha1.Stale, list("pods", "1")))
	}
	cases := map[string]struct {
		usage federation.Usage
		kind  string
		want  string
	}{
		"ready":       {use(liveEU), v1alpha1.ConditionReady, "True Reported: the status is of this spec"},
		"all live":    {use(liveEU), complete, "True AllLive: every number of every member is live"},
		"no members":  {use(), complete, "False NoMembers: spec.clusterSelector selects no member: nothing is counted"},
		"one is away": {use(liveEU, part("us", v1alpha1.Stale, list("pods", "1"))), complete, "False MembersNotLive: last known numbers are used for us (Stale)"},
		"of one there is no number": {
			use(liveEU, part("us", v1alpha1.NeverSynced, nil, "pods")), complete,
			"False MembersNotLive: nothing is known yet of us",
		},
		"one kind is unknown": {
			use(part("eu", v1alpha1.Partial, list(), "cpu", "pods"), part("us", v1alpha1.Partial, list(), "cpu")), complete,
			"False ResourcesUnknown: not counted at present in eu (cpu, pods), us (cpu)",
		},
		"all kinds of trouble": {
			use(part("d", v1alpha1.Partial, nil, "cpu"), part("c", v1alpha1.NeverSynced, nil), part("b", v1alpha1.Unreachable, nil), liveEU), complete,
			"False MembersNotLive: last known numbers are used for b (Unreachable); nothing is known yet of c; not counted at present in d (cpu)",
		},
		"many are away": {
			use(many...), complete,
			"False MembersNotLive: last known numbers are used for m0 (Stale), m1 (Stale), m2 (Stale), m3 (Stale), m4 (Stale) and 3 more",
		},
		"within":         {use(liveEU), within, "True Within: no more is used than hard allows"},
		"at the limit":   {use(part("eu", v1alpha1.Live, list("pods", "10"))), within, "True Within: no more is used than hard allows"},
		"exceeded":       {use(part("eu", v1alpha1.Live, list("pods", "11"))), within, "False Exceeded: more is used than hard allows: pods"},
		"use is unknown": {use(part("eu", v1alpha1.Partial, nil, "pods")), within, "Unknown UsageUnknown: no member has a number for pods"},
		"only observed":  {use(liveEU), enforced, "False ObserveOnly: spec.distribution is not set: usage is observed and limits no one"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := condition(federation.Report(quota(list("pods", "10")), c.usage, federation.Enforcement{}, noon), c.kind); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}

	t.Run("distribution is asked for", func(t *testing.T) {
		q := quota(list("pods", "10"))
		q.Spec.Distribution = &v1alpha1.Distribution{Mode: v1alpha1.Balanced}
		const want = "False Starting: nothing has been granted yet"
		if got := condition(federation.Report(q, use(liveEU), federation.Enforcement{}, noon), enforced); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	})
	t.Run("an excess is told even where something is unknown", func(t *testing.T) {
		q := quota(list("pods", "1", "cpu", "1", "memory", "1", "services", "0"))
		usage := use(part("eu", v1alpha1.Partial, list("services", "1", "pods", "2", "cpu", "1"), "memory"))
		if got := condition(federation.Report(q, usage, federation.Enforcement{}, noon), within); got != "False Exceeded: more is used than hard allows: pods, services" {
			t.Error(got)
		}
	})
}

func TestSummary(t *testing.T) {
	parts := []federation.Part{
		part("eu", v1alpha1.Live, list("requests.cpu", "1500m", "memory", "1073741824", "pods", "999")),
		part("us", v1alpha1.Stale, list("requests.cpu", "500m", "memory", "512Mi")),
	}
	cases := map[string]struct {
		usage federation.Usage
		hard  corev1.ResourceList
		want  v1alpha1.Summary
	}{
		"in the units of the limits": {
			use(parts...), list("requests.cpu", "10", "memory", "2Gi", "pods", "1000"),
			v1alpha1.Summary{Members: 2, Live: 1, Clusters: "1/2", Highest: "99%", CPU: "2/10", Memory: "1536Mi/2Gi", Pods: "999/1k", Stale: "1"},
		},
		"only what is limited": {
			use(parts[0]), list("pods", "0"),
			v1alpha1.Summary{Members: 1, Live: 1, Clusters: "1/1", Pods: "999/0"},
		},
		"what is not known": {
			use(part("eu", v1alpha1.NeverSynced, nil)), list("cpu", "1"),
			v1alpha1.Summary{Members: 1, Clusters: "0/1", CPU: "unknown/1", Stale: "1"},
		},
		"nobody": {use(), nil, v1alpha1.Summary{Clusters: "0/0"}},
		"more than a suffix can say": {
			use(part("eu", v1alpha1.Live, list("memory", "7Ei")), part("us", v1alpha1.Live, list("memory", "7Ei"))), list("memory", "7Ei"),
			v1alpha1.Summary{Members: 2, Live: 2, Clusters: "2/2", Highest: "200%", Memory: "16140901064495857664/7Ei"},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := federation.Report(quota(c.hard), c.usage, federation.Enforcement{}, noon)
			if diff := cmp.Diff(&c.want, got.Summary); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRows(t *testing.T) {
	usage := use(
		federation.Part{Member: "us", Phase: v1alpha1.Stale, Used: list("pods", "2"), LastObserved: noon.Add(time.Millisecond), Reason: "Timeout"},
		federation.Part{Member: "ap", Phase: v1alpha1.NeverSynced, Used: list(), Unknown: names{"pods"}, Reason: "Syncing"},
		federation.Part{Member: "eu", Phase: v1alpha1.Live, Used: list("pods", "1"), LastObserved: noon},
	)
	want := []v1alpha1.ClusterUsage{
		{Name: "ap", Phase: v1alpha1.NeverSynced, Unknown: names{"pods"}, Reason: "Syncing"},
		{Name: "eu", Phase: v1alpha1.Live, Used: list("pods", "1")},
		{Name: "us", Phase: v1alpha1.Stale, Used: list("pods", "2"), LastObservedTime: metaTime(noon), Reason: "Timeout"},
	}
	if diff := cmp.Diff(want, federation.Report(quota(list("pods", "1")), usage, federation.Enforcement{}, noon).Clusters); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRowsAboveTheMost(t *testing.T) {
	report := func(away int) v1alpha1.FleetQuotaStatus {
		var parts []federation.Part
		for i := range federation.MaxRows + 100 {
			p := part(fmt.Sprintf("m%03d", i), v1alpha1.Live, list("pods", fmt.Sprint(i)))
			if i < away {
				p = part(p.Member, v1alpha1.Unreachable, p.Used)
			}
			parts = append(parts, p)
		}
		return federation.Report(quota(list("pods", "100")), use(parts...), federation.Enforcement{}, noon)
	}
	for away, want := range map[int][3]int{ // not live -> rows, omitted, the first live row
		0:                        {federation.MaxRows, 100, 100},
		10:                       {federation.MaxRows, 100, 110},
		federation.MaxRows:       {federation.MaxRows, 100, -1},
		federation.MaxRows + 50:  {federation.MaxRows + 50, 50, -1},
		federation.MaxRows + 100: {federation.MaxRows + 100, 0, -1},
	} {
		status := report(away)
		first, notLive := -1, 0
		for i, row := range status.Clusters {
			if i > 0 && status.Clusters[i-1].Name >= row.Name {
				t.Fatalf("%d away: rows are not in order", away)
			}
			if row.Phase != v1alpha1.Live {
				notLive++
			} else if first < 0 {
				_, _ = fmt.Sscanf(row.Name, "m%d", &first)
			}
		}
		got := [3]int{len(status.Clusters), int(status.Summary.Omitted), first}
		if got != want || notLive != away {
			t.Errorf("%d away: %v with %d not live, want %v", away, got, notLive, want)
		}
		const all = (federation.MaxRows + 100) * (federation.MaxRows + 99) / 2
		if used := status.Used["pods"]; used.Value() != all {
			t.Errorf("%d away: used %v, want %d: what is not shown is still counted", away, used.String(), all)
		}
	}
}

func TestReportStaysStill(t *testing.T) {
	q := quota(list("pods", "10", "memory", "1Ti"))
	usage := func(a, b string) federation.Usage {
		return use(part("eu", v1alpha1.Live, list("pods", "1", "memory", a)), part("us", v1alpha1.Stale, list("pods", "2", "memory", b)))
	}
	q.Status = federation.Report(q, usage("1Gi", "1G"), federation.Enforcement{}, noon)
	before := q.DeepCopy()

	again := federation.Report(q, usage("1073741824", "1000M"), federation.Enforcement{}, noon.Add(time.Hour))
	if !federation.Same(again, q.Status) {
		t.Errorf("nothing changed, but:\n%s", cmp.Diff(q.Status, again))
	}
	stored := v1alpha1.FleetQuotaStatus{}
	roundTrip(t, q.Status, &stored)
	if !federation.Same(again, stored) {
		t.Errorf("read back it is not the same:\n%s", cmp.Diff(stored, again))
	}

	later := federation.Report(q, use(part("eu", v1alpha1.Live, list("pods", "11", "memory", "0"))), federation.Enforcement{}, noon.Add(time.Hour))
	if federation.Same(later, q.Status) {
		t.Error("the same, though more is used")
	}
	for kind, want := range map[string]time.Time{
		v1alpha1.ConditionReady:         noon,
		v1alpha1.ConditionEnforced:      noon,
		v1alpha1.ConditionUsageComplete: noon.Add(time.Hour),
		v1alpha1.ConditionWithinHard:    noon.Add(time.Hour),
	} {
		got := meta.FindStatusCondition(later.Conditions, kind)
		if !got.LastTransitionTime.Time.Equal(want) || got.ObservedGeneration != 7 {
			t.Errorf("%s: since %v at generation %d, want %v at 7", kind, got.LastTransitionTime, got.ObservedGeneration, want)
		}
	}
	if diff := cmp.Diff(before, q); diff != "" {
		t.Errorf("the quota was changed:\n%s", diff)
	}
}

func roundTrip(t *testing.T, from v1alpha1.FleetQuotaStatus, to *v1alpha1.FleetQuotaStatus) {
	t.Helper()
	text, err := json.Marshal(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, to); err != nil {
		t.Fatal(err)
	}
}

func TestHugeNumbersReadBackAsTheyWere(t *testing.T) {
	for _, value := range []string{"0", "1n", "7Ei", "1E", "900E", "9223372036854775807"} {
		for _, members := range []int{1, 2, 1000, 1024} {
			for _, hard := range []string{"1Ei", "1000E", "1"} {
				var parts []federation.Part
				for i := range members {
					parts = append(parts, part(fmt.Sprint(i), v1alpha1.Live, list("memory", value)))
				}
				limit := resource.MustParse(hard)
				status := federation.Report(quota(corev1.ResourceList{"memory": limit}), use(parts...), federation.Enforcement{}, noon)
				var stored v1alpha1.FleetQuotaStatus
				roundTrip(t, status, &stored)
				if !federation.Equal(status.Used, stored.Used) || !federation.Equal(status.Hard, stored.Hard) {
					t.Errorf("%d times %s of %s is read back as %v of %v", members, value, hard, stored.Used, stored.Hard)
				}
			}
		}
	}
}

// A tenant may write any limit, and nothing that follows from it may take long:
// with limits as they are, each comparison would take hours.
func TestAbsurdLimitsCostNoTime(t *testing.T) {
	q := quota(list("pods", "1e999999999", "requests.cpu", "1e99999999"))
	eu := part("eu", v1alpha1.Live, list("pods", "3", "requests.cpu", "1"))
	usage := federation.Usage{Parts: []federation.Part{eu}}.Recall(nil, noon)
	status := federation.Report(q, usage, federation.Enforcement{}, noon)
	if got := condition(status, v1alpha1.ConditionWithinHard); got != "True Within: no more is used than hard allows" {
		t.Error(got)
	}
	if status.Summary.Highest != "0%" || status.Summary.CPU != "1/9223372036854775807" {
		t.Errorf("%+v", status.Summary)
	}
	q.Status = status
	if !federation.Same(federation.Report(q, usage, federation.Enforcement{}, noon), status) {
		t.Error("the same is not the same")
	}
	usage = federation.Usage{Parts: []federation.Part{eu, part("us", v1alpha1.Unreachable, nil, "pods")}}
	last := []v1alpha1.ClusterUsage{{Name: "us", Used: list("pods", "1e99999999")}}
	status = federation.Report(q, usage.Recall(last, noon), federation.Enforcement{}, noon)
	if got := condition(status, v1alpha1.ConditionWithinHard); !strings.HasPrefix(got, "False Exceeded") {
		t.Error(got)
	}
}

func TestRefuse(t *testing.T) {
	q := quota(list("pods", "10"))
	q.Generation = 6
	q.Status = federation.Report(q, use(part("eu", v1alpha1.Live, list("pods", "1"))), federation.Enforcement{}, noon)
	q.Generation = 7
	before := q.DeepCopy()

	got := federation.Refuse(q, errors.New("spec.scopes[0]: unsupported"), noon.Add(time.Hour))

	if got.ObservedGeneration != 7 || !federation.Equal(got.Used, q.Status.Used) || len(got.Clusters) != 1 {
		t.Errorf("what was known is not kept: %+v", got)
	}
	if ready := condition(got, v1alpha1.ConditionReady); ready != "False InvalidSpec: spec.scopes[0]: unsupported" {
		t.Error(ready)
	}
	if complete := condition(got, v1alpha1.ConditionUsageComplete); complete != "False InvalidSpec: nothing is counted until the spec is understood" {
		t.Error(complete)
	}
	if diff := cmp.Diff(before, q); diff != "" {
		t.Errorf("the quota was changed:\n%s", diff)
	}
	q.Status = got
	if again := federation.Refuse(q, errors.New("spec.scopes[0]: unsupported"), noon.Add(2*time.Hour)); !federation.Same(got, again) {
		t.Error("refused again it is not the same")
	}
}

func TestRefuseSaysOfEveryConditionThatTheSpecIsWrong(t *testing.T) {
	got := federation.Refuse(quota(list("pods", "10")), errors.New("spec.clusterSelector: bad"), noon)
	for _, kind := range []string{
		v1alpha1.ConditionReady, v1alpha1.ConditionUsageComplete, v1alpha1.ConditionWithinHard, v1alpha1.ConditionEnforced,
	} {
		if text := condition(got, kind); !strings.Contains(text, "InvalidSpec") {
			t.Errorf("%s: %q", kind, text)
		}
	}
}
