package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/deploy"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// leaveOptions are the flags of leave.
type leaveOptions struct {
	*shell

	force            bool
	memberContext    string // empty: the member is left as it is
	memberKubeconfig string // default the user's own kubeconfig
	hubNamespace     string
	hubContext       string

	name string
}

func newLeave(s *shell) *cobra.Command {
	o := &leaveOptions{shell: s}
	cmd := &cobra.Command{
		Use:   "leave NAME",
		Short: "Remove a member cluster from the hub",
		Long: `Removes the credentials of a member from the hub, and with --member-context also
the hub's account and roles from the member. ResourceQuotas in the member stay
as they are.

A member that holds a part of a limit is not removed: the hub could not get that
part back. Take it out of the quotas' clusterSelector first, and wait until the
hub has its grants back. With --force it is removed all the same, and what it
held stays reserved for it.`,
		Example:           `  kubectl fleetquota leave eu-1 --member-context kind-eu-1`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeMembers,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name = args[0]
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.force, "force", false, "remove a member that holds grants, too")
	f.StringVar(&o.memberContext, "member-context", "", "context of the member, to clean up there too")
	f.StringVar(&o.memberKubeconfig, "member-kubeconfig", "", "the kubeconfig file that --member-context is in (default: your own)")
	f.StringVar(&o.hubNamespace, "hub-namespace", deploy.Namespace, "the hub's namespace")
	f.StringVar(&o.hubContext, "hub-context", "", "context of the hub; the same as --context")
	completeFlag(cmd, "member-context", s.completeContexts)
	completeFlag(cmd, "hub-context", s.completeContexts)
	return cmd
}

// run removes a member: what can be refused is refused first, then the hub
// loses its credentials, then the member its account.
func (o *leaveOptions) run(ctx context.Context) error {
	if o.hubContext != "" {
		*o.flags.Context = o.hubContext
	}
	var member *target
	if o.memberContext != "" {
		var err error
		if member, err = o.target(o.memberKubeconfig, o.memberContext); err != nil {
			return err
		}
	}
	c, err := o.connect(member)
	if err != nil {
		return err
	}
	secret, err := o.registration(ctx, c)
	if err != nil {
		return err
	}
	if err := o.checkGrants(ctx, c); err != nil {
		return err
	}
	if err := o.removeSecret(ctx, c, secret); err != nil {
		return err
	}
	if member == nil {
		return o.say("The account of the hub stays in the cluster; --member-context removes it, too.")
	}
	return o.cleanUpMember(ctx, c)
}

// registration finds the Secret of the member, nil where there is none any
// more, and makes sure that the context is of the same cluster.
func (o *leaveOptions) registration(ctx context.Context, c *connections) (*corev1.Secret, error) {
	name := o.name
	m, err := c.hub.Members().Get(ctx, o.name, metav1.GetOptions{})
	switch {
	case noSuchAPI(err):
		return nil, errNoAPI
	case ignoreNotFound(err) != nil:
		return nil, hubError("read member "+o.name, err)
	case err == nil && m.Spec.SecretName == "":
		return nil, fmt.Errorf("member %s is the hub itself: start the hub without --include-hub", o.name)
	case err == nil:
		name = m.Spec.SecretName
		if err := o.checkIdentity(ctx, c, m); err != nil {
			return nil, err
		}
	}
	known := err == nil
	secret, err := c.hubCore.CoreV1().Secrets(o.hubNamespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err) && known:
		return nil, nil //nolint:nilnil // the member is leaving already
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("there is no member %s: see kubectl fleetquota clusters", o.name)
	case err != nil:
		return nil, fmt.Errorf("read the Secret of member %s: %w", o.name, err)
	case secret.Labels[memberLabel] != memberValue:
		return nil, fmt.Errorf("the Secret %s/%s is not one of fleetquota (it has no label %s): remove the cluster where that Secret comes from", o.hubNamespace, name, memberLabel)
	}
	return secret, nil
}

// checkIdentity keeps the account of another cluster from being removed.
func (o *leaveOptions) checkIdentity(ctx context.Context, c *connections, m *v1alpha1.FleetMember) error {
	if c.member == nil || m.Status.UID == "" {
		return nil
	}
	uid, err := clusterUID(ctx, c.member)
	if err != nil {
		return fmt.Errorf("member %s: %w", o.name, err)
	}
	if uid != m.Status.UID {
		return fmt.Errorf("the context %s is not of member %s (UID %s, the member has %s): use the context of the member", o.memberContext, o.name, uid, m.Status.UID)
	}
	return nil
}

// checkGrants refuses to lose grants, or says which are lost.
func (o *leaveOptions) checkGrants(ctx context.Context, c *connections) error {
	grants, err := c.hub.Grants(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return hubError("see what the member holds", err)
	}
	var held []string
	for i := range grants.Items {
		for _, row := range grants.Items[i].Spec.Members {
			if row.Cluster == o.name && (holds(row.Granted) || holds(row.Target)) {
				held = append(held, fmt.Sprintf("%s (%s)", keyOf(&grants.Items[i]), amountsText(row.Granted)))
			}
		}
	}
	switch {
	case len(held) == 0:
		return nil
	case !o.force:
		return fmt.Errorf("member %s holds grants of %s: take it out of their clusterSelector and wait until the hub has them back, or use --force", o.name, strings.Join(held, ", "))
	}
	for _, one := range held {
		o.warn("what member %s holds of %s stays reserved: the hub cannot get it back without the member", o.name, one)
	}
	return nil
}

// holds says whether a row is of anything: one of nothing only remembers.
func holds(list corev1.ResourceList) bool {
	for _, quantity := range list {
		if !quantity.IsZero() {
			return true
		}
	}
	return false
}

func amountsText(list corev1.ResourceList) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		quantity := list[name]
		all = append(all, string(name)+" "+quantity.String())
	}
	return orNone(strings.Join(all, ", "))
}

func (o *leaveOptions) removeSecret(ctx context.Context, c *connections, secret *corev1.Secret) error {
	if secret == nil {
		return o.say("The Secret of member %s is gone already.", o.name)
	}
	err := c.hubCore.CoreV1().Secrets(secret.Namespace).Delete(ctx, secret.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &secret.UID}})
	if err != nil {
		return fmt.Errorf("delete the Secret of member %s: %w", o.name, err)
	}
	return o.say("secret/%s deleted at the hub in namespace %s", secret.Name, secret.Namespace)
}

// cleanUpMember removes the hub's account, its bindings and the roles. It
// tries all of it. The namespace stays: it may hold something of others.
func (o *leaveOptions) cleanUpMember(ctx context.Context, c *connections) error {
	roles, err := deploy.MemberRoles()
	if err != nil {
		return err
	}
	rbac := c.member.RbacV1()
	var all []error
	for _, role := range roles {
		all = append(all,
			o.removed("clusterrolebinding."+rbacv1.GroupName+"/"+role.Name, rbac.ClusterRoleBindings().Delete(ctx, role.Name, metav1.DeleteOptions{})),
			o.removed("clusterrole."+rbacv1.GroupName+"/"+role.Name, rbac.ClusterRoles().Delete(ctx, role.Name, metav1.DeleteOptions{})),
		)
	}
	all = append(all,
		o.removed("serviceaccount/"+memberAccount, c.member.CoreV1().ServiceAccounts(deploy.Namespace).Delete(ctx, memberAccount, metav1.DeleteOptions{})),
		o.say("namespace/%s kept in member %s", deploy.Namespace, o.name),
	)
	return errors.Join(all...)
}

// removed says that an object is deleted; nothing where there was none.
func (o *leaveOptions) removed(id string, err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("delete %s in member %s: %w", id, o.name, err)
	default:
		return o.say("%s deleted in member %s", id, o.name)
	}
}

func (o *leaveOptions) say(format string, args ...any) error {
	_, err := fmt.Fprintf(o.Out, format+"\n", args...)
	return err
}
