package controller

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/clusters"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// reachOf says in the ledger's words how far a connection can be relied on.
func reachOf(state clusters.State) federation.Reach {
	reach := federation.Reach{LastContact: state.LastContact, Reason: cmp.Or(state.Reason, state.CredentialsReason)}
	switch state.Reach {
	case clusters.Live:
		return federation.Reach{Phase: v1alpha1.Live, Reason: state.Reason}
	case clusters.Stale:
		reach.Phase = v1alpha1.Stale
	case clusters.Unreachable:
		reach.Phase = v1alpha1.Unreachable
	case clusters.Never:
		reach.Phase = v1alpha1.NeverSynced
	}
	return reach
}

// memberStatus is the status that a FleetMember should have.
func memberStatus(have *v1alpha1.FleetMember, m standing, now time.Time) v1alpha1.FleetMemberStatus {
	state := m.state
	status := v1alpha1.FleetMemberStatus{
		Version:     cmp.Or(state.Version, have.Status.Version),
		UID:         cmp.Or(state.UID, have.Status.UID),
		LocalStatus: have.Status.LocalStatus,
		Conditions:  slices.Clone(have.Status.Conditions),
	}
	if m.engaged != nil {
		status.LocalStatus = m.engaged.mode
	}
	if !state.CredentialsExpire.IsZero() {
		expire := metav1.NewTime(state.CredentialsExpire).Rfc3339Copy()
		status.CredentialExpirationTime = &expire
	}
	if state.Reach != clusters.Live {
		status.LastContactTime = lastContact(have, state)
	}
	synced := syncedCondition(m)
	status.Phase = phaseOf(have, m, synced.Status == metav1.ConditionTrue)
	for _, condition := range []metav1.Condition{readyCondition(state), credentialsCondition(state), synced, localCondition(m)} {
		condition.ObservedGeneration = have.Generation
		condition.LastTransitionTime = metav1.NewTime(now).Rfc3339Copy()
		meta.SetStatusCondition(&status.Conditions, condition)
	}
	return status
}

// phaseOf says how far a member's numbers can be relied on as a whole.
func phaseOf(have *v1alpha1.FleetMember, m standing, synced bool) v1alpha1.Phase {
	phase := reachOf(m.state).Phase
	counted := have.Status.Phase != "" && have.Status.Phase != v1alpha1.NeverSynced // once
	switch {
	case phase == v1alpha1.NeverSynced && have.Status.UID != "":
		return v1alpha1.Unreachable // since before the hub started
	case phase != v1alpha1.Live || synced:
		return phase
	case m.engaged != nil:
		return v1alpha1.Partial
	case counted:
		return v1alpha1.Stale
	}
	return v1alpha1.NeverSynced
}

// lastContact is when a member that is not live last answered; nil: never. For
// one that was live until the hub ended that is when its status was written.
func lastContact(have *v1alpha1.FleetMember, state clusters.State) *metav1.Time {
	last := state.LastContact
	switch {
	case !last.IsZero():
	case have.Status.LastContactTime != nil:
		return have.Status.LastContactTime
	case have.Status.UID != "":
		last = writtenAt(have.ManagedFields)
	}
	if last.IsZero() {
		return nil
	}
	whole := metav1.NewTime(last).Rfc3339Copy()
	return &whole
}

func readyCondition(state clusters.State) metav1.Condition {
	ready := metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse}
	ready.Reason, ready.Message = state.Reason, state.Message
	if ready.Reason != "" {
		return ready
	}
	ready.Reason = string(state.Reach)
	ready.Message = "the member has not answered"
	if state.Reach == clusters.Live {
		ready.Status, ready.Message = metav1.ConditionTrue, "the member answers"
	}
	return ready
}

func credentialsCondition(state clusters.State) metav1.Condition {
	valid := metav1.Condition{Type: v1alpha1.ConditionCredentialsValid, Status: metav1.ConditionTrue}
	valid.Reason, valid.Message = "Accepted", "the hub and the member accept the kubeconfig"
	switch {
	case state.CredentialsReason != "":
		valid.Status = metav1.ConditionFalse
		valid.Reason, valid.Message = state.CredentialsReason, state.CredentialsMessage
	case state.LastContact.IsZero():
		valid.Status = metav1.ConditionUnknown
		valid.Reason, valid.Message = "NotTried", "the member has not answered since the hub started"
	}
	return valid
}

func syncedCondition(m standing) metav1.Condition {
	synced := metav1.Condition{Type: v1alpha1.ConditionSynced, Status: metav1.ConditionFalse}
	if m.engaged == nil {
		synced.Status = metav1.ConditionUnknown
		synced.Reason, synced.Message = "NotEngaged", "nothing is being counted"
		return synced
	}
	var current bool
	if current, synced.Reason, synced.Message = m.engaged.synced(); current {
		synced.Status = metav1.ConditionTrue
	}
	return synced
}

func localCondition(m standing) metav1.Condition {
	agrees := metav1.Condition{Type: v1alpha1.ConditionLocalStatusAgrees, Status: metav1.ConditionUnknown}
	switch {
	case m.engaged == nil:
		agrees.Reason, agrees.Message = "NotEngaged", "nothing is being counted"
	case m.engaged.mode == v1alpha1.LocalNever:
		agrees.Reason, agrees.Message = "NotChecked", "the status of local quotas is not looked at"
	case m.engaged.mode == v1alpha1.LocalAlways:
		agrees.Status = metav1.ConditionTrue
		agrees.Reason, agrees.Message = "Kept", "the hub keeps the status of every local quota"
	default:
		var agree bool
		agrees.Status = metav1.ConditionFalse
		if agree, agrees.Reason, agrees.Message = m.engaged.local.answers.agreement(); agree {
			agrees.Status = metav1.ConditionTrue
		}
	}
	return agrees
}
