package evaluator

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Names of object counts that appear more than once.
const (
	countPrefix   = "count/"
	countPods     = corev1.ResourceName("count/pods")
	countServices = corev1.ResourceName("count/services")
	countClaims   = corev1.ResourceName("count/persistentvolumeclaims")

	countDeviceClaims = corev1.ResourceName("count/resourceclaims.resource.k8s.io")
)

// limitsPrefix begins the quota names of limits.
const limitsPrefix = "limits."

// storageClassInfix stands between a storage class and the name of the amount
// that is limited for that class alone.
const storageClassInfix = ".storageclass.storage.k8s.io/"

// Canonical gives the one name that is used inside for names that are one
// amount: cpu is requests.cpu, hugepages-2Mi is requests.hugepages-2Mi, services
// is count/services. Other names are unchanged. So is pods: it leaves out
// finished pods, which count/pods includes.
func Canonical(name corev1.ResourceName) corev1.ResourceName {
	if ofClass(name) {
		return name
	}
	if compute(name) || hugePages(name) {
		return requested(name)
	}
	if oneOf(name, corev1.ResourceServices, corev1.ResourcePersistentVolumeClaims, corev1.ResourceConfigMaps,
		corev1.ResourceSecrets, corev1.ResourceReplicationControllers, corev1.ResourceQuotas) {
		return countPrefix + name
	}
	return name
}

// oneOf says whether the name is among the others. A switch would do if names
// were a closed set.
func oneOf(name corev1.ResourceName, others ...corev1.ResourceName) bool {
	return slices.Contains(others, name)
}

// compute says whether a container's resource is one of those that quota counts
// by request and by limit.
func compute(name corev1.ResourceName) bool {
	return oneOf(name, corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage)
}

// requested is the quota name of what a container asks for under this name.
func requested(name corev1.ResourceName) corev1.ResourceName {
	return corev1.DefaultResourceRequestsPrefix + name
}

// limited is the quota name of a container's limit under this name.
func limited(name corev1.ResourceName) corev1.ResourceName {
	return limitsPrefix + name
}

// hugePages says whether a container's resource is a size of huge pages.
func hugePages(name corev1.ResourceName) bool {
	return strings.HasPrefix(string(name), corev1.ResourceHugePagesPrefix)
}

// countName is the name under which a quota counts the objects of a kind.
func countName(kind schema.GroupResource) corev1.ResourceName {
	return corev1.ResourceName(countPrefix + kind.String())
}

// countedKind is the kind whose objects a name counts, if it is such a name.
func countedKind(name corev1.ResourceName) (schema.GroupResource, bool) {
	kind, found := strings.CutPrefix(string(name), countPrefix)
	return schema.ParseGroupResource(kind), found
}

// native says whether a resource belongs to Kubernetes itself: its name has no
// domain, or one in kubernetes.io.
func native(name corev1.ResourceName) bool {
	return !strings.Contains(string(name), "/") ||
		strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}

// extended says whether a quota counts a container's request under this name as
// an extended resource, the implicit ones of device classes included.
func (r rules) extended(name corev1.ResourceName) bool {
	if r.implicitResources && strings.HasPrefix(string(requested(name)), corev1.ResourceImplicitExtendedClaimsPerClass) {
		return true
	}
	if native(name) || strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix) {
		return false
	}
	return len(validation.IsQualifiedName(string(requested(name)))) == 0
}

// extendedRequest says whether a quota's name limits an extended resource.
func (r rules) extendedRequest(name corev1.ResourceName) bool {
	if r.implicitResources && strings.HasPrefix(string(name), corev1.ResourceImplicitExtendedClaimsPerClass) {
		return true
	}
	return !native(name) && strings.HasPrefix(string(name), corev1.DefaultResourceRequestsPrefix)
}

// ofClass says whether a name counts one storage class or device class alone. It
// begins with the name of the class, which may look like anything.
func ofClass(name corev1.ResourceName) bool {
	return strings.HasSuffix(string(name), corev1.ResourceClaimsPerClass) || strings.Contains(string(name), storageClassInfix)
}
