package v1alpha1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// FleetQuota is a global quota: one set of limits for a namespace over many
// member clusters. It governs the namespace of its own name in every member
// that it selects.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=flq,categories=quota
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.distribution.mode`,description="how the limit is divided among the members; empty when it is only observed"
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Used%",type=string,JSONPath=`.status.summary.highest`,description="the resource that is used most, in percent of its limit"
// +kubebuilder:printcolumn:name="Clusters",type=string,JSONPath=`.status.summary.clusters`,description="members whose numbers are live, of all selected"
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.status.summary.cpu`,priority=1
// +kubebuilder:printcolumn:name="Memory",type=string,JSONPath=`.status.summary.memory`,priority=1
// +kubebuilder:printcolumn:name="Pods",type=string,JSONPath=`.status.summary.pods`,priority=1
// +kubebuilder:printcolumn:name="Stale",type=string,JSONPath=`.status.summary.stale`,priority=1,description="members whose numbers are not live"
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type FleetQuota struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what users ask for. Only users write it.
	Spec FleetQuotaSpec `json:"spec,omitempty"`
	// status is what the hub has observed. Only the hub writes it.
	Status FleetQuotaStatus `json:"status,omitempty"`
}

// FleetQuotaList is a list of FleetQuotas.
//
// +kubebuilder:object:root=true
type FleetQuotaList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []FleetQuota `json:"items"`
}

// FleetQuotaSpec says what is limited, where, and how the limit is divided.
//
// +kubebuilder:validation:XValidation:rule="has(self.scopes) == has(oldSelf.scopes) && (!has(self.scopes) || self.scopes == oldSelf.scopes)",fieldPath=".scopes",message="scopes are immutable, as in ResourceQuota: create a new FleetQuota with the scopes you want"
// +kubebuilder:validation:XValidation:rule="!has(self.distribution) || !has(oldSelf.distribution) || (has(self.scopeSelector) == has(oldSelf.scopeSelector) && (!has(self.scopeSelector) || self.scopeSelector == oldSelf.scopeSelector))",fieldPath=".scopeSelector",message="scopeSelector is immutable while spec.distribution is set: remove spec.distribution first, or create a new FleetQuota"
type FleetQuotaSpec struct {
	// hard is the limit over all selected members together, by resource name,
	// with the names and units of ResourceQuota: cores, bytes, or a count of
	// objects (count/deployments.apps). cpu and requests.cpu are one amount
	// under two names. An empty hard limits nothing and observes nothing.
	// Default: empty. Written by users.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.contains('/') || k.startsWith('hugepages-') || k.startsWith('requests.hugepages-') || k in ['cpu','memory','ephemeral-storage','requests.cpu','requests.memory','requests.storage','requests.ephemeral-storage','limits.cpu','limits.memory','limits.ephemeral-storage','pods','resourcequotas','services','replicationcontrollers','secrets','persistentvolumeclaims','configmaps','services.nodeports','services.loadbalancers'])",messageExpression="'unknown resource name in hard: ' + self.filter(k, !(k.contains('/') || k.startsWith('hugepages-') || k.startsWith('requests.hugepages-') || k in ['cpu','memory','ephemeral-storage','requests.cpu','requests.memory','requests.storage','requests.ephemeral-storage','limits.cpu','limits.memory','limits.ephemeral-storage','pods','resourcequotas','services','replicationcontrollers','secrets','persistentvolumeclaims','configmaps','services.nodeports','services.loadbalancers']))[0] + '; use a standard quota name such as requests.cpu or pods, count/RESOURCE.GROUP for objects, or requests.DOMAIN/NAME for extended resources'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$'))",messageExpression="'malformed resource name in hard: ' + self.filter(k, !(k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$')))[0] + '; use NAME or DOMAIN/NAME with letters, digits, -, _ and .'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, string(self[k]).matches('^[^eE]*([eE]([+-]?[0-9]{1,2})?i?)?$'))",messageExpression="'the limit of ' + self.filter(k, !string(self[k]).matches('^[^eE]*([eE]([+-]?[0-9]{1,2})?i?)?$'))[0] + ' in hard cannot be reckoned with: an exponent has at most two digits'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !string(self[k]).matches('^[^eE]*([eE]([+-]?[0-9]{1,2})?i?)?$') || isQuantity(string(self[k])) && quantity(string(self[k])).compareTo(quantity('0')) >= 0)",messageExpression="'negative limit in hard for: ' + self.filter(k, string(self[k]).matches('^[^eE]*([eE]([+-]?[0-9]{1,2})?i?)?$') && (!isQuantity(string(self[k])) || quantity(string(self[k])).compareTo(quantity('0')) < 0))[0] + '; a limit must be 0 or more'"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !(k.startsWith('count/') || k in ['pods','resourcequotas','services','replicationcontrollers','secrets','persistentvolumeclaims','configmaps','services.nodeports','services.loadbalancers']) || !string(self[k]).matches('^[^eE]*([eE]([+-]?[0-9]{1,2})?i?)?$') || quantity(string(self[k])).isInteger())",messageExpression="'the limit of ' + self.filter(k, (k.startsWith('count/') || k in ['pods','resourcequotas','services','replicationcontrollers','secrets','persistentvolumeclaims','configmaps','services.nodeports','services.loadbalancers']) && string(self[k]).matches('^[^eE]*([eE]([+-]?[0-9]{1,2})?i?)?$') && !quantity(string(self[k])).isInteger())[0] + ' in hard must be a whole number: it counts objects'"
	// +kubebuilder:validation:XValidation:rule="['cpu','memory','ephemeral-storage'].all(k, !(k in self) || !(('requests.' + k) in self) || !string(self[k]).matches('^[^eE]*([eE]([+-]?[0-9]{1,2})?i?)?$') || !string(self['requests.' + k]).matches('^[^eE]*([eE]([+-]?[0-9]{1,2})?i?)?$') || quantity(string(self[k])).compareTo(quantity(string(self['requests.' + k]))) == 0)",message="cpu and requests.cpu (memory and ephemeral-storage likewise) are one amount under two names: give one of them, or the same limit for both"
	Hard corev1.ResourceList `json:"hard,omitempty"`

	// scopes narrows what is counted, exactly as in ResourceQuota: an object
	// must match all of them. Immutable. Default: everything is counted.
	// Written by users.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:Enum=Terminating;NotTerminating;BestEffort;NotBestEffort;PriorityClass;CrossNamespacePodAffinity;VolumeAttributesClass
	// +kubebuilder:validation:XValidation:rule="!('Terminating' in self && 'NotTerminating' in self) && !('BestEffort' in self && 'NotBestEffort' in self)",message="conflicting scopes: no object is both Terminating and NotTerminating, or both BestEffort and NotBestEffort"
	Scopes []corev1.ResourceQuotaScope `json:"scopes,omitempty"`

	// scopeSelector narrows what is counted by the values of scopes, exactly
	// as in ResourceQuota. Immutable while distribution is set. Default:
	// everything is counted. Written by users.
	//
	// +optional
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.scopeName in ['Terminating','NotTerminating','BestEffort','NotBestEffort','PriorityClass','CrossNamespacePodAffinity','VolumeAttributesClass'])",message="unsupported scopeName: use Terminating, NotTerminating, BestEffort, NotBestEffort, PriorityClass, CrossNamespacePodAffinity or VolumeAttributesClass"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.scopeName in ['PriorityClass','VolumeAttributesClass'] || e.operator == 'Exists')",message="operator must be Exists for this scopeName; In, NotIn and DoesNotExist go with PriorityClass and VolumeAttributesClass"
	// +kubebuilder:validation:XValidation:rule="!has(self.matchExpressions) || self.matchExpressions.all(e, e.operator in ['In','NotIn'] ? has(e.values) && e.values.size() > 0 : e.operator in ['Exists','DoesNotExist'] && (!has(e.values) || e.values.size() == 0))",message="operators In and NotIn need values; Exists and DoesNotExist take none"
	ScopeSelector *corev1.ScopeSelector `json:"scopeSelector,omitempty"`

	// clusterSelector selects the members by the labels of their FleetMember.
	// Default: every member. Written by users.
	//
	// +optional
	ClusterSelector *metav1.LabelSelector `json:"clusterSelector,omitempty"`

	// stalePolicy says what counts for a member whose numbers are not live:
	// KeepLast its last known numbers, AssumeHard what it may use at most.
	// Written by users.
	//
	// +optional
	// +kubebuilder:default=KeepLast
	StalePolicy StalePolicy `json:"stalePolicy,omitempty"`

	// distribution divides hard among the members. Default: absent, the quota
	// only observes and nothing is written to the specs of members.
	// Written by users.
	//
	// +optional
	Distribution *Distribution `json:"distribution,omitempty"`
}

// StalePolicy says what counts for a member whose numbers are not live.
//
// +kubebuilder:validation:Enum=KeepLast;AssumeHard
type StalePolicy string

// The stale policies.
const (
	KeepLast   StalePolicy = "KeepLast"   // its last known numbers
	AssumeHard StalePolicy = "AssumeHard" // its grant
)

// Distribution divides the limit of a FleetQuota among its members.
type Distribution struct {
	// mode is the rule by which shares are computed.
	Mode DistributionMode `json:"mode"`

	// paused plans and shows shares, but writes none. Default: false.
	//
	// +optional
	Paused bool `json:"paused,omitempty"`

	// adoptExisting takes over local quotas of our name that we did not make.
	// Default: false, they are reported and not touched.
	//
	// +optional
	AdoptExisting bool `json:"adoptExisting,omitempty"`

	// createNamespaces creates the namespace in members that lack it.
	// Default: false.
	//
	// +optional
	CreateNamespaces bool `json:"createNamespaces,omitempty"`

	// whenRemoved says what becomes of the local quotas of members that leave:
	// because they are selected no more, or distribution or the FleetQuota is
	// removed.
	//
	// +optional
	// +kubebuilder:default=Leave
	WhenRemoved RemovalPolicy `json:"whenRemoved,omitempty"`

	// members overrides weight and bounds per member. A member that is not
	// listed has weight 1; in mode Static it gets nothing.
	//
	// +optional
	// +listType=map
	// +listMapKey=cluster
	// +kubebuilder:validation:MaxItems=512
	Members []MemberShare `json:"members,omitempty"`
}

// RemovalPolicy says what becomes of local quotas that carry a share no more.
//
// +kubebuilder:validation:Enum=Leave;Delete
type RemovalPolicy string

// The removal policies.
const (
	LeaveQuotas  RemovalPolicy = "Leave"  // they stay with their limits, and lose our marks
	DeleteQuotas RemovalPolicy = "Delete" // they are deleted
)

// DistributionMode is the rule by which shares are computed.
//
// +kubebuilder:validation:Enum=Static;Weighted;Balanced;Shared
type DistributionMode string

// The modes of distribution.
const (
	Static   DistributionMode = "Static"   // as written
	Weighted DistributionMode = "Weighted" // by weight
	Balanced DistributionMode = "Balanced" // by weight, then headroom follows demand
	Shared   DistributionMode = "Shared"   // each member may use all that is left; no guarantee
)

// MemberShare is what the user asks for one member.
type MemberShare struct {
	// cluster is the name of the FleetMember.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Cluster string `json:"cluster"`

	// weight is the member's part relative to the others. Default: 1.
	//
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000000
	Weight *int32 `json:"weight,omitempty"`

	// hard is the member's share in mode Static.
	//
	// +optional
	Hard corev1.ResourceList `json:"hard,omitempty"`

	// min is the least that the member gets.
	//
	// +optional
	Min corev1.ResourceList `json:"min,omitempty"`

	// max is the most that the member gets.
	//
	// +optional
	Max corev1.ResourceList `json:"max,omitempty"`
}

// FleetQuotaStatus is what the hub has observed.
type FleetQuotaStatus struct {
	// observedGeneration is the generation of the spec that this status is of.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// hard is the limit that used is compared with.
	//
	// +optional
	Hard corev1.ResourceList `json:"hard,omitempty"`

	// used is the sum over the members: live numbers where there are any, the
	// last known ones elsewhere. A resource that no member can count is absent.
	//
	// +optional
	Used corev1.ResourceList `json:"used,omitempty"`

	// granted is the sum of what the members may use, copied from the
	// FleetGrant.
	//
	// +optional
	Granted corev1.ResourceList `json:"granted,omitempty"`

	// grantUID is that of the FleetGrant. It is written before anything is
	// granted, so that a record which was lost is known to be missing.
	//
	// +optional
	GrantUID types.UID `json:"grantUID,omitempty"`

	// clusters is each selected member's part, sorted by name.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=2048
	Clusters []ClusterUsage `json:"clusters,omitempty"`

	// summary is what the columns of a table show.
	//
	// +optional
	Summary *Summary `json:"summary,omitempty"`

	// conditions are Ready, UsageComplete, WithinHard and Enforced.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// Phase says how far one member's numbers can be relied on.
//
// +kubebuilder:validation:Enum=Live;Stale;Unreachable;NeverSynced;Partial;Leaving
type Phase string

// The phases of one member's numbers. Leaving is of a FleetMember alone.
const (
	Live        Phase = "Live"        // complete and current
	Stale       Phase = "Stale"       // the last known numbers; the member has not answered for a moment
	Unreachable Phase = "Unreachable" // the last known numbers; the member has not answered for long
	NeverSynced Phase = "NeverSynced" // no numbers yet
	Partial     Phase = "Partial"     // current, but some resources cannot be counted
	Leaving     Phase = "Leaving"     // its Secret is gone, its grants are not yet free
)

// ClusterUsage is one member's part of a FleetQuota.
type ClusterUsage struct {
	// name is the name of the FleetMember.
	//
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// phase says how far the numbers can be relied on.
	Phase Phase `json:"phase"`

	// lastObservedTime is when the numbers were last known to be current.
	// Absent while they are live.
	//
	// +optional
	LastObservedTime *metav1.Time `json:"lastObservedTime,omitempty"`

	// used is what the member uses. A resource whose use is not known is
	// absent.
	//
	// +optional
	Used corev1.ResourceList `json:"used,omitempty"`

	// granted is what the member may use.
	//
	// +optional
	Granted corev1.ResourceList `json:"granted,omitempty"`

	// planned is what the member shall have and does not have yet, because
	// others have not given it back or the distribution is paused.
	//
	// +optional
	Planned corev1.ResourceList `json:"planned,omitempty"`

	// unknown names the resources whose current use is not known.
	//
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Unknown []corev1.ResourceName `json:"unknown,omitempty"`

	// reason says in one word why the numbers are as they are, where there is
	// something to say: NamespaceMissing, ConnectionLost, NotServed, ...
	//
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`
}

// Summary holds the strings that the columns of a table show.
type Summary struct {
	// members is how many members the quota selects.
	Members int32 `json:"members"`

	// live is how many of them have live numbers.
	Live int32 `json:"live"`

	// omitted is how many rows of live members are left out of clusters.
	//
	// +optional
	Omitted int32 `json:"omitted,omitempty"`

	// clusters is live and members as "5/6".
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Clusters string `json:"clusters,omitempty"`

	// highest is the largest use of any resource, in percent of its limit.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Highest string `json:"highest,omitempty"`

	// cpu is used and hard of requests.cpu as "7/10".
	//
	// +optional
	// +kubebuilder:validation:MaxLength=80
	CPU string `json:"cpu,omitempty"`

	// memory is used and hard of requests.memory.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=80
	Memory string `json:"memory,omitempty"`

	// pods is used and hard of pods.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=80
	Pods string `json:"pods,omitempty"`

	// stale names how many members have numbers that are not live.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=32
	Stale string `json:"stale,omitempty"`
}

// The types of conditions of a FleetQuota.
const (
	ConditionReady         = "Ready"         // the spec is understood and the status is of it
	ConditionUsageComplete = "UsageComplete" // every number of every member is live
	ConditionWithinHard    = "WithinHard"    // used is not above hard
	ConditionEnforced      = "Enforced"      // the members can not use more than hard together
)
