package main

import (
	"cmp"
	"context"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/federation/v1alpha1/client"
)

// clustersOptions are the flags of clusters.
type clustersOptions struct {
	*shell

	selector  string
	output    string
	watch     bool
	noHeaders bool
}

func newClusters(s *shell) *cobra.Command {
	o := &clustersOptions{shell: s}
	cmd := &cobra.Command{
		Use:     "clusters",
		Aliases: []string{"members"},
		Short:   "Show the member clusters and whether the hub reaches them",
		Long: `Shows the member clusters. LOCAL says who keeps the status of the member's own
quotas: Always the hub, Never the hub, or Auto: the hub where nobody else does.
LAST-SEEN is live while the member answers. EXPIRES (-o wide) is when the hub's
credentials for it run out; run join again before that.`,
		Example: `  # All members, with the reason why one is not ready
  kubectl fleetquota clusters -o wide

  # Those of one region, as they change
  kubectl fleetquota clusters -l topology.kubernetes.io/region=eu -w`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", o.output, "", formatWide, formatJSON, formatYAML, formatName); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.selector, "selector", "l", "", "label selector of members")
	f.StringVarP(&o.output, "output", "o", "", "wide, json, yaml or name")
	f.BoolVarP(&o.watch, "watch", "w", false, "after that, print what changes")
	f.BoolVar(&o.noHeaders, "no-headers", false, "print no column heads")
	completeWords(cmd, "output", formatWide, formatJSON, formatYAML, formatName)
	return cmd
}

func (o *clustersOptions) run(ctx context.Context) error {
	hub, err := o.hub()
	if err != nil {
		return err
	}
	show := &view[*v1alpha1.FleetMember]{
		shell: o.shell, format: o.output, kind: "FleetMember",
		empty:   "No member clusters found. Register one with: kubectl fleetquota join CONTEXT",
		columns: memberColumns(),
		rows:    o.rows,
		keep:    func(*v1alpha1.FleetMember) bool { return true },
		sort: func(members []*v1alpha1.FleetMember) {
			slices.SortFunc(members, func(a, b *v1alpha1.FleetMember) int { return cmp.Compare(a.Name, b.Name) })
		},
	}
	if err := show.complete(printers.PrintOptions{NoHeaders: o.noHeaders}); err != nil {
		return err
	}
	members := o.source(hub)
	if o.watch {
		return follow(ctx, members, show)
	}
	found, err := members.list(ctx)
	if err != nil {
		return err
	}
	return show.all(found.items)
}

func (o *clustersOptions) source(hub *client.Client) source[*v1alpha1.FleetMember] {
	options := metav1.ListOptions{LabelSelector: o.selector}
	return source[*v1alpha1.FleetMember]{
		list: func(ctx context.Context) (listing[*v1alpha1.FleetMember], error) {
			list, err := hub.Members().List(ctx, options)
			if err != nil {
				return listing[*v1alpha1.FleetMember]{}, hubError("list member clusters", err)
			}
			return listing[*v1alpha1.FleetMember]{items: pointers(list.Items), version: list.ResourceVersion}, nil
		},
		watch: func(ctx context.Context, version string) (watch.Interface, error) {
			from := options
			from.ResourceVersion = version
			watcher, err := hub.Members().Watch(ctx, from)
			return watcher, hubError("watch member clusters", err)
		},
	}
}

func memberColumns() []column {
	return []column{
		{name: "NAME"},
		{name: "READY"},
		{name: "VERSION"},
		{name: "LOCAL"},
		{name: "LAST-SEEN", moving: true},
		{name: columnAge, moving: true},
		{name: "PHASE", wide: true},
		{name: "UID", wide: true},
		{name: "SECRET", wide: true},
		{name: "REASON", wide: true},
		{name: "EXPIRES", wide: true, moving: true},
	}
}

func (o *clustersOptions) rows(members []*v1alpha1.FleetMember) []row {
	rows := make([]row, 0, len(members))
	for _, member := range members {
		status := &member.Status
		reason := ""
		if ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady); ready != nil {
			reason = ready.Reason
		}
		rows = append(rows, row{key: keyOf(member), cells: []string{
			member.Name,
			conditionStatus(status.Conditions, v1alpha1.ConditionReady),
			orUnknown(status.Version),
			orUnknown(string(status.LocalStatus)),
			o.lastSeen(status),
			age(o.now(), member.CreationTimestamp),
			orUnknown(string(status.Phase)),
			orUnknown(string(status.UID)),
			orNone(member.Spec.SecretName),
			orUnknown(reason),
			o.expires(status),
		}})
	}
	return rows
}

// lastSeen is how long ago a member has answered.
func (o *clustersOptions) lastSeen(status *v1alpha1.FleetMemberStatus) string {
	switch {
	case status.LastContactTime != nil:
		return age(o.now(), *status.LastContactTime)
	case status.Phase == v1alpha1.Live || status.Phase == v1alpha1.Partial:
		return "live"
	default:
		return unknown
	}
}

// expires is how long the hub's credentials are good for.
func (o *clustersOptions) expires(status *v1alpha1.FleetMemberStatus) string {
	if status.CredentialExpirationTime == nil {
		return none
	}
	left := status.CredentialExpirationTime.Sub(o.now())
	if left <= 0 {
		return "expired"
	}
	return "in " + duration.HumanDuration(left)
}
