package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fleetquota/fleetquota/hack/fleet/fleet"
)

const about = `Runs a handful of real Kubernetes clusters on this machine, for tests and demos.

Each cluster has its own etcd, kube-apiserver, certificate authority, ports and
data, so each can be stopped, frozen or wiped by itself. Nothing is needed but
Go: the programs are built once from their pinned sources, or taken from the
folder that KUBEBUILDER_ASSETS names. Clusters stay up until "fleet down".`

const examples = `  fleet up                                      # hub, eu-1, us-1 and ap-1
  fleet up --clusters hub,a,b --native-quota a  # a also runs Kubernetes' quota controller
  fleet add old --kubernetes-version 1.34
  kubectl --kubeconfig "$(fleet kubeconfig --path a)" get namespaces
  fleet freeze a && fleet thaw a
  fleet down`

const nativeQuota = "native-quota" // a flag

// cli holds the flags that all commands share.
type cli struct {
	options  fleet.Options
	provider string
	out      io.Writer
}

func newCommand(out, errOut io.Writer) *cobra.Command {
	c := &cli{out: out, options: fleet.Options{Out: errOut}}
	root := &cobra.Command{
		Use: "fleet", Short: "Real Kubernetes clusters for tests and demos", Long: about, Example: examples,
		SilenceErrors: true, SilenceUsage: true,
	}
	root.SetOut(out)
	root.SetErr(errOut)
	flags := root.PersistentFlags()
	flags.StringVar(&c.provider, "provider", string(fleet.Local), "what new clusters are made of: local (processes) or kind (Docker)")
	flags.StringVar(&c.options.Dir, "dir", "", "folder of the clusters (default $FLEET_DIR, else bin/fleet in the repository)")
	flags.StringVar(&c.options.Version, "kubernetes-version", "",
		"version of new clusters, as in 1.36 (default that of $KUBEBUILDER_ASSETS, else 1.37)")
	root.AddCommand(
		c.buildCommand(), c.upCommand(), c.addCommand(), c.downCommand(),
		c.actionCommand("freeze", "Let clusters hang: connections stay open, nothing answers", (*fleet.Cluster).Freeze),
		c.actionCommand("thaw", "Let frozen clusters go on", (*fleet.Cluster).Thaw),
		c.actionCommand("kill", "End clusters at once, as a loss of power would; their data stays", (*fleet.Cluster).Kill),
		c.actionCommand("restart", "Start clusters again, with the same data, ports and certificates", (*fleet.Cluster).Restart),
		c.kubeconfigCommand(), c.listCommand(),
	)
	return root
}

func (c *cli) open() (*fleet.Fleet, error) {
	options := c.options
	options.Provider = fleet.Provider(c.provider)
	return fleet.New(options)
}

func (c *cli) buildCommand() *cobra.Command {
	return &cobra.Command{
		Use: "build", Short: "Build etcd, kube-apiserver and kube-controller-manager if they are missing",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := c.open()
			if err != nil {
				return err
			}
			return f.Build(cmd.Context())
		},
	}
}

func (c *cli) upCommand() *cobra.Command {
	var names, native []string
	cmd := &cobra.Command{
		Use: "up", Short: "Start clusters and wait until they are ready",
		Long: `Starts clusters and waits until they are ready; builds what is missing first.
Clusters that are up already stay as they are, stopped ones start again with
their data, and what a crashed "fleet up" has left is ended first. If a cluster
fails, or on Ctrl-C, those that were started by this command are stopped.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			f, err := c.open()
			if err != nil {
				return err
			}
			specs, err := specsOf(names, native)
			if err != nil {
				return err
			}
			if !cmd.Flags().Changed(nativeQuota) {
				err = keepNative(cmd.Context(), f, specs)
			}
			if err != nil {
				return err
			}
			return f.Up(cmd.Context(), specs...)
		},
	}
	cmd.Flags().StringSliceVar(&names, "clusters", []string{"hub", "eu-1", "us-1", "ap-1"}, "names of the clusters")
	nativeFlag(cmd, &native)
	return cmd
}

func nativeFlag(cmd *cobra.Command, native *[]string) {
	cmd.Flags().StringSliceVar(native, nativeQuota, nil, "clusters that also run Kubernetes' own quota controller")
}

func (c *cli) addCommand() *cobra.Command {
	var native []string
	cmd := &cobra.Command{
		Use: "add NAME...", Short: "Start more clusters",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			f, err := c.open()
			if err != nil {
				return err
			}
			for _, name := range names {
				if _, err := f.Cluster(name); err == nil {
					return fmt.Errorf("cluster %s exists already: start it with restart, or take it down", name)
				}
			}
			specs, err := specsOf(names, native)
			if err != nil {
				return err
			}
			return f.Up(cmd.Context(), specs...)
		},
	}
	nativeFlag(cmd, &native)
	return cmd
}

func specsOf(names, native []string) ([]fleet.Spec, error) {
	for _, name := range native {
		if !slices.Contains(names, name) {
			return nil, fmt.Errorf("--%s names %q, which is none of the clusters", nativeQuota, name)
		}
	}
	specs := make([]fleet.Spec, 0, len(names))
	for _, name := range names {
		specs = append(specs, fleet.Spec{Name: name, NativeQuota: slices.Contains(native, name)})
	}
	return specs, nil
}

// keepNative leaves the native quota controllers of existing clusters as they
// are.
func keepNative(ctx context.Context, f *fleet.Fleet, specs []fleet.Spec) error {
	for i := range specs {
		cluster, err := f.Cluster(specs[i].Name)
		if err != nil {
			continue // a new one
		}
		info, err := cluster.Info(ctx)
		if err != nil {
			return err
		}
		specs[i].NativeQuota = info.NativeQuota
	}
	return nil
}

func (c *cli) downCommand() *cobra.Command {
	return &cobra.Command{
		Use: "down [NAME...]", Short: "Stop clusters and remove their data; without names, all of them",
		ValidArgsFunction: c.names,
		RunE: func(cmd *cobra.Command, names []string) error {
			f, err := c.open()
			if err != nil {
				return err
			}
			return f.Down(cmd.Context(), names...)
		},
	}
}

// actionCommand does the same to each of the named clusters, in turn.
func (c *cli) actionCommand(name, short string, act func(*fleet.Cluster, context.Context) error) *cobra.Command {
	return &cobra.Command{
		Use: name + " NAME...", Short: short,
		Args: cobra.MinimumNArgs(1), ValidArgsFunction: c.names,
		RunE: func(cmd *cobra.Command, names []string) error {
			f, err := c.open()
			if err != nil {
				return err
			}
			for _, name := range names {
				cluster, err := f.Cluster(name)
				if err != nil {
					return err
				}
				if err := act(cluster, cmd.Context()); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
