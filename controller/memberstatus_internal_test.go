package controller

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/clusters"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

func TestMemberStatus(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	written := metav1.NewTime(noon.Add(-time.Hour))
	known := v1alpha1.FleetMember{
		ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{{Subresource: "status", Time: &written}}},
		Status:     v1alpha1.FleetMemberStatus{UID: "uid", Version: "v1.37.2", Phase: v1alpha1.Live},
	}
	cases := map[string]struct {
		have        v1alpha1.FleetMember
		state       clusters.State
		phase       v1alpha1.Phase
		last        time.Time
		ready       string
		credentials string
	}{
		"a new member that has not answered": {
			state: clusters.State{Reach: clusters.Never, Reason: "Timeout"},
			phase: v1alpha1.NeverSynced, ready: "Timeout", credentials: "NotTried",
		},
		"a known member that has not answered since the hub started": {
			have: known, state: clusters.State{Reach: clusters.Never, Reason: "Timeout"},
			phase: v1alpha1.Unreachable, last: written.Time, ready: "Timeout", credentials: "NotTried",
		},
		"a silent member": {
			have: known, state: clusters.State{Reach: clusters.Stale, Reason: "Timeout", LastContact: noon},
			phase: v1alpha1.Stale, last: noon, ready: "Timeout", credentials: "Accepted",
		},
		"a member whose Secret was replaced by one that is refused": {
			have: known, state: clusters.State{Reach: clusters.Stale, LastContact: noon, CredentialsReason: "ParseError"},
			phase: v1alpha1.Stale, last: noon, ready: "Stale", credentials: "ParseError",
		},
		"a new member that answers and cannot be engaged": {
			state: clusters.State{Reach: clusters.Live, LastContact: noon, Reason: "EngagementFailed"},
			phase: v1alpha1.NeverSynced, ready: "EngagementFailed", credentials: "Accepted",
		},
		"a known member that answers and cannot be engaged": {
			have: known, state: clusters.State{Reach: clusters.Live, LastContact: noon, Reason: "EngagementFailed"},
			phase: v1alpha1.Stale, ready: "EngagementFailed", credentials: "Accepted",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := memberStatus(&c.have, standing{state: c.state}, noon)
			if got.Phase != c.phase {
				t.Errorf("phase %s, want %s", got.Phase, c.phase)
			}
			if (got.LastContactTime != nil) != !c.last.IsZero() || got.LastContactTime != nil && !got.LastContactTime.Time.Equal(c.last) {
				t.Errorf("last contact %v, want %v", got.LastContactTime, c.last)
			}
			if reason := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionReady).Reason; reason != c.ready {
				t.Errorf("ready: %s, want %s", reason, c.ready)
			}
			if reason := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionCredentialsValid).Reason; reason != c.credentials {
				t.Errorf("credentials: %s, want %s", reason, c.credentials)
			}
		})
	}
}
