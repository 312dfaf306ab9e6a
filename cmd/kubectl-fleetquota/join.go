package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetquota/fleetquota/deploy"
)

// What the hub may do in a member.
const (
	roleObserve    = "observe"
	roleDistribute = "distribute"
)

// How far a command goes.
const (
	dryRunNone   = "none"
	dryRunClient = "client" // asks no cluster
	dryRunServer = "server" // asks them, and changes nothing
)

const (
	defaultTokenDuration = 30 * 24 * time.Hour
	minTokenDuration     = 10 * time.Minute // of Kubernetes
)

// joinOptions are the flags of join.
type joinOptions struct {
	*shell

	name             string // default the name of the context
	role             string // default observe
	secrets          bool
	localStatus      bool
	createNamespaces bool   // only with distribute
	memberKubeconfig string // default the user's own kubeconfig
	memberServer     string // default the server of the context
	tokenDuration    time.Duration
	dryRun           string // default none
	output           string
	hubNamespace     string
	hubContext       string
	labels           map[string]string

	endpoint *api.Cluster // how the hub will reach the member
}

func newJoin(s *shell) *cobra.Command {
	o := &joinOptions{shell: s}
	cmd := &cobra.Command{
		Use:   "join CONTEXT",
		Short: "Register a cluster at the hub",
		Long: `Registers the cluster of a context of your kubeconfig at the hub, which is the
cluster of the current context, of --context or of --hub-context.

In the member it makes the account fleetquota-hub with the roles that are asked
for, none of which holds a wildcard: observe only reads, and reads no Secrets
unless --secrets is given. You need the rights of a cluster admin there. At the
hub it makes a Secret with the server, the CA and a token of that account. The
token is never printed.

Run it again to rotate the token, or to change the roles: those that are not
asked for are withdrawn, while labels that are not named stay. Clusters limit how long a token may live: join says until when.`,
		Example: `  # Register the cluster of the context kind-eu-1 as eu-1, to be counted
  kubectl fleetquota join kind-eu-1 --name eu-1 --labels topology.kubernetes.io/region=eu

  # See what would be done, without asking any cluster
  kubectl fleetquota join kind-eu-1 --name eu-1 --dry-run=client -o yaml

  # Let the hub write shares of global quotas there
  kubectl fleetquota join kind-eu-1 --name eu-1 --role distribute`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeContexts,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.run(cmd.Context(), args[0])
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *joinOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.name, "name", "", "name of the member (default: the name of the context)")
	f.StringVar(&o.role, "role", roleObserve, "what the hub may do: observe, or distribute (also write its own ResourceQuotas)")
	f.BoolVar(&o.secrets, "secrets", false, "let the hub count Secrets; Kubernetes lets it read them, too, then")
	f.BoolVar(&o.localStatus, "local-status", false, "let the hub keep the status of the member's own ResourceQuotas")
	f.BoolVar(&o.createNamespaces, "create-namespaces", false, "with --role distribute: let the hub create the namespaces of quotas with createNamespaces")
	f.StringVar(&o.memberKubeconfig, "member-kubeconfig", "", "the kubeconfig file that CONTEXT is in (default: your own)")
	f.StringVar(&o.memberServer, "member-server", "", "the URL at which the hub reaches the member, where it is not the one of the context")
	f.DurationVar(&o.tokenDuration, "token-duration", defaultTokenDuration, "how long the token shall live; the cluster may grant less")
	f.StringVar(&o.dryRun, "dry-run", dryRunNone, "none, client (ask no cluster) or server (ask, change nothing)")
	f.Lookup("dry-run").NoOptDefVal = dryRunClient
	f.StringVarP(&o.output, "output", "o", "", "print the objects, without the token: yaml or json")
	f.StringVar(&o.hubNamespace, "hub-namespace", deploy.Namespace, "the hub's namespace")
	f.StringVar(&o.hubContext, "hub-context", "", "context of the hub; the same as --context")
	f.StringToStringVar(&o.labels, "labels", nil, "labels of the member, for the clusterSelector of quotas (k=v,...)")
	completeWords(cmd, "role", roleObserve, roleDistribute)
	completeWords(cmd, "dry-run", dryRunNone, dryRunClient, dryRunServer)
	completeWords(cmd, "output", formatJSON, formatYAML)
	completeFlag(cmd, "hub-context", o.completeContexts)
}

// run registers a member: what can be refused is refused first, the member
// gets its account, and the hub the credentials, once they are seen to work.
func (o *joinOptions) run(ctx context.Context, contextName string) error {
	found, err := o.complete(contextName)
	if err != nil {
		return err
	}
	objects, err := o.memberObjects()
	if err != nil {
		return err
	}
	if o.dryRun == dryRunClient {
		return o.plan(objects)
	}
	c, err := o.connect(found)
	if err != nil {
		return err
	}
	if err := o.checkHub(ctx, c); err != nil {
		return err
	}
	if err := o.setUpMember(ctx, c, objects); err != nil {
		return err
	}
	if o.dryRun == dryRunServer {
		return o.finish(ctx, c, tokenPlaceholder, objects)
	}
	token, err := o.issueToken(ctx, c)
	if err != nil {
		return err
	}
	return o.finish(ctx, c, token, objects)
}

// complete checks the flags and fills in what follows from them.
func (o *joinOptions) complete(contextName string) (*target, error) {
	for _, err := range []error{
		metav1validation.ValidateLabels(o.labels, field.NewPath("--labels")).ToAggregate(),
		oneOf("role", o.role, roleObserve, roleDistribute),
		oneOf("dry-run", o.dryRun, dryRunNone, dryRunClient, dryRunServer),
		oneOf("output", o.output, "", formatJSON, formatYAML),
	} {
		if err != nil {
			return nil, err
		}
	}
	if o.tokenDuration < minTokenDuration {
		return nil, fmt.Errorf("--token-duration %s is too short: use %s or more", o.tokenDuration, minTokenDuration)
	}
	if o.createNamespaces && o.role != roleDistribute {
		return nil, errors.New("--create-namespaces is of use only with --role distribute")
	}
	if o.hubContext != "" {
		*o.flags.Context = o.hubContext
	}
	if o.name == "" {
		o.name = contextName
	}
	if problems := validation.IsDNS1123Subdomain(o.name); len(problems) > 0 {
		return nil, fmt.Errorf("%q cannot be the name of a member: use --name NAME with lower-case letters, digits, '-' and '.'", o.name)
	}
	found, err := o.target(o.memberKubeconfig, contextName)
	if err != nil {
		return nil, err
	}
	if o.endpoint, err = found.endpoint(o.memberServer); err != nil {
		return nil, fmt.Errorf("context %q: %w", contextName, err)
	}
	return found, nil
}

// plan says what would be done.
func (o *joinOptions) plan(objects []memberObject) error {
	if o.output != "" {
		return o.printObjects(objects)
	}
	for _, object := range objects {
		if err := o.say("%s created in member %s", object.id(), o.name); err != nil {
			return err
		}
	}
	return o.say("secret/%s created at the hub in namespace %s", o.name, o.hubNamespace)
}

// checkHub refuses what the hub would not serve, before anything is changed.
func (o *joinOptions) checkHub(ctx context.Context, c *connections) error {
	uid, err := clusterUID(ctx, c.member)
	if err != nil {
		return fmt.Errorf("member %s: %w", o.name, err)
	}
	members, err := c.hub.Members().List(ctx, metav1.ListOptions{})
	if err != nil {
		return hubError("list member clusters", err)
	}
	for i := range members.Items {
		m := &members.Items[i]
		switch {
		case m.Name != o.name && m.Status.UID == uid:
			return fmt.Errorf("this cluster is already the member %s (its kube-system has the same UID %s): use --name %s to rotate its token, or let it leave first", m.Name, uid, m.Name)
		case m.Name == o.name && m.Spec.SecretName != o.name:
			return fmt.Errorf("member %s is registered by %s: choose another --name, or remove that first", o.name, registeredBy(m.Spec.SecretName))
		case m.Name == o.name && m.Status.UID != "" && m.Status.UID != uid:
			return fmt.Errorf("member %s is another cluster (UID %s, this one has %s): choose another --name, or let it leave first", o.name, m.Status.UID, uid)
		}
	}
	// What the hub would refuse of the Secret, it shall refuse now.
	_, err = o.store(ctx, c, tokenPlaceholder, []string{metav1.DryRunAll})
	return err
}

func registeredBy(secret string) string {
	if secret == "" {
		return "the hub itself (--include-hub)"
	}
	return "the Secret " + secret
}

// issueToken asks the member for a token of the hub's account, and says until
// when it is good.
func (o *joinOptions) issueToken(ctx context.Context, c *connections) (string, error) {
	seconds := int64(o.tokenDuration / time.Second)
	answer, err := c.member.CoreV1().ServiceAccounts(deploy.Namespace).CreateToken(ctx, memberAccount,
		&authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}, metav1.CreateOptions{})
	if err != nil {
		return "", fmt.Errorf("ask member %s for a token: %w", o.name, err)
	}
	expires := answer.Status.ExpirationTimestamp
	granted := expires.Sub(o.now()).Round(time.Minute)
	if err := o.say("token of serviceaccount/%s issued by member %s, it expires at %s (in %s)",
		memberAccount, o.name, expires.UTC().Format(time.RFC3339), duration.HumanDuration(granted)); err != nil {
		return "", err
	}
	if granted < o.tokenDuration-minTokenDuration {
		o.warn("asked for a token of %s, the cluster grants no more than %s", duration.HumanDuration(o.tokenDuration), duration.HumanDuration(granted))
	}
	return answer.Status.Token, o.tryToken(ctx, answer.Status.Token)
}

// finish stores the credentials at the hub and says what to look at next.
func (o *joinOptions) finish(ctx context.Context, c *connections, token string, objects []memberObject) error {
	done, err := o.store(ctx, c, token, o.dryRunOption())
	if err != nil {
		return err
	}
	if o.output != "" {
		return o.printObjects(objects)
	}
	if err := o.say("secret/%s %s at the hub in namespace %s", o.name, done, o.hubNamespace); err != nil {
		return err
	}
	if loopback(o.endpoint.Server) {
		o.warn("the hub will look for member %s at %s: only a hub on this machine finds it there; else use --member-server", o.name, o.endpoint.Server)
	}
	if o.dryRun == dryRunServer {
		return nil
	}
	return errors.Join(
		o.say("Run the same command again before the token expires, to rotate it."),
		o.say("See whether the hub reaches the member: kubectl fleetquota clusters"),
	)
}

// dryRunOption is what requests that change something carry.
func (o *joinOptions) dryRunOption() []string {
	if o.dryRun == dryRunServer {
		return []string{metav1.DryRunAll}
	}
	return nil
}

// say prints a line about what was done, unless objects are printed.
func (o *joinOptions) say(format string, args ...any) error {
	if o.output != "" {
		return nil
	}
	suffix := map[string]string{dryRunNone: "", dryRunClient: " (dry run)", dryRunServer: " (server dry run)"}[o.dryRun]
	_, err := fmt.Fprintf(o.Out, format+suffix+"\n", args...)
	return err
}

// warn prints a line that is no result.
func (s *shell) warn(format string, args ...any) {
	fmt.Fprintf(s.ErrOut, "warning: "+format+"\n", args...)
}
