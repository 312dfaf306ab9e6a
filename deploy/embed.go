// Package deploy holds the manifests of fleetquota, for people who apply them
// and for programs that need the same objects: the command line, which brings
// the roles to a member, and the tests, which set up real API servers.
//
// The objects are what the files beside this one say, decoded strictly and
// without defaults. Every call returns new ones, in the order of application.
// No rule among them holds a wildcard.
package deploy

import (
	"bufio"
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
)

//go:embed crds/fleetquota.io_*.yaml hub/namespace.yaml hub/rbac.yaml hub/users.yaml
//go:embed roles/member/observe.yaml roles/member/observe-secrets.yaml
//go:embed roles/member/local-status.yaml roles/member/distribute.yaml roles/member/create-namespaces.yaml
//go:embed policies/shares.yaml
var manifests embed.FS

// The roles of a member, by what they allow the hub.
const (
	RoleObserve        = "fleetquota-observe"         // count what owners of custom resources add
	RoleObserveBase    = "fleetquota-observe-base"    // count the kinds of Kubernetes itself
	RoleObserveSecrets = "fleetquota-observe-secrets" //nolint:gosec // the name of a role: count Secrets
	RoleLocalStatus    = "fleetquota-local-status"    // keep the status of local quotas
	RoleDistribute     = "fleetquota-distribute"      // write shares into local quotas

	RoleCreateNamespaces = "fleetquota-create-namespaces" // create the namespaces of quotas that ask for it
)

// Namespace is where the hub lives, and its account in every member.
const Namespace = "fleetquota-system"

// CRDs are the types of the API of fleetquota, for the hub.
func CRDs() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	return read[*apiextensionsv1.CustomResourceDefinition]("crds/*.yaml")
}

// MemberRoles are the roles that a member can grant to the hub.
func MemberRoles() ([]*rbacv1.ClusterRole, error) {
	return read[*rbacv1.ClusterRole]("roles/member/*.yaml")
}

// MemberPolicies are the policies that keep the shares in a member as the hub has
// written them.
func MemberPolicies() ([]runtime.Object, error) {
	return read[runtime.Object]("policies/*.yaml")
}

// HubRBAC is the hub's namespace, its account, and what that account and the
// hub's users may do there.
func HubRBAC() ([]runtime.Object, error) {
	return read[runtime.Object]("hub/*.yaml")
}

// read decodes the documents of all files that match, which must be of type T.
func read[T runtime.Object](pattern string) ([]T, error) {
	names, err := fs.Glob(manifests, pattern)
	if err != nil {
		return nil, fmt.Errorf("find %s: %w", pattern, err)
	}
	decoder, err := newDecoder()
	if err != nil {
		return nil, err
	}
	var all []T
	for _, name := range names {
		objects, err := decodeFile(decoder, name)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		for _, object := range objects {
			typed, ok := object.(T)
			if !ok {
				return nil, fmt.Errorf("read %s: it holds a %T", name, object)
			}
			all = append(all, typed)
		}
	}
	return all, nil
}

func newDecoder() (runtime.Decoder, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{admissionregistrationv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("register types: %w", err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer(), nil
}

func decodeFile(decoder runtime.Decoder, name string) ([]runtime.Object, error) {
	data, err := manifests.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var objects []runtime.Object
	for reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data))); ; {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}
