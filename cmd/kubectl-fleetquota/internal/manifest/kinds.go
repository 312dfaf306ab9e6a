package manifest

import (
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// kinds is what is known of the kinds of objects.
type kinds struct {
	scheme  *runtime.Scheme
	decoder *json.Serializer
	defined map[schema.GroupKind]definition // of the CustomResourceDefinitions that were read

	generated int // names made so far for objects with none of their own
}

// definition is what a CustomResourceDefinition says of its kind.
type definition struct {
	plural     string
	namespaced bool
}

func newKinds() kinds {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return kinds{
		scheme:  scheme,
		decoder: json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Strict: true}),
		defined: map[schema.GroupKind]definition{},
	}
}

// learn takes note of a kind that an object defines.
func (k *kinds) learn(o *Object) {
	if crd, ok := o.Value.(*apiextensionsv1.CustomResourceDefinition); ok {
		kind := schema.GroupKind{Group: crd.Spec.Group, Kind: crd.Spec.Names.Kind}
		k.defined[kind] = definition{
			plural:     crd.Spec.Names.Plural,
			namespaced: crd.Spec.Scope != apiextensionsv1.ClusterScoped,
		}
	}
}

// namespaced says whether objects of a kind are in a namespace, and whether
// that is known.
func (k *kinds) namespaced(kind schema.GroupKind) (is, known bool) {
	if defined, ok := k.defined[kind]; ok {
		return defined.namespaced, true
	}
	if slices.Contains(clusterKinds()[kind.Group], kind.Kind) {
		return false, true
	}
	return true, k.scheme.IsGroupRegistered(kind.Group)
}

// resource is the plural of a kind, as its definition gives it or else guessed.
func (k *kinds) resource(kind schema.GroupKind) schema.GroupResource {
	if defined, ok := k.defined[kind]; ok {
		return schema.GroupResource{Group: kind.Group, Resource: defined.plural}
	}
	guess, single := meta.UnsafeGuessKindToResource(kind.WithVersion(""))
	if stem, found := strings.CutSuffix(single.Resource, "y"); found && stem != strings.TrimRight(stem, "aeou") {
		return schema.GroupResource{Group: kind.Group, Resource: single.Resource + "s"} // gateways, not gatewaies
	}
	return guess.GroupResource()
}

// served lists the kinds that are in namespaces and are built in or defined.
func (k *kinds) served() []schema.GroupResource {
	var all []schema.GroupResource
	for _, built := range k.scheme.PrioritizedVersionsAllGroups() {
		if built.Group == "extensions" {
			continue // no server of today has it
		}
		for name := range k.scheme.KnownTypes(built) {
			kind := schema.GroupKind{Group: built.Group, Kind: name}
			if is, _ := k.namespaced(kind); is {
				all = append(all, k.resource(kind))
			}
		}
	}
	for kind, defined := range k.defined {
		if defined.namespaced {
			all = append(all, k.resource(kind))
		}
	}
	return all
}

// clusterKinds lists the built-in kinds that are in no namespace, by group.
func clusterKinds() map[string][]string {
	return map[string][]string{
		"":                             {"ComponentStatus", "Namespace", "Node", "PersistentVolume"},
		"admissionregistration.k8s.io": {"MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration"},
		"apiextensions.k8s.io":         {"CustomResourceDefinition"},
		"apiregistration.k8s.io":       {"APIService"},
		"authentication.k8s.io":        {"SelfSubjectReview", "TokenReview"},
		"authorization.k8s.io":         {"SelfSubjectAccessReview", "SelfSubjectRulesReview", "SubjectAccessReview"},
		"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
		"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
		"internal.apiserver.k8s.io":    {"StorageVersion"},
		"networking.k8s.io":            {"IPAddress", "IngressClass", "ServiceCIDR"},
		"node.k8s.io":                  {"RuntimeClass"},
		"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
		"resource.k8s.io":              {"DeviceClass", "DeviceTaintRule", "ResourcePoolStatusRequest", "ResourceSlice"},
		"scheduling.k8s.io":            {"PriorityClass"},
		"storage.k8s.io":               {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"},
		"storagemigration.k8s.io":      {"StorageVersionMigration"},
		v1alpha1.GroupName:             {"FleetMember"},
	}
}
