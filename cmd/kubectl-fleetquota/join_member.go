package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/fleetquota/fleetquota/deploy"
)

// memberAccount is the hub's account in every member.
const memberAccount = "fleetquota-hub"

// fieldManager owns what this program applies.
const fieldManager = "kubectl-fleetquota"

// A new token is tried until the member has taken notice of its roles.
const (
	tokenPatience = 10 * time.Second
	tryInterval   = 100 * time.Millisecond
)

// memberObject is an object to apply in the member.
type memberObject struct {
	*unstructured.Unstructured
}

// id is the object as in kind/name.
func (m memberObject) id() string {
	gvk := m.GroupVersionKind()
	id := strings.ToLower(gvk.Kind)
	if gvk.Group != "" {
		id += "." + gvk.Group
	}
	return id + "/" + m.GetName()
}

// grantedRoles are the roles that the flags ask for.
func (o *joinOptions) grantedRoles() []string {
	roles := []string{deploy.RoleObserve, deploy.RoleObserveBase}
	for _, role := range o.optionalRoles() {
		if role.asked {
			roles = append(roles, role.name)
		}
	}
	return roles
}

// optionalRole is a role that a member grants only where it is asked for.
type optionalRole struct {
	name  string
	asked bool
}

func (o *joinOptions) optionalRoles() []optionalRole {
	return []optionalRole{
		{deploy.RoleObserveSecrets, o.secrets},
		{deploy.RoleLocalStatus, o.localStatus},
		{deploy.RoleDistribute, o.role == roleDistribute},
		{deploy.RoleCreateNamespaces, o.createNamespaces},
	}
}

// memberObjects are what the member needs, in the order of application.
func (o *joinOptions) memberObjects() ([]memberObject, error) {
	roles, err := deploy.MemberRoles()
	if err != nil {
		return nil, err
	}
	typed := []runtime.Object{
		&corev1.Namespace{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
			ObjectMeta: metav1.ObjectMeta{Name: deploy.Namespace, Labels: ourLabels()},
		},
		&corev1.ServiceAccount{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
			ObjectMeta: metav1.ObjectMeta{Name: memberAccount, Namespace: deploy.Namespace, Labels: ourLabels()},
		},
	}
	for _, name := range o.grantedRoles() {
		i := slices.IndexFunc(roles, func(role *rbacv1.ClusterRole) bool { return role.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no role %s in this program", name)
		}
		typed = append(typed, roles[i], binding(name))
	}
	objects := make([]memberObject, 0, len(typed))
	for _, object := range typed {
		plain, err := plainObject(object)
		if err != nil {
			return nil, err
		}
		objects = append(objects, memberObject{plain})
	}
	return objects, nil
}

// binding binds the hub's account to a role, under the role's own name.
func binding(role string) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		TypeMeta:   metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
		ObjectMeta: metav1.ObjectMeta{Name: role, Labels: ourLabels()},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: memberAccount, Namespace: deploy.Namespace}},
	}
}

func ourLabels() map[string]string {
	return map[string]string{"app.kubernetes.io/name": "fleetquota", "app.kubernetes.io/part-of": "fleetquota"}
}

// plainObject is an object without the fields that nobody has set: applying
// those would own them.
func plainObject(object runtime.Object) (*unstructured.Unstructured, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("convert a %T: %w", object, err)
	}
	for _, field := range []string{"rules", "spec", "status"} {
		if value, found := content[field]; found && isEmpty(value) {
			delete(content, field)
		}
	}
	unstructured.RemoveNestedField(content, "metadata", "creationTimestamp")
	return &unstructured.Unstructured{Object: content}, nil
}

func isEmpty(value any) bool {
	fields, ok := value.(map[string]any)
	return value == nil || (ok && len(fields) == 0)
}

// setUpMember makes the hub's account with the roles that are asked for, and
// takes away those that are not asked for any more.
func (o *joinOptions) setUpMember(ctx context.Context, c *connections, objects []memberObject) error {
	for _, object := range objects {
		done, err := o.apply(ctx, c, object)
		if err != nil {
			return fmt.Errorf("apply %s in member %s: %w", object.id(), o.name, err)
		}
		if err := o.say("%s %s in member %s", object.id(), done, o.name); err != nil {
			return err
		}
	}
	for _, role := range o.optionalRoles() {
		if role.asked {
			continue
		}
		if err := o.withdraw(ctx, c, role.name); err != nil {
			return fmt.Errorf("withdraw the role %s in member %s: %w", role.name, o.name, err)
		}
	}
	return nil
}

// apply applies one object and says what that changed.
func (o *joinOptions) apply(ctx context.Context, c *connections, object memberObject) (string, error) {
	resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	objects := c.objects.Resource(resource).Namespace(object.GetNamespace())
	before, err := objects.Get(ctx, object.GetName(), metav1.GetOptions{})
	if ignoreNotFound(err) != nil {
		return "", err
	}
	absent := apierrors.IsNotFound(err)
	after, err := objects.Apply(ctx, object.GetName(), object.Unstructured,
		metav1.ApplyOptions{FieldManager: fieldManager, DryRun: o.dryRunOption()})
	inNewNamespace := apierrors.IsNotFound(err) && o.dryRun == dryRunServer // which is made in earnest only
	switch {
	case apierrors.IsConflict(err):
		return "", fmt.Errorf("somebody else keeps it, with other contents: remove it, or change it there: %w", err)
	case err != nil && !inNewNamespace:
		return "", err
	case absent:
		return "created", nil
	case before.GetResourceVersion() == after.GetResourceVersion():
		return "unchanged", nil
	default:
		return "configured", nil
	}
}

// withdraw removes the binding of a role that an earlier join has made.
func (o *joinOptions) withdraw(ctx context.Context, c *connections, role string) error {
	bindings := c.member.RbacV1().ClusterRoleBindings()
	_, err := bindings.Get(ctx, role, metav1.GetOptions{})
	if err != nil {
		return ignoreNotFound(err)
	}
	if err := bindings.Delete(ctx, role, metav1.DeleteOptions{DryRun: o.dryRunOption()}); err != nil {
		return ignoreNotFound(err)
	}
	return o.say("clusterrolebinding.%s/%s deleted in member %s", rbacv1.GroupName, role, o.name)
}

// tryToken makes sure that the hub will be let in, so that working credentials
// are never replaced by others. At another address it cannot be tried here.
func (o *joinOptions) tryToken(ctx context.Context, token string) error {
	if o.memberServer != "" {
		return nil
	}
	data, err := kubeconfig(o.name, o.endpoint, token)
	if err != nil {
		return err
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		return errors.New("read the kubeconfig of the member") // the cause could hold the token
	}
	config.Timeout = memberTimeout
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to member %s: %w", o.name, err)
	}
	var last error
	err = wait.PollUntilContextTimeout(ctx, tryInterval, o.patience, true, func(ctx context.Context) (bool, error) {
		_, last = clusterUID(ctx, core)
		if apierrors.IsForbidden(last) || apierrors.IsUnauthorized(last) {
			return false, nil
		}
		return last == nil, last
	})
	if err != nil {
		return fmt.Errorf("the new token does not open member %s, nothing was stored at the hub: %w", o.name, cmp.Or(last, err))
	}
	return nil
}
