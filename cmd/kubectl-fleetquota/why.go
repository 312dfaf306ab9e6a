package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fleetquota/fleetquota/federation"
)

func newWhy(s *shell) *cobra.Command {
	return &cobra.Command{
		Use:   "why NAMESPACE/NAME RESOURCE",
		Short: "Explain who holds how much of a global limit, and what blocks a change",
		Long: `Explains in plain words how the limit of one resource is divided: what each
member uses and holds, who waits for whom, and what keeps the limit from being
enforced or a share from being raised.

LIMIT is what the member's own quota allows. GRANTED is what counts against the
global limit: more than LIMIT, until the member has confirmed a lower one and use
there has fallen. PLANNED is what a member shall have and does not have yet.`,
		Example: `  kubectl fleetquota why team-a/compute pods
  kubectl fleetquota why compute cpu -n team-a`,
		Args: cobra.ExactArgs(2),
		ValidArgsFunction: func(cmd *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) == 1 {
				return s.completeResources(cmd.Context(), args[0])
			}
			return s.completeQuotaPaths(cmd, args, begun)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.why(cmd.Context(), args[0], corev1.ResourceName(args[1]))
		},
	}
}

func (s *shell) why(ctx context.Context, arg string, name corev1.ResourceName) error {
	namespace, quotaName, err := s.quotaName(arg)
	if err != nil {
		return err
	}
	hub, err := s.hub()
	if err != nil {
		return err
	}
	found, err := oneQuota(ctx, hub, namespace, quotaName)
	if err != nil {
		return err
	}
	grant, err := hub.Grants(namespace).Get(ctx, quotaName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		grant = nil
	case err != nil:
		return hubError(fmt.Sprintf("get the grants of %s/%s", namespace, quotaName), err)
	}
	e, err := federation.Explain(found.items[0], grant, name)
	if err != nil {
		return err
	}
	d := &description{}
	d.explain(&e)
	_, err = fmt.Fprint(s.Out, d.text.String())
	return err
}

func (d *description) explain(e *federation.Explanation) {
	fields := [][]string{{"Resource:", string(e.Resource)}, {"Limit:", e.Hard.String()}, {"Used:", orUnknown(amountText(e.Used))}}
	if e.Granted != nil {
		fields = append(fields, []string{"Granted:", e.Granted.String()}, []string{"Free:", e.Free.String()})
	}
	if e.Record != nil {
		fields = append(fields, []string{"On record:", e.Record.String() + " (goes down to the limit as members give back)"})
	}
	d.fields(fields...)
	rows := make([][]string, 0, len(e.Holdings))
	for i := range e.Holdings {
		h := &e.Holdings[i]
		rows = append(rows, []string{
			h.Member, orUnknown(string(h.Phase)), orUnknown(amountText(h.Used)),
			orNone(amountText(h.Limit)), orNone(amountText(h.Granted)), orNone(amountText(h.Planned)), h.Why,
		})
	}
	d.table("Members", []string{"Member", "Phase", "Used", "Limit", "Granted", "Planned", "Why"}, rows)
	for _, line := range e.Stands {
		d.line("%s", line)
	}
}

// amountText is a quantity, empty if there is none.
func amountText(q *resource.Quantity) string {
	if q == nil {
		return ""
	}
	return q.String()
}

// completeResources completes the resources that a global quota limits.
func (s *shell) completeResources(ctx context.Context, arg string) ([]string, cobra.ShellCompDirective) {
	namespace, name, err := s.quotaName(arg)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	hub, err := s.hub()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	found, err := oneQuota(ctx, hub, namespace, name)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for resourceName := range federation.Governed(found.items[0].Spec.Hard) {
		names = append(names, string(resourceName))
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
