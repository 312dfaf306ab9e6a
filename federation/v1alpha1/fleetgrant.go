package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FleetGrant is the durable record of what each member may use of the
// FleetQuota of the same name. It is owned by that FleetQuota. Users read it;
// only the hub writes it. The record is in the spec, so that neither a restore
// that drops status nor a writer of status can lose it.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=flg,categories=quota
// +kubebuilder:printcolumn:name="Revision",type=integer,JSONPath=`.spec.revision`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type FleetGrant struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the record.
	Spec FleetGrantSpec `json:"spec,omitempty"`
}

// FleetGrantList is a list of FleetGrants.
//
// +kubebuilder:object:root=true
type FleetGrantList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []FleetGrant `json:"items"`
}

// FleetGrantSpec is the record. For every resource the sum of granted over the
// members is at most hard.
type FleetGrantSpec struct {
	// hard is the limit on record. It follows the user's limit up at once,
	// and down only as members give back.
	//
	// +optional
	Hard corev1.ResourceList `json:"hard,omitempty"`

	// revision is the newest that any row has had. It only counts up.
	//
	// +optional
	Revision int64 `json:"revision,omitempty"`

	// whenRemoved is that of the FleetQuota, which may be gone by the time
	// that it matters.
	//
	// +optional
	WhenRemoved RemovalPolicy `json:"whenRemoved,omitempty"`

	// members has a row for every member that holds a share, or is about to.
	//
	// +optional
	// +listType=map
	// +listMapKey=cluster
	// +kubebuilder:validation:MaxItems=512
	Members []Grant `json:"members,omitempty"`
}

// Grant is what one member may use.
type Grant struct {
	// cluster is the name of the FleetMember.
	//
	// +kubebuilder:validation:MaxLength=253
	Cluster string `json:"cluster"`

	// clusterUID is the cluster that bore the name when the row was made. What
	// another cluster of that name shows does not count.
	//
	// +optional
	ClusterUID types.UID `json:"clusterUID,omitempty"`

	// quotaUID is the local quota that the row speaks of. Absent while the row
	// waits for one that was sent to be made.
	//
	// +optional
	QuotaUID types.UID `json:"quotaUID,omitempty"`

	// revision is that of the last write to the member that was intended. The
	// local quota bears it in its annotation once the write has arrived.
	Revision int64 `json:"revision"`

	// state says what is unusual about the row. Absent: nothing.
	//
	// +optional
	State GrantState `json:"state,omitempty"`

	// granted covers all that was ever sent to the member or is in force
	// there. A resource that is absent is not bounded there yet.
	//
	// +optional
	Granted corev1.ResourceList `json:"granted,omitempty"`

	// target is what the member shall have.
	//
	// +optional
	Target corev1.ResourceList `json:"target,omitempty"`
}

// GrantState says what is unusual about a row. No share of any member is raised
// while a row is Recovering or Repairing.
//
// +kubebuilder:validation:Enum=Recovering;Repairing;Releasing
type GrantState string

// The states of a row.
const (
	Recovering GrantState = "Recovering" // the record was lost: the member may hold anything until a new write is confirmed there
	Repairing  GrantState = "Repairing"  // others have deleted, edited or replaced the local quota
	Releasing  GrantState = "Releasing"  // the member leaves the distribution: the marks on its quota are being removed
)

// GrantFinalizer keeps a FleetGrant until the marks on the members' quotas are
// gone. It is of the same name as that of FleetMembers.
const GrantFinalizer = MemberFinalizer

// What marks a local quota that holds a share of a FleetQuota of its name and
// namespace.
const (
	LabelShare      = "fleetquota.io/share" // "true"
	AnnotationGrant = "fleetquota.io/grant" // UID of the FleetGrant, a dot, and the revision of the last write
	AnnotationLimit = "fleetquota.io/limit" // for people: the global quota and its limit
)
