package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/fleetquota/fleetquota/hack/fleet/fleet"
)

func (c *cli) kubeconfigCommand() *cobra.Command {
	var user string
	var groups []string
	var path bool
	cmd := &cobra.Command{
		Use: "kubeconfig NAME", Short: "Print a kubeconfig for a cluster",
		Long: `Prints a kubeconfig for a cluster: that of its administrator, or with --user a
new one with a client certificate for that user. What the user may do is up to
the cluster's RBAC rules.`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: c.names,
		RunE: func(_ *cobra.Command, names []string) error {
			f, err := c.open()
			if err != nil {
				return err
			}
			cluster, err := f.Cluster(names[0])
			if err != nil {
				return err
			}
			text, err := kubeconfig(cluster, user, groups)
			if path {
				text = []byte(cluster.KubeconfigPath() + "\n")
			}
			if err != nil {
				return err
			}
			_, err = c.out.Write(text)
			return err
		},
	}
	cmd.Flags().StringVar(&user, "user", "", "name of the user (default the administrator)")
	cmd.Flags().StringSliceVar(&groups, "groups", nil, "groups of the user")
	cmd.Flags().BoolVar(&path, "path", false, "print the path of the administrator's file instead")
	cmd.MarkFlagsMutuallyExclusive("path", "user")
	return cmd
}

func kubeconfig(cluster *fleet.Cluster, user string, groups []string) ([]byte, error) {
	if user == "" {
		return os.ReadFile(cluster.KubeconfigPath())
	}
	return cluster.Kubeconfig(user, groups...)
}

func (c *cli) listCommand() *cobra.Command {
	return &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the clusters and what they do now",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := c.open()
			if err != nil {
				return err
			}
			return list(cmd.Context(), c.out, f)
		},
	}
}

func list(ctx context.Context, out io.Writer, f *fleet.Fleet) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NAME\tPROVIDER\tVERSION\tADDRESS\tSTATUS\tNATIVE-QUOTA")
	for _, cluster := range f.Clusters() {
		info, err := cluster.Info(ctx)
		if err != nil {
			return err
		}
		native := "no"
		if info.NativeQuota {
			native = "yes"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n",
			info.Name, info.Provider, info.Version, info.Address, info.Status, native)
	}
	return table.Flush()
}

// names completes the names of clusters in a shell.
func (c *cli) names(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	f, err := c.open()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, cluster := range f.Clusters() {
		names = append(names, cluster.Name())
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
