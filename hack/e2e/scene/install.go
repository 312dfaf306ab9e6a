package scene

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetquota/fleetquota/deploy"
)

// install applies the API of fleetquota and the hub's account.
func (s *Scene) install(ctx context.Context) error {
	crds, err := deploy.CRDs()
	if err != nil {
		return err
	}
	objects, err := deploy.HubRBAC()
	if err != nil {
		return err
	}
	for _, crd := range crds {
		objects = append(objects, crd)
	}
	if err := s.Hub.Apply(ctx, objects...); err != nil {
		return err
	}
	return Eventually(ctx, 20*time.Second, func(ctx context.Context) error {
		_, err := s.Hub.Quota.Quotas("default").List(ctx, metav1.ListOptions{})
		return err
	})
}

// Apply creates or updates objects.
func (c *Cluster) Apply(ctx context.Context, objects ...runtime.Object) error {
	api, err := discovery.NewDiscoveryClientForConfig(c.Config)
	if err != nil {
		return err
	}
	groups, err := restmapper.GetAPIGroupResources(api)
	if err != nil {
		return err
	}
	mapper := restmapper.NewDiscoveryRESTMapper(groups)
	for _, object := range objects {
		if err := c.apply(ctx, mapper, object); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) apply(ctx context.Context, mapper meta.RESTMapper, object runtime.Object) error {
	text, err := json.Marshal(object)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{}
	if err := json.Unmarshal(text, &u.Object); err != nil {
		return err
	}
	unstructured.RemoveNestedField(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	kind := u.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	_, err = c.Dynamic.Resource(mapping.Resource).Namespace(u.GetNamespace()).Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: "scene", Force: true})
	if err != nil {
		return fmt.Errorf("apply %s %s at %s: %w", kind.Kind, u.GetName(), c.Name(), err)
	}
	return nil
}

// Registration says how a member is registered.
type Registration struct {
	Name        string            // at the hub; default that of the cluster
	LocalStatus string            // Always, Never or Auto; default: the hub's flag says
	Labels      map[string]string // further labels of the Secret
	Token       time.Duration     // how long the token lives; default 24h
	Roles       []string          // default all
	Annotations map[string]string // of the Secret
	Account     string            // of the hub in the member; default fleetquota-hub
	Certificate bool              // the hub gets a client certificate instead of a token
}

func (r Registration) account() string {
	if r.Account == "" {
		return "fleetquota-hub"
	}
	return r.Account
}

// Register gives the hub an account in a member and its kubeconfig to the hub,
// as `kubectl fleetquota join` does. Again it rotates the token.
func (s *Scene) Register(ctx context.Context, member *Cluster, r Registration) error {
	if r.Name == "" {
		r.Name = member.Name()
	}
	kubeconfig, err := s.Credentials(ctx, member, r)
	if err != nil {
		return fmt.Errorf("register %s: %w", r.Name, err)
	}
	return s.WriteSecret(ctx, r, kubeconfig)
}

// WriteSecret registers a member with this kubeconfig, whatever it holds.
func (s *Scene) WriteSecret(ctx context.Context, r Registration, kubeconfig []byte) error {
	return s.WriteSecretData(ctx, r, map[string][]byte{"kubeconfig": kubeconfig})
}

// WriteSecretData registers a member with a Secret of these keys.
func (s *Scene) WriteSecretData(ctx context.Context, r Registration, data map[string][]byte) error {
	secret := &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: r.Name, Labels: map[string]string{"fleetquota.io/member": "true"}},
		Data:       data,
	}
	maps.Copy(secret.Labels, r.Labels)
	secret.Annotations = maps.Clone(r.Annotations)
	if r.LocalStatus != "" {
		if secret.Annotations == nil {
			secret.Annotations = map[string]string{}
		}
		secret.Annotations["fleetquota.io/local-status"] = r.LocalStatus
	}
	return s.Hub.Apply(ctx, secret)
}

// Credentials gives the hub an account in a member and makes a kubeconfig for
// it.
func (s *Scene) Credentials(ctx context.Context, member *Cluster, r Registration) ([]byte, error) {
	if err := member.grant(ctx, r); err != nil {
		return nil, err
	}
	if r.Certificate {
		return member.Kubeconfig(r.account())
	}
	lifetime := r.Token
	if lifetime == 0 {
		lifetime = 24 * time.Hour
	}
	token, err := member.token(ctx, r.account(), lifetime)
	if err != nil {
		return nil, err
	}
	return kubeconfig(member, token)
}

// grant gives the hub's account in a member the roles that are asked for.
func (c *Cluster) grant(ctx context.Context, r Registration) error {
	roles, err := deploy.MemberRoles()
	if err != nil {
		return err
	}
	account := metav1.ObjectMeta{Namespace: Namespace, Name: r.account()}
	objects := []runtime.Object{
		&corev1.Namespace{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"}, ObjectMeta: metav1.ObjectMeta{Name: Namespace}},
		&corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"}, ObjectMeta: account},
	}
	for _, role := range roles {
		objects = append(objects, role)
	}
	names := r.Roles
	if len(names) == 0 {
		for _, role := range roles {
			names = append(names, role.Name)
		}
	}
	for _, name := range names {
		objects = append(objects, binding(name, r))
	}
	return c.Apply(ctx, objects...)
}

// binding gives the hub's account a role.
func binding(role string, r Registration) *rbacv1.ClusterRoleBinding {
	name := role
	if r.Account != "" {
		name += "-" + r.Account
	}
	subject := rbacv1.Subject{Kind: "ServiceAccount", Namespace: Namespace, Name: r.account()}
	if r.Certificate {
		name += "-certificate"
		subject = rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: r.account()}
	}
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{subject},
	}
}

// Allow lets the hub's account in a member count a kind of object, as the owner
// of a custom resource does; or other accounts in its place.
func (c *Cluster) Allow(ctx context.Context, kind schema.GroupResource, accounts ...string) error {
	name := "fleetquota-observe-" + kind.String()
	role := &rbacv1.ClusterRole{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: map[string]string{"fleetquota.io/aggregate-to-observe": "true"},
		},
		Rules: []rbacv1.PolicyRule{{
			APIGroups: []string{kind.Group}, Resources: []string{kind.Resource}, Verbs: []string{"get", "list", "watch"},
		}},
	}
	if len(accounts) == 0 {
		accounts = []string{""}
	}
	objects := []runtime.Object{role}
	for _, account := range accounts { // no controller puts aggregates together here
		objects = append(objects, binding(name, Registration{Account: account}))
	}
	return c.Apply(ctx, objects...)
}

// token makes a token for an account in the hub's namespace of a cluster.
func (c *Cluster) token(ctx context.Context, account string, lifetime time.Duration) (string, error) {
	seconds := int64(lifetime.Seconds())
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	var token string
	err := Eventually(ctx, 10*time.Second, func(ctx context.Context) error {
		answer, err := c.Kubernetes.CoreV1().ServiceAccounts(Namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
		if err == nil {
			token = answer.Status.Token
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("make a token for %s at %s: %w", account, c.Name(), err)
	}
	return token, nil
}

// kubeconfig is how to reach a cluster with a token.
func kubeconfig(c *Cluster, token string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["member"] = &clientcmdapi.Cluster{Server: c.Config.Host, CertificateAuthorityData: c.Config.CAData}
	config.AuthInfos["member"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["member"] = &clientcmdapi.Context{Cluster: "member", AuthInfo: "member"}
	config.CurrentContext = "member"
	return clientcmd.Write(*config)
}

// DeleteSecret removes a registration.
func (s *Scene) DeleteSecret(ctx context.Context, name string) error {
	err := s.Hub.Kubernetes.CoreV1().Secrets(Namespace).Delete(ctx, name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
