package federation_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// explained is a FleetQuota with its record, as YAML.
type explained struct {
	Quota v1alpha1.FleetQuota  `json:"quota"`
	Grant *v1alpha1.FleetGrant `json:"grant"`
}

func explain(t *testing.T, text, name string) federation.Explanation {
	t.Helper()
	var of explained
	if err := yaml.UnmarshalStrict([]byte(text), &of); err != nil {
		t.Fatal(err)
	}
	e, err := federation.Explain(&of.Quota, of.Grant, corev1.ResourceName(name))
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestExplain tells one story a row: what is said of each member, and below them.
func TestExplain(t *testing.T) {
	t.Parallel()
	for name, story := range map[string]struct {
		of   string
		why  map[string]string // member -> a part of what is said of it
		ends []string          // a part of each line below
	}{
		"one waits for what another has not given back": {
			of: `
quota:
  spec: {hard: {pods: "10"}, distribution: {mode: Balanced}}
  status:
    used: {pods: "9"}
    clusters:
    - {name: a, phase: Live, used: {pods: "4"}, granted: {pods: "4"}, planned: {pods: "6"}}
    - {name: b, phase: Live, used: {pods: "5"}, granted: {pods: "6"}}
    conditions: [{type: Ready, status: "True"}, {type: Enforced, status: "True", reason: Enforced, message: all together}]
grant:
  spec:
    hard: {pods: "10"}
    members:
    - {cluster: a, revision: 1, granted: {pods: "4"}, target: {pods: "4"}}
    - {cluster: b, revision: 2, granted: {pods: "6"}, target: {pods: "4"}}`,
			why: map[string]string{
				"a": "is to get 6: waits for b to give back",
				"b": "was lowered to 4 and still counts with 6: it uses more than its limit until objects there end",
			},
			ends: []string{"Enforced is True (Enforced): all together."},
		},
		"a lowering is sent and not confirmed": {
			of: `
quota:
  spec: {hard: {pods: "10"}, distribution: {mode: Static}}
  status:
    clusters: [{name: a, phase: Live, used: {pods: "1"}}]
grant: {spec: {hard: {pods: "12"}, members: [{cluster: a, revision: 1, granted: {pods: "12"}, target: {pods: "10"}}]}}`,
			why:  map[string]string{"a": "was lowered to 10 and still counts with 12: its API server has not confirmed the limit yet"},
			ends: []string{"Ready is unknown", "Enforced is unknown"},
		},
		"who does not answer keeps what it holds": {
			of: `
quota:
  spec: {hard: {pods: "10"}, distribution: {mode: Balanced}}
  status:
    clusters:
    - {name: a, phase: Live, used: {pods: "5"}, planned: {pods: "6"}}
    - {name: b, phase: Unreachable, used: {pods: "0"}}
    conditions: [{type: Ready, status: "True"}, {type: Enforced, status: "True", reason: Enforced, message: x}]
grant:
  spec:
    hard: {pods: "10"}
    members:
    - {cluster: a, revision: 1, granted: {pods: "5"}, target: {pods: "5"}}
    - {cluster: b, revision: 2, granted: {pods: "5"}, target: {pods: "5"}}`,
			why: map[string]string{
				"a": "is to get 6: waits until use falls elsewhere",
				"b": "does not answer: keeps what it holds until it does",
			},
			ends: []string{"Enforced is True", "b cannot be told to give back. If nothing can be used there any more, say so: kubectl annotate fleetmember NAME fleetquota.io/fenced=true"},
		},
		"a quota that others have edited stops all raises": {
			of: `
quota:
  spec: {hard: {pods: "10"}, distribution: {mode: Balanced}}
  status:
    clusters:
    - {name: a, phase: Live, used: {pods: "5"}, planned: {pods: "6"}}
    - {name: b, phase: Live, used: {pods: "0"}}
    conditions: [{type: Ready, status: "True"}, {type: Enforced, status: "False", reason: Tampered, message: not raised}]
grant:
  spec:
    hard: {pods: "10"}
    members:
    - {cluster: a, revision: 1, granted: {pods: "5"}, target: {pods: "5"}}
    - {cluster: b, revision: 2, state: Repairing, granted: {pods: "5"}, target: {pods: "5"}}`,
			why: map[string]string{
				"a": "is to get 6: waits until it is known again what b may use",
				"b": "others have deleted, edited or replaced its local quota",
			},
			ends: []string{"Enforced is False (Tampered): not raised."},
		},
		"states of rows": {
			of: `
quota:
  spec: {hard: {pods: "10"}, distribution: {mode: Balanced}}
  status:
    clusters: [{name: a, phase: Stale}, {name: c, phase: Live}]
    conditions: [{type: Ready, status: "False", reason: X, message: m}, {type: Enforced, status: "False", reason: X, message: m}]
grant:
  spec:
    hard: {pods: "10"}
    members:
    - {cluster: a, revision: 1, state: Recovering}
    - {cluster: b, revision: 2, state: Releasing, granted: {pods: "5"}, target: {pods: "5"}}
    - {cluster: c, revision: 3, target: {pods: "0"}}`,
			why: map[string]string{
				"a": "the record was lost: it may hold anything until it confirms a new write; it does not answer",
				"b": "leaves the distribution",
				"c": "its local quota is not confirmed yet",
			},
			ends: []string{"Ready is False (X): m.", "Enforced is False (X): m.", "a cannot be told to give back"},
		},
		"who has no row": {
			of: `
quota:
  metadata: {generation: 2}
  spec: {hard: {pods: "10"}, distribution: {mode: Balanced}}
  status:
    observedGeneration: 1
    clusters:
    - {name: a, phase: Live, reason: NamespaceMissing}
    - {name: b, phase: Live, reason: QuotaOfOthers, planned: {pods: "5"}}
    - {name: c, phase: Live, reason: OtherScopes}
    - {name: d, phase: NeverSynced}
    - {name: e, phase: Live}
    conditions: [{type: Ready, status: "True"}, {type: Enforced, status: "False", reason: X, message: m}]`,
			why: map[string]string{
				"a": "the namespace does not exist there", "b": "spec.distribution.adoptExisting takes it over",
				"c": "counts other objects", "d": "it does not answer", "e": "not limited yet",
			},
			ends: []string{"The hub has not taken up the latest spec yet.", "Enforced is False"},
		},
		"who cannot be limited, and why": {
			of: `
quota:
  spec: {hard: {pods: "10"}, distribution: {mode: Balanced}}
  status:
    clusters:
    - {name: a, phase: Live, reason: MayNotWrite}
    - {name: b, phase: Partial, unknown: [pods], reason: NotServed}
    - {name: c, phase: Unreachable, reason: Paused}
    - {name: d, phase: Live, reason: NamespaceEnding}
    - {name: e, phase: Live, reason: Fenced}
    - {name: f, phase: Live, reason: OtherCluster}
    conditions: [{type: Ready, status: "True"}, {type: Enforced, status: "False", reason: X, message: m}]
grant:
  spec:
    hard: {pods: "10"}
    members:
    - {cluster: b, revision: 1, target: {pods: "0"}}
    - {cluster: c, revision: 1, granted: {pods: "1"}, target: {pods: "1"}}
    - {cluster: d, revision: 2, granted: {pods: "2"}, target: {pods: "2"}}
    - {cluster: f, revision: 3, granted: {pods: "3"}, target: {pods: "3"}}`,
			why: map[string]string{
				"a": "join it again with --role distribute", "b": "does not count this resource", "c": "is paused at the hub",
				"d": "is being deleted there", "e": "it is fenced", "f": "another cluster bears this name",
			},
			ends: []string{"Enforced is False (X): m."},
		},
		"nothing is divided": {
			of: `
quota:
  spec: {hard: {pods: "10"}}
  status:
    clusters: [{name: a, phase: Live, used: {pods: "3"}}]
    conditions: [{type: Ready, status: "True"}, {type: Enforced, status: "False", reason: ObserveOnly, message: spec.distribution is not set}]`,
			why:  map[string]string{"a": "not limited by this quota"},
			ends: []string{"Enforced is False (ObserveOnly): spec.distribution is not set."},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := explain(t, story.of, "pods")
			if len(e.Holdings) != len(story.why) {
				t.Errorf("members %v, want %v", e.Holdings, story.why)
			}
			for _, h := range e.Holdings {
				if part := story.why[h.Member]; part == "" || !strings.Contains(h.Why, part) {
					t.Errorf("%s: %q, want %q", h.Member, h.Why, part)
				}
			}
			if len(e.Stands) != len(story.ends) {
				t.Fatalf("below: %q, want %q", e.Stands, story.ends)
			}
			for i, part := range story.ends {
				if !strings.Contains(e.Stands[i], part) {
					t.Errorf("below: %q, want %q", e.Stands[i], part)
				}
			}
		})
	}
}

func TestExplainCounts(t *testing.T) {
	t.Parallel()
	e := explain(t, `
quota:
  spec: {hard: {cpu: "10"}, distribution: {mode: Balanced}}
  status: {used: {cpu: "4"}}
grant:
  spec:
    hard: {cpu: "12"}
    members:
    - {cluster: a, revision: 1, granted: {cpu: 3500m}, target: {cpu: "3"}}
    - {cluster: b, revision: 2, granted: {cpu: "4"}, target: {cpu: "4"}}`, "requests.cpu")
	if e.Resource != "cpu" || e.Granted.String() != "7500m" || e.Free.String() != "2500m" || e.Record.String() != "12" || e.Used.String() != "4" {
		t.Errorf("%s: granted %s, free %s, record %s, used %s", e.Resource, e.Granted, e.Free, e.Record, e.Used)
	}
	quota := &v1alpha1.FleetQuota{}
	quota.Namespace, quota.Name = "team-a", "compute"
	quota.Spec.Hard = list("pods", "1", "cpu", "2")
	if _, err := federation.Explain(quota, nil, "memory"); err == nil || err.Error() != "team-a/compute does not limit memory: spec.hard has cpu, pods" {
		t.Errorf("error %v", err)
	}
}
