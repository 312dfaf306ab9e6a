// Package v1alpha1 holds the API of fleetquota: FleetQuota, the global quota
// that users write; FleetMember, what the hub says of each member cluster; and
// FleetGrant, the durable record of what each member may use.
//
// Users write the spec of a FleetQuota and nothing else. The hub writes every
// status, and makes and removes FleetMembers and FleetGrants. A number that is
// not known is left out or named under unknown; it is never written as zero.
//
// +kubebuilder:object:generate=true
// +groupName=fleetquota.io
package v1alpha1
