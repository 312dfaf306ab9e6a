//nolint:dupword // tables repeat words
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

const computeA = `
apiVersion: fleetquota.io/v1alpha1
kind: FleetQuota
metadata: {namespace: team-a, name: compute, uid: q1, generation: 2, creationTimestamp: "2026-01-01T11:00:00Z", labels: {team: a}, managedFields: [{manager: x}]}
spec:
  hard: {requests.cpu: "10", pods: "50", count/widgets.example.com: "5"}
  scopes: [NotTerminating]
  clusterSelector: {matchLabels: {tier: prod}}
  stalePolicy: KeepLast
  distribution: {mode: Balanced, paused: true}
status:
  observedGeneration: 1
  hard: {requests.cpu: "10", pods: "50"}
  used: {requests.cpu: 9960m, pods: "60"}
  granted: {pods: "50"}
  clusters:
  - {name: eu-1, phase: Live, used: {requests.cpu: "5", pods: "50"}, granted: {pods: "30"}}
  - {name: us-1, phase: Unreachable, lastObservedTime: "2026-01-01T11:27:00Z", used: {requests.cpu: 4960m}, unknown: [pods], reason: ConnectionLost}
  - {name: us-2, phase: Partial, used: {requests.cpu: "0", pods: "10"}, unknown: [pods], reason: Forbidden}
  summary: {members: 3, live: 1, clusters: "1/3", highest: "120%", cpu: 9960m/10, pods: 60/50, stale: "2"}
  conditions:
  - {type: Ready, status: "True", reason: Accepted, message: the spec is understood}
  - {type: WithinHard, status: "False", reason: Exceeded, message: "pods: 60 of 50"}
`

const computeB = `
apiVersion: fleetquota.io/v1alpha1
kind: FleetQuota
metadata: {namespace: team-b, name: compute, creationTimestamp: "2026-01-01T11:55:00Z"}
spec: {hard: {pods: "10"}}
status:
  observedGeneration: 1
  hard: {pods: "10"}
  used: {pods: "0"}
  clusters: [{name: eu-1, phase: Live, used: {pods: "0"}, reason: NamespaceMissing}]
  summary: {members: 1, live: 1, clusters: "1/1", highest: "0%", pods: 0/10}
  conditions: [{type: Ready, status: "True"}]
`

const freshB = `
apiVersion: fleetquota.io/v1alpha1
kind: FleetQuota
metadata: {namespace: team-b, name: fresh, generation: 1, creationTimestamp: "2026-01-01T11:59:50Z"}
spec: {hard: {pods: "10"}}
`

const memberEU = `
apiVersion: fleetquota.io/v1alpha1
kind: FleetMember
metadata: {name: eu-1, creationTimestamp: "2025-12-01T12:00:00Z", labels: {region: eu}}
spec: {secretName: eu-1}
status:
  {phase: Live, version: v1.37.2, uid: uid-eu-1, localStatus: Auto, credentialExpirationTime: "2026-01-03T12:00:00Z",
  conditions: [{type: Ready, status: "True", reason: Connected}]}
`

const memberUS = `
apiVersion: fleetquota.io/v1alpha1
kind: FleetMember
metadata: {name: us-1, creationTimestamp: "2025-12-01T12:00:00Z"}
spec: {secretName: us-1}
status:
  {phase: Unreachable, version: v1.36.3, uid: uid-us-1, localStatus: Never, lastContactTime: "2026-01-01T11:27:00Z",
  credentialExpirationTime: "2026-01-01T11:00:00Z", conditions: [{type: Ready, status: "False", reason: ConnectionLost}]}
`

const memberNew = `
apiVersion: fleetquota.io/v1alpha1
kind: FleetMember
metadata: {name: zz-1, creationTimestamp: "2026-01-01T11:59:00Z"}
spec: {secretName: zz-1}
`

// hubWith is a hub with all of the above.
func hubWith(t *testing.T, more ...string) *fakeAPI {
	t.Helper()
	all := []string{
		computeA, computeB, freshB, memberEU, memberUS, memberNew,
		"{apiVersion: v1, kind: Namespace, metadata: {name: fleetquota-system}}",
	}
	return newFakeAPI(t, "uid-hub", append(all, more...)...)
}

func only(hub *fakeAPI) map[string]*fakeAPI { return map[string]*fakeAPI{"hub": hub} }

func TestGet(t *testing.T) {
	hub := hubWith(t)
	for name, c := range map[string]struct{ args, golden string }{
		"one row per quota": {"get -A", `
			NAMESPACE   NAME      MODE       READY     USED%     CLUSTERS   AGE
			team-a      compute   Balanced   True      120%      1/3        60m
			team-b      compute   <none>     True      0%        1/1        5m
			team-b      fresh     <none>     unknown   unknown   unknown    10s
			`},
		"wide": {"get -n team-a -o wide", `
			NAME      MODE       READY   USED%   CLUSTERS   CPU        MEMORY   PODS    STALE   AGE
			compute   Balanced   True    120%    1/3        9960m/10   <none>   60/50   2       60m
			`},
		"one by name": {"get fresh -n team-b --no-headers", `
			fresh   <none>   unknown   unknown   unknown   10s
			`},
		"by selector": {"get -A -l team=a --no-headers", `
			team-a   compute   Balanced   True   120%   1/3   60m
			`},
		"one row per resource, a missing number is not ok": {"get -A --resource all", `
			NAMESPACE   NAME      RESOURCE                    USED      HARD   USED%     STATE
			team-a      compute   count/widgets.example.com   unknown   5      unknown   unknown
			team-a      compute   pods                        60        50     120%      exceeded
			team-a      compute   requests.cpu                9960m     10     99%       almost full
			team-b      compute   pods                        0         10     0%        ok
			team-b      fresh     pods                        unknown   10     unknown   unknown
			`},
		"largest limit first": {"get -A --resource cpu,pods --sort-by hard --no-headers", `
			team-a   compute   pods           60        50    120%      exceeded
			team-a   compute   requests.cpu   9960m     10    99%       almost full
			team-b   compute   pods           0         10    0%        ok
			team-b   fresh     pods           unknown   10    unknown   unknown
			`},
		"only what is above": {"get -A --over 99 --resource all --no-headers", `
			team-a   compute   pods           60      50    120%   exceeded
			team-a   compute   requests.cpu   9960m   10    99%    almost full
			`},
		"csv": {"get -n team-b -o csv", `
			namespace,name,resource,used,hard,used_percent,state
			team-b,compute,pods,0,10,0%,ok
			team-b,fresh,pods,unknown,10,unknown,unknown
			`},
		"names": {"get -n team-b -o name", `
			fleetquota.fleetquota.io/compute
			fleetquota.fleetquota.io/fresh
			`},
	} {
		t.Run(name, func(t *testing.T) {
			cli(t, only(hub), strings.Fields(c.args)...).want(t, c.golden)
		})
	}
}

func TestGetPrintsTheAPITypes(t *testing.T) {
	hub := hubWith(t)
	var quota v1alpha1.FleetQuota
	r := cli(t, only(hub), "get", "compute", "-n", "team-a", "-o", "json")
	if err := json.Unmarshal([]byte(r.out), &quota); err != nil {
		t.Fatal(err)
	}
	if quota.Kind != "FleetQuota" || quota.APIVersion != "fleetquota.io/v1alpha1" || quota.Status.Used.Pods().String() != "60" || quota.ManagedFields != nil {
		t.Errorf("got %s", r.out)
	}
	r = cli(t, only(hub), "get", "-A", "-o", "yaml")
	if !strings.HasPrefix(r.out, "apiVersion: v1\nitems:\n- apiVersion: fleetquota.io/v1alpha1\n  kind: FleetQuota\n") {
		t.Errorf("got %s", r.out)
	}
}

func TestExitCodes(t *testing.T) {
	hub := hubWith(t)
	for name, c := range map[string]struct {
		args string
		code int
		says string
	}{
		"nothing above":               {"get compute -n team-b --over 80 --exit-code", 0, "Nothing is known to be above 80 %."},
		"something above":             {"get -A --over 80 --exit-code", 2, ""},
		"above, of chosen resources":  {"get -A --resource cpu --over 99 --exit-code", 2, ""},
		"not above, of chosen ones":   {"get -A --resource cpu --over 99.6 --exit-code", 0, "Nothing"},
		"not known":                   {"get -n team-b --over 80 --exit-code", 1, "pods of team-b/fresh"},
		"above, without --exit-code":  {"get -A --over 80", 0, ""},
		"--exit-code without --over":  {"get --exit-code", 1, "--over PERCENT"},
		"no percentage":               {"get --over much", 1, "not a percentage"},
		"no format":                   {"get -o xml", 1, "wide, json, yaml, csv, name"},
		"no order":                    {"get --sort-by age", 1, "name, used, hard"},
		"hard of what":                {"get --sort-by hard", 1, "--resource"},
		"a name in all namespaces":    {"get x -A", 1, "-n NAMESPACE"},
		"a name and a selector":       {"get x -l a=b", 1, "not both"},
		"a watch with an exit code":   {"get --over 80 --exit-code -w", 1, "--watch"},
		"not found":                   {"get nope -n team-a", 1, "read global quota team-a/nope"},
		"none":                        {"get -n empty", 0, "No global quotas found in namespace empty."},
		"describe in two namespaces":  {"describe team-a/compute -n team-b", 1, "leave one of them out"},
		"why of what is not limited":  {"why team-a/compute memory", 1, "team-a/compute does not limit memory: spec.hard has count/widgets.example.com, pods, requests.cpu"},
		"why without a resource":      {"why team-a/compute", 1, "accepts 2 arg(s)"},
		"describe what":               {"describe a/b/c", 1, "NAMESPACE/NAME"},
		"an unknown context":          {"get --context nope", 1, `context "nope" does not exist`},
		"an unknown command":          {"gett", 1, "unknown command"},
		"clusters as comma-separated": {"clusters -o csv", 1, "wide, json, yaml, name"},
	} {
		t.Run(name, func(t *testing.T) {
			r := cli(t, only(hub), strings.Fields(c.args)...)
			if r.code != c.code || !strings.Contains(r.errOut, c.says) {
				t.Errorf("exit code %d, want %d; said %q, want %q", r.code, c.code, r.errOut, c.says)
			}
		})
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	hub := hubWith(t)
	hub.absent = "fleetquota.io"
	for _, args := range []string{"get -A", "get compute -n team-a", "clusters", "describe team-a/compute", "leave eu-1"} {
		r := cli(t, only(hub), strings.Fields(args)...)
		if r.code != 1 || r.errOut != "error: "+errNoAPI.Error()+"\n" {
			t.Errorf("%s: %d %s", args, r.code, r.errOut)
		}
	}
	hub.absent, hub.denied = "", "of-the-user"
	if r := cli(t, only(hub), "get", "-A"); r.code != 1 || !strings.Contains(r.errOut, "log in again") {
		t.Errorf("%d %s", r.code, r.errOut)
	}
	hub.Close()
	if r := cli(t, only(hub), "clusters"); r.code != 1 || !strings.Contains(r.errOut, "is it up, and is this the right context?") {
		t.Errorf("%d %s", r.code, r.errOut)
	}
	empty := kubeconfigOf(t, nil)
	if r := cliWith(t, empty, "get"); r.code != 1 || !strings.Contains(r.errOut, "no kubeconfig says where the hub is") {
		t.Errorf("%d %s", r.code, r.errOut)
	}
}

func TestDescribe(t *testing.T) {
	const event = `
apiVersion: events.k8s.io/v1
kind: Event
metadata: {namespace: team-a, name: compute.1}
type: Warning
reason: Exceeded
reportingController: fleetquota.io/hub
eventTime: "2026-01-01T11:00:00.000000Z"
series: {count: 3, lastObservedTime: "2026-01-01T11:50:00.000000Z"}
note: "pods: 60 of\n50 \u001b[31mare used"
`
	hub := hubWith(t, event)
	cli(t, only(hub), "describe", "team-a/compute").want(t, `
		Name:            compute
		Namespace:       team-a
		Labels:          team=a
		Mode:            Balanced (paused: shares are planned, none is written)
		Scopes:          NotTerminating
		Members:         tier=prod
		Stale policy:    KeepLast
		Clusters live:   1 of 3
		Age:             60m
		The hub has not taken up the latest spec yet: what follows is of generation 1 of 2.
		Resource                    Used      Hard   Used%     State         Granted
		--------                    ----      ----   -----     -----         -------
		count/widgets.example.com   unknown   5      unknown   unknown       <none>
		pods                        60        50     120%      exceeded      50
		requests.cpu                9960m     10     99%       almost full   <none>
		pods: used is without us-1, whose use is unknown.
		Members:
		  Member   Phase         Last observed   Reason           Resource                    Used                 Granted   Planned
		  ------   -----         -------------   ------           --------                    ----                 -------   -------
		  eu-1     Live          live            <none>           count/widgets.example.com   unknown              <none>    <none>
		                                                          pods                        50                   30        <none>
		                                                          requests.cpu                5                    <none>    <none>
		  us-1     Unreachable   33m ago         ConnectionLost   count/widgets.example.com   unknown              <none>    <none>
		                                                          pods                        unknown              <none>    <none>
		                                                          requests.cpu                4960m (last known)   <none>    <none>
		  us-2     Partial       live            Forbidden        count/widgets.example.com   unknown              <none>    <none>
		                                                          pods                        10 (last known)      <none>    <none>
		                                                          requests.cpu                0                    <none>    <none>
		Conditions:
		  Type         Status   Reason     Message
		  ----         ------   ------     -------
		  Ready        True     Accepted   the spec is understood
		  WithinHard   False    Exceeded   pods: 60 of 50
		Events:
		  Type      Reason     Age        From                Message
		  ----      ------     ---        ----                -------
		  Warning   Exceeded   10m (x3)   fleetquota.io/hub   pods: 60 of 50 ^[[31mare used
		`)
	hub.absent = "events.k8s.io"
	if r := cli(t, only(hub), "describe", "fresh", "-n", "team-b"); r.code != 0 || !strings.Contains(r.out, "Members:  <none>\nConditions:  <none>\nEvents:  unknown (") {
		t.Errorf("%d\n%s%s", r.code, r.out, r.errOut)
	}
}

func TestWhy(t *testing.T) {
	const grant = `
apiVersion: fleetquota.io/v1alpha1
kind: FleetGrant
metadata: {namespace: team-a, name: compute}
spec:
  hard: {pods: "60"}
  members:
  - {cluster: eu-1, revision: 3, granted: {pods: "50"}, target: {pods: "40"}}
  - {cluster: us-1, revision: 2, granted: {pods: "10"}, target: {pods: "10"}}
`
	hub := hubWith(t, grant)
	cli(t, only(hub), "why", "team-a/compute", "pods").want(t, `
		Resource:    pods
		Limit:       50
		Used:        60
		Granted:     60
		Free:        0
		On record:   60 (goes down to the limit as members give back)
		Members:
		  Member   Phase         Used      Limit    Granted   Planned   Why
		  ------   -----         ----      -----    -------   -------   ---
		  eu-1     Live          50        40       50        <none>    was lowered to 40 and still counts with 50: it uses more than its limit until objects there end
		  us-1     Unreachable   unknown   10       10        <none>    does not answer: keeps what it holds until it does
		  us-2     Partial       10        <none>   <none>    <none>    distribution is paused
		The hub has not taken up the latest spec yet.
		Enforced is unknown: the hub has not reported on this quota yet.
		us-1 cannot be told to give back. If nothing can be used there any more, say so: kubectl annotate fleetmember NAME fleetquota.io/fenced=true
		`)
	if r := cli(t, only(hubWith(t)), "why", "compute", "cpu", "-n", "team-a"); r.code != 0 || !strings.Contains(r.out, "Used:       9960m\nMembers:") {
		t.Errorf("%d\n%s%s", r.code, r.out, r.errOut)
	}
}

func TestClusters(t *testing.T) {
	hub := hubWith(t)
	cli(t, only(hub), "clusters").want(t, `
		NAME   READY     VERSION   LOCAL     LAST-SEEN   AGE
		eu-1   True      v1.37.2   Auto      live        31d
		us-1   False     v1.36.3   Never     33m         31d
		zz-1   unknown   unknown   unknown   unknown     60s
		`)
	cli(t, only(hub), "clusters", "-o", "wide", "--no-headers").want(t, `
		eu-1   True      v1.37.2   Auto      live      31d   Live          uid-eu-1   eu-1   Connected        in 2d
		us-1   False     v1.36.3   Never     33m       31d   Unreachable   uid-us-1   us-1   ConnectionLost   expired
		zz-1   unknown   unknown   unknown   unknown   60s   unknown       unknown    zz-1   unknown          <none>
		`)
	cli(t, only(hub), "clusters", "-l", "region=eu", "-o", "name").want(t, "fleetmember.fleetquota.io/eu-1\n")
}

func TestWatchPrintsWhatChanges(t *testing.T) {
	hub := hubWith(t)
	ctx, cancel := context.WithCancel(t.Context())
	out := &interrupter{word: "later", interrupt: cancel}
	var errOut bytes.Buffer
	s := shell{IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: out, ErrOut: &errOut}, now: noon}
	hub.events <- "MODIFIED " + strings.Replace(computeB, `used: {pods: "0"}`, `used: {pods: "9"}`, 1) // in no column
	hub.events <- "MODIFIED " + strings.Replace(computeB, `highest: "0%"`, `highest: "90%"`, 1)
	hub.events <- "DELETED " + freshB
	hub.events <- "ADDED " + strings.Replace(freshB, "name: fresh", "name: later", 1)
	kubeconfig := kubeconfigOf(t, map[string]*clientcmdapi.Cluster{"hub": hub.clusterOf()})
	code := run(ctx, []string{"kubectl-fleetquota", "--kubeconfig", kubeconfig, "get", "-n", "team-b", "-w"}, s)
	result{code: code, out: out.String(), errOut: errOut.String()}.want(t, `
		NAME      MODE     READY     USED%     CLUSTERS   AGE
		compute   <none>   True      0%        1/1        5m
		fresh     <none>   unknown   unknown   unknown    10s
		compute   <none>   True      90%       1/1        5m
		fresh     <none>   unknown   unknown   unknown    deleted
		later     <none>   unknown   unknown   unknown    10s
		`)
}

// interrupter interrupts a command once it has printed a word.
type interrupter struct {
	bytes.Buffer

	word      string
	interrupt func()
}

func (i *interrupter) Write(p []byte) (int, error) {
	n, err := i.Buffer.Write(p)
	if strings.Contains(i.String(), i.word) {
		i.interrupt()
	}
	return n, err
}

func TestUsageNamesTheProgramAsItIsCalled(t *testing.T) {
	for program, want := range map[string]string{
		"/usr/local/bin/kubectl-fleetquota": "kubectl fleetquota get [NAME] [flags]",
		"kubectl-fleetquota.exe":            "kubectl fleetquota get [NAME] [flags]",
		"fleetquota":                        "  fleetquota get [NAME] [flags]",
	} {
		var out bytes.Buffer
		s := shell{IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: &out, ErrOut: &out}, now: noon}
		if code := run(t.Context(), []string{program, "get", "--help"}, s); code != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %d %s", program, code, out.String())
		}
	}
}

func TestCompletion(t *testing.T) {
	hub := hubWith(t)
	for args, want := range map[string]string{
		"__complete get -n team-b|":      "compute\nfresh\n",
		"__complete leave|":              "eu-1\nus-1\nzz-1\n",
		"__complete join|":               "hub\n",
		"__complete get -o|":             "wide\njson\nyaml\ncsv\nname\n",
		"__complete --context|":          "hub\n",
		"completion --help":              "kubectl_complete-fleetquota",
		"__complete join hub --dry-run=": "",
	} {
		list := strings.Fields(strings.TrimSuffix(args, "|"))
		if strings.HasSuffix(args, "|") {
			list = append(list, "")
		}
		// Cobra reads the flags of the command that is completed after __complete.
		kubeconfig := kubeconfigOf(t, map[string]*clientcmdapi.Cluster{"hub": hub.clusterOf()})
		t.Setenv("KUBECONFIG", kubeconfig)
		var out, errOut bytes.Buffer
		s := shell{IOStreams: genericiooptions.IOStreams{In: os.Stdin, Out: &out, ErrOut: &errOut}, now: noon}
		if code := run(t.Context(), append([]string{"kubectl-fleetquota"}, list...), s); code != 0 || !strings.Contains(out.String(), want) {
			t.Errorf("%s: %d\n%s%s", args, code, out.String(), errOut.String())
		}
	}
}

func TestVersion(t *testing.T) {
	hub := hubWith(t)
	if r := cli(t, only(hub), "version"); r.code != 0 || !strings.HasSuffix(r.out, "\nHub API: fleetquota.io/v1alpha1 present (Kubernetes v1.37.2)\n") {
		t.Errorf("%d %s", r.code, r.out)
	}
	hub.absent = "/apis/fleetquota.io"
	var v versions
	r := cli(t, only(hub), "version", "-o", "json")
	if err := json.Unmarshal([]byte(r.out), &v); err != nil || v.Hub.State != apiAbsent || v.Client.Version == "" {
		t.Errorf("%v %s", err, r.out)
	}
	hub.Close()
	if r := cli(t, only(hub), "version"); r.code != 0 || !strings.Contains(r.out, "Hub API: fleetquota.io/v1alpha1 unknown (") {
		t.Errorf("%d %s", r.code, r.out)
	}
	if r := cli(t, only(hub), "version", "--client"); strings.Contains(r.out, "Hub") {
		t.Errorf("%s", r.out)
	}
}
