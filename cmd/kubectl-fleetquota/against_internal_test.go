package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"pgregory.net/rapid"

	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// TestUsageAgainst runs the commands of each transcript again, as TestUsage
// does, with a hub that holds testdata/against/hub.yaml.
func TestUsageAgainst(t *testing.T) {
	hub := hubAgainst(t)
	for _, path := range glob(t, "*.txt") {
		t.Run(strings.TrimSuffix(path, ".txt"), func(t *testing.T) { replay(t, path) })
	}
	if len(hub.writes) > 0 {
		t.Errorf("something was written: %v", hub.writes)
	}
}

// hubAgainst is that hub, in the kubeconfig of the environment. The working
// directory is then testdata/against.
func hubAgainst(t *testing.T) *fakeAPI {
	t.Helper()
	t.Chdir("testdata/against")
	text, err := os.ReadFile("hub.yaml")
	if err != nil {
		t.Fatal(err)
	}
	hub := newFakeAPI(t, "uid-hub", strings.Split(string(text), "\n---\n")...)
	t.Setenv("KUBECONFIG", kubeconfigOf(t, map[string]*clientcmdapi.Cluster{"hub": hub.clusterOf()}))
	return hub
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(pattern)
	if err != nil || len(paths) == 0 {
		t.Fatalf("no %s: %v", pattern, err)
	}
	return paths
}

// ask asks whether web.yaml fits.
func ask(t *testing.T, against string, more ...string) string {
	t.Helper()
	command := "kubectl fleetquota usage -f web.yaml --expand --against " + against + " " + strings.Join(more, " ")
	return transcribe(t, strings.TrimSpace(command))
}

func TestUsageAgainstSaysWhatToDo(t *testing.T) {
	hub := hubAgainst(t)
	for name, c := range map[string]struct{ secret, absent, says string }{
		"the quota may not be read": {"fleetquotas", "", "read global quota team-a/room: you may not: the role view in its namespace"},
		"there is no such API":      {"", "fleetquota.io", errNoAPI.Error()},
	} {
		hub.secret, hub.absent = c.secret, c.absent
		if said := ask(t, "team-a/room"); !strings.Contains(said, "! error: "+c.says) || !strings.HasSuffix(said, "exit code 1\n") {
			t.Errorf("%s: %s", name, said)
		}
	}
	hub.absent = ""
	hub.Close()
	if said := ask(t, "team-a/room"); !strings.Contains(said, "is it up, and is this the right context?") {
		t.Error(said)
	}
}

func TestUsageAgainstWorksForThoseWhoMayNotSeeMembers(t *testing.T) {
	hub := hubAgainst(t)
	want := ask(t, "team-a/room")
	hub.secret = "fleetmembers"
	said := ask(t, "team-a/room")
	if hint := "you may not list members (the cluster role fleetquota-view allows it)"; !strings.Contains(said, hint) {
		t.Errorf("%s does not say %s", said, hint)
	}
	last := func(text string) string { return text[strings.Index(text, "does not fit"):] }
	if text, _, _ := strings.Cut(last(said), "!"); text != last(want) {
		t.Errorf("got %q, want %q", text, last(want))
	}
	if said := ask(t, "team-a/room", "--kubernetes-version", "1.37"); strings.Contains(said, "members (") {
		t.Errorf("their versions are not asked for: %s", said)
	}
}

// large is a quota of so many members, of which one is stale and one uses most.
func large(members int) string {
	var text strings.Builder
	text.WriteString("{apiVersion: fleetquota.io/v1alpha1, kind: FleetQuota, metadata: {namespace: team-a, name: large}, " +
		"spec: {hard: {pods: 2k, requests.cpu: 2k}}, status: {hard: {pods: 2k, requests.cpu: 2k}, used: {pods: 1k, requests.cpu: 1k}, ")
	fmt.Fprintf(&text, "summary: {members: %d, live: %d, clusters: x, omitted: 7}, clusters: [", members, members-1)
	for i := range members {
		phase, used := "Live", "1"
		switch i {
		case members - 1:
			phase = "Stale"
		case members - 2:
			used = "100"
		}
		fmt.Fprintf(&text, "{name: m%03d, phase: %s, used: {pods: %q, requests.cpu: %q}}, ", i, phase, used, used)
	}
	return text.String() + "]}}"
}

// What a person reads of a large fleet is bounded, and has what matters.
func TestLargeFleetsAreShownInShort(t *testing.T) {
	hub := hubAgainst(t)
	hub.add(t, large(300))
	for name, text := range map[string]string{
		"against":  ask(t, "team-a/large"),
		"describe": transcribe(t, "kubectl fleetquota describe team-a/large"),
	} {
		if n := strings.Count(text, "\n"); n > 90 {
			t.Errorf("%s prints %d lines", name, n)
		}
		for _, want := range []string{"m000 ", "m022 ", "m298 ", "m299 ", "... and 275 more; kubectl fleetquota get large -n team-a -o yaml shows all.", "7 more members are live"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not show %q:\n%s", name, want, text)
			}
		}
		if strings.Contains(text, "m023 ") {
			t.Errorf("%s shows a member that matters less:\n%s", name, text)
		}
	}
}

// What cannot be said of many quotas is named in short, too.
func TestGetNamesAFewOfWhatItDoesNotKnow(t *testing.T) {
	hub := newFakeAPI(t, "uid-hub")
	for i := range 100 {
		hub.add(t, fmt.Sprintf("{apiVersion: fleetquota.io/v1alpha1, kind: FleetQuota, metadata: {namespace: a, name: q%02d}, spec: {hard: {pods: 1}}}", i))
	}
	r := cli(t, only(hub), "get", "-n", "a", "--over", "80", "--exit-code")
	if r.code != exitError || !strings.HasSuffix(r.errOut, "pods of a/q03, pods of a/q04 and 95 more\n") {
		t.Errorf("%d %s", r.code, r.errOut)
	}
}

func TestListsInSentencesAreShort(t *testing.T) {
	for want, names := range map[string]string{
		"":                         "",
		"a":                        "a",
		"a, b, c, d, e":            "a b c d e",
		"a, b, c, d, e and 1 more": "a b c d e f",
	} {
		if got := few(strings.Fields(names)); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// It fits if and only if what is used and what would be used is at most the
// limit, whatever of it is not known.
func TestFitIsNeverClaimedOfWhatIsNotKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string, least int64) *resource.Quantity {
			return resource.NewMilliQuantity(rapid.Int64Range(least, 30).Draw(t, name), resource.DecimalSI)
		}
		would, used, hidden, hard := draw("would", -9), draw("used", 0), draw("hidden", 0), draw("hard", 0)
		f := fit{amount: amount{resource: corev1.ResourcePods, used: used, hard: *hard}, would: would}
		switch rapid.IntRange(0, 3).Draw(t, "known") {
		case 0:
			hidden.Set(0)
		case 1:
			f.missing = []string{"us-1"}
		case 2:
			hidden.Add(*used)
			f.used = nil
		case 3:
			f.would = nil
		}
		sum := would.MilliValue() + hidden.MilliValue()
		if f.used != nil {
			sum += used.MilliValue()
		}
		really := sum <= hard.MilliValue() || would.Sign() <= 0
		if v := f.verdict(); v == fits && !really || v == fitsNot && really {
			t.Errorf("%s, but %d of %d", v, sum, hard.MilliValue())
		}
		if left := f.left(); left != nil && left.MilliValue() != hard.MilliValue()-sum {
			t.Errorf("%s is left of %d, of which %d are used", left, hard.MilliValue(), sum)
		}
	})
}

func TestQuotasAreCompletedWithTheirNamespaces(t *testing.T) {
	hub := hubAgainst(t)
	for args, want := range map[string]string{
		"usage --against |":           "team-a/changed\nteam-a/divided\n",
		"usage -n team-a --against |": "changed\ndivided\n",
		"describe |":                  "team-a/changed\nteam-a/divided\n",
	} {
		command := append([]string{"__complete"}, strings.Fields(strings.TrimSuffix(args, "|"))...)
		if r := cliWith(t, os.Getenv("KUBECONFIG"), append(command, "")...); !strings.Contains(r.out, want) {
			t.Errorf("%s: %s%s", args, r.out, r.errOut)
		}
	}
	hub.secret = "/v1alpha1/fleetquotas"
	hub.add(t, "{apiVersion: fleetquota.io/v1alpha1, kind: FleetQuota, metadata: {namespace: default, name: mine}}")
	if r := cliWith(t, os.Getenv("KUBECONFIG"), "__complete", "describe", ""); !strings.HasPrefix(r.out, "mine\n") {
		t.Errorf("who may see one namespace is offered %s%s", r.out, r.errOut)
	}
}

func TestTheQuotaIsPrintedAsItWouldBe(t *testing.T) {
	hubAgainst(t)
	text, _, _ := strings.Cut(ask(t, "team-a/room", "-o json"), "! ")
	var quota v1alpha1.FleetQuota
	if err := json.Unmarshal([]byte(text), &quota); err != nil {
		t.Fatal(err)
	}
	sum := corev1.ResourceList{}
	for _, member := range quota.Status.Clusters {
		for name, used := range member.Used {
			total := sum[name]
			total.Add(used)
			sum[name] = total
		}
	}
	if !federation.Equal(sum, quota.Status.Used) || quota.ManagedFields != nil || quota.Kind != "FleetQuota" {
		t.Errorf("the members use %v in all, not %v:\n%s", sum, quota.Status.Used, text)
	}
}
