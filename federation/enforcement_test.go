package federation_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

func grantOf(hard string, rows ...v1alpha1.Grant) *v1alpha1.FleetGrant {
	return &v1alpha1.FleetGrant{
		ObjectMeta: metav1.ObjectMeta{UID: "g"},
		Spec:       v1alpha1.FleetGrantSpec{Hard: list("pods", hard), Members: rows},
	}
}

func rowOf(cluster, granted string, state v1alpha1.GrantState) v1alpha1.Grant {
	row := v1alpha1.Grant{Cluster: cluster, State: state}
	if granted != "" {
		row.Granted, row.Target = list("pods", granted), list("pods", granted)
	}
	return row
}

// TestEnforced tells one story a row: why the members could use more than hard.
func TestEnforced(t *testing.T) {
	t.Parallel()
	balanced := &v1alpha1.Distribution{Mode: v1alpha1.Balanced}
	for name, story := range map[string]struct {
		distribution *v1alpha1.Distribution
		e            federation.Enforcement
		status       metav1.ConditionStatus
		reason, says string
	}{
		"all hold a share": {
			balanced,
			federation.Enforcement{Grant: grantOf("10", rowOf("eu", "4", ""), rowOf("us", "6", ""))},
			metav1.ConditionTrue, "Enforced", "all 2 members",
		},
		"nothing is divided": {nil, federation.Enforcement{}, metav1.ConditionFalse, "ObserveOnly", "limits no one"},
		"it ends":            {nil, federation.Enforcement{Grant: grantOf("10")}, metav1.ConditionFalse, "Releasing", "being released"},
		"it begins":          {balanced, federation.Enforcement{}, metav1.ConditionFalse, "Starting", "nothing has been granted"},
		"paused":             {&v1alpha1.Distribution{Mode: v1alpha1.Static, Paused: true}, federation.Enforcement{}, metav1.ConditionFalse, "Paused", "none is written"},
		"no promise":         {&v1alpha1.Distribution{Mode: v1alpha1.Shared}, federation.Enforcement{Grant: grantOf("10")}, metav1.ConditionFalse, "Shared", "for a moment"},
		"it cannot be divided": {
			balanced,
			federation.Enforcement{Problem: federation.Problem{Reason: "SharesExceedHard", Message: "too much"}},
			metav1.ConditionFalse, "SharesExceedHard", "too much; shares stay as they were",
		},
		"the limit was lowered": {
			balanced,
			federation.Enforcement{Grant: grantOf("13", rowOf("eu", "6", ""), rowOf("us", "7", ""))},
			metav1.ConditionFalse, "Shrinking", "3 of pods",
		},
		"one has no row": {
			balanced,
			federation.Enforcement{Grant: grantOf("10", rowOf("eu", "4", "")), Trouble: map[string]federation.Trouble{"us": federation.TroubleForeign}},
			metav1.ConditionFalse, "MemberUnbounded", "not bounded yet: us (QuotaOfOthers)",
		},
		"one lacks the namespace": {
			balanced,
			federation.Enforcement{Grant: grantOf("10", rowOf("eu", "4", "")), Trouble: map[string]federation.Trouble{"us": federation.TroubleNoNamespace}},
			metav1.ConditionTrue, "Enforced", "",
		},
		"one was changed by others": {
			balanced,
			federation.Enforcement{Grant: grantOf("10", rowOf("eu", "4", ""), rowOf("us", "6", v1alpha1.Repairing))},
			metav1.ConditionFalse, "Tampered", "put right in us",
		},
		"the record was lost": {
			balanced,
			federation.Enforcement{Grant: grantOf("10", rowOf("eu", "4", ""), rowOf("us", "", v1alpha1.Recovering))},
			metav1.ConditionFalse, "Recovering", "confirmed what they hold: us",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := quota(list("pods", "10"))
			q.Spec.Distribution = story.distribution
			status := federation.Report(q, use(part("eu", v1alpha1.Live, list("pods", "1")), part("us", v1alpha1.Live, list("pods", "1"))), story.e, noon)
			c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionEnforced)
			if c.Status != story.status || c.Reason != story.reason || !strings.Contains(c.Message, story.says) {
				t.Errorf("%s %s: %s", c.Status, c.Reason, c.Message)
			}
		})
	}
}

// With AssumeHard a silent member counts with all that it may use, if that is more.
func TestAssumeHard(t *testing.T) {
	t.Parallel()
	q := quota(list("pods", "30"))
	q.Spec.Distribution = &v1alpha1.Distribution{Mode: v1alpha1.Balanced}
	e := federation.Enforcement{Grant: grantOf("30", rowOf("eu", "9", ""), rowOf("me", "2", ""), rowOf("us", "8", ""), rowOf("za", "7", ""))}
	usage := use(
		part("ap", v1alpha1.Unreachable, list("pods", "1")), // holds nothing
		part("eu", v1alpha1.Live, list("pods", "1")),
		part("me", v1alpha1.Stale, list("pods", "3")), // uses more than it is granted
		part("us", v1alpha1.Unreachable, list("pods", "1")),
		part("za", v1alpha1.NeverSynced, nil),
	)
	if got := federation.Report(q, usage, e, noon).Used["pods"]; got.Value() != 6 {
		t.Errorf("last known: %s", got.String())
	}
	q.Spec.StalePolicy = v1alpha1.AssumeHard
	status := federation.Report(q, usage, e, noon)
	if got := status.Used["pods"]; got.Value() != 1+1+3+8+7 {
		t.Errorf("at most: %s", got.String())
	}
	for i := range status.Clusters {
		if row := &status.Clusters[i]; row.Name == "us" && row.Used.Pods().Value() != 1 {
			t.Errorf("the row of us: %v", row.Used)
		}
	}
	if got := usage.Used["pods"]; got.Value() != 6 {
		t.Error("the usage was changed")
	}
}

func TestCheckFindsTooMuch(t *testing.T) {
	t.Parallel()
	record := federation.Record{Spec: grantOf("10", rowOf("eu", "4", ""), rowOf("us", "6", "")).Spec}
	if err := record.Check(); err != nil {
		t.Error(err)
	}
	record.Spec.Members[0].Granted = list("pods", "5")
	if err := record.Check(); err == nil || err.Error() != "11 of pods would be granted, and the limit on record is 10" {
		t.Error(err)
	}
}
