package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FleetMember is one cluster that is registered at the hub by a kubeconfig
// Secret. The hub makes it, keeps its labels those of the Secret, and removes
// it. Labels select it in a FleetQuota.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=flm
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`,description="the version of Kubernetes of the member"
// +kubebuilder:printcolumn:name="Local",type=string,JSONPath=`.status.localStatus`,description="who keeps the status of local quotas"
// +kubebuilder:printcolumn:name="Last-Seen",type=date,JSONPath=`.status.lastContactTime`,description="when it last answered; empty while it is live"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type FleetMember struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec names the Secret. Only the hub writes it.
	Spec FleetMemberSpec `json:"spec,omitempty"`
	// status is what the hub has observed. Only the hub writes it.
	Status FleetMemberStatus `json:"status,omitempty"`
}

// FleetMemberList is a list of FleetMembers.
//
// +kubebuilder:object:root=true
type FleetMemberList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []FleetMember `json:"items"`
}

// FleetMemberSpec names the Secret that registers the member.
type FleetMemberSpec struct {
	// secretName is the Secret in the hub's namespace that holds the
	// member's kubeconfig. Empty for the hub as a member of itself.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	SecretName string `json:"secretName,omitempty"`
}

// LocalStatusMode says who keeps the status of a member's local quotas.
//
// +kubebuilder:validation:Enum=Always;Never;Auto
type LocalStatusMode string

// The modes of keeping the status of local quotas.
const (
	LocalAlways LocalStatusMode = "Always" // the member runs no quota controller: the hub is it
	LocalNever  LocalStatusMode = "Never"  // the hub writes no status in the member
	LocalAuto   LocalStatusMode = "Auto"   // the hub takes over the quotas that nobody answers for
)

// FleetMemberStatus is what the hub has observed of a member.
type FleetMemberStatus struct {
	// phase says how far the member's numbers can be relied on.
	//
	// +optional
	Phase Phase `json:"phase,omitempty"`

	// version is the member's version of Kubernetes.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Version string `json:"version,omitempty"`

	// uid is the identity of the cluster: the UID of its kube-system
	// namespace.
	//
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// localStatus is who keeps the status of local quotas, in effect.
	//
	// +optional
	LocalStatus LocalStatusMode `json:"localStatus,omitempty"`

	// credentialExpirationTime is when the member's credentials expire, where
	// they say so.
	//
	// +optional
	CredentialExpirationTime *metav1.Time `json:"credentialExpirationTime,omitempty"`

	// lastContactTime is when the member last answered. Absent while it is
	// live.
	//
	// +optional
	LastContactTime *metav1.Time `json:"lastContactTime,omitempty"`

	// conditions are Ready, CredentialsValid and Synced.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// The types of conditions of a FleetMember, besides Ready.
const (
	ConditionCredentialsValid  = "CredentialsValid"  // the Secret's kubeconfig is accepted by the hub and by the member
	ConditionSynced            = "Synced"            // everything that is asked of the member has been counted
	ConditionLocalStatusAgrees = "LocalStatusAgrees" // no local quota's status differs from what is counted
)

// MemberFinalizer keeps a FleetMember while it holds a grant.
const MemberFinalizer = "fleetquota.io/grants"

// AnnotationFenced on a FleetMember is a person's word, "true", that nothing can
// be used in the member any more, or that it does not matter: its shares are free.
const AnnotationFenced = "fleetquota.io/fenced"
