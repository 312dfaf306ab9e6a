package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/metrics/legacyregistry"

	"github.com/fleetquota/fleetquota/controller"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// version is set at build time.
var version = "dev"

// options are the flags.
type options struct {
	kubeconfig  string
	context     string
	leaderElect bool
	metrics     string
	health      string
	localStatus string
	logging     *logsapi.LoggingConfiguration

	controller controller.Options
}

func newCommand() *cobra.Command {
	o := &options{logging: logsapi.NewLoggingConfiguration()}
	cmd := &cobra.Command{
		Use:   "fleetquota-hub",
		Short: "Sum what the member clusters of a fleet use, and keep the status of every quota",
		Long: `fleetquota-hub watches every member cluster that is registered by a labelled Secret, counts what each uses as
Kubernetes does, sums it per namespace, and writes the status of FleetQuotas on the hub and of ResourceQuotas in the
members that have no quota controller of their own.`,
		Args:          cobra.NoArgs,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: false,
		RunE: func(cmd *cobra.Command, _ []string) error {
			gates := featuregate.NewFeatureGate()
			if err := logsapi.AddFeatureGates(gates); err != nil {
				return fmt.Errorf("set up logging: %w", err)
			}
			if err := logsapi.ValidateAndApply(o.logging, gates); err != nil {
				return fmt.Errorf("set up logging: %w", err)
			}
			defer logs.FlushLogs()
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			return o.run(ctx)
		},
	}
	cmd.SetGlobalNormalizationFunc(cliflag.WordSepNormalizeFunc)
	o.addFlags(cmd)
	return cmd
}

func (o *options) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig of the hub's API server; empty: the cluster that this runs in, or $KUBECONFIG")
	f.StringVar(&o.context, "context", "", "context of the kubeconfig; empty: the current one")
	f.StringVar(&o.controller.Namespace, "namespace", "fleetquota-system", "namespace of the Secrets that register members, and of the lease")
	f.BoolVar(&o.leaderElect, "leader-elect", true, "run only while holding the lease, so that a standby can take over")
	f.StringVar(&o.metrics, "metrics-bind-address", ":8080", "address of /metrics; 0 turns it off")
	f.StringVar(&o.health, "health-probe-bind-address", ":8081", "address of /livez and /readyz; 0 turns it off")
	f.StringVar(&o.localStatus, "local-status", string(v1alpha1.LocalAuto),
		"who keeps the status of local quotas in members whose Secret does not say: Always (the hub), Never, or Auto (the hub takes over the quotas that nobody answers for)")
	f.DurationVar(&o.controller.ReleaseSettle, "release-settle", 6*time.Second,
		"where the hub keeps local quotas: how long after admission has charged for an object it may still be stored, before what nothing accounts for is given back; 65s covers the slowest request")
	f.DurationVar(&o.controller.StatusMinInterval, "status-min-interval", time.Second, "least time between two writes of one status; the first is immediate")
	f.IntVar(&o.controller.StatusRate, "status-rate", 64*1024, "most bytes of status per second and FleetQuota")
	f.IntVar(&o.controller.StatusRateHub, "status-rate-hub", 2*1024*1024, "most bytes of status per second in all")
	f.StringVar(&o.controller.IncludeHub, "include-hub", "", "count the hub's own cluster as a member under this name; empty: do not")
	f.BoolVar(&o.controller.ClusterAPI, "cluster-api", false, "kubeconfig Secrets of Cluster API register members too")
	f.BoolVar(&o.controller.AllowProxy, "allow-proxy-url", false, "accept kubeconfigs that name a proxy")
	logsapi.AddFlags(o.logging, f)
}

// run is the hub until ctx ends.
func (o *options) run(ctx context.Context) error {
	config, err := o.hub()
	if err != nil {
		return err
	}
	o.controller.Hub = config
	mode, err := parseMode(o.localStatus)
	if err != nil {
		return err
	}
	o.controller.LocalStatus = mode
	o.controller.Registry = legacyregistry.Registerer()
	if err := registerBuildInfo(o.controller.Registry); err != nil {
		return err
	}
	return o.lead(ctx)
}

// hub is how to reach the hub's API server.
func (o *options) hub() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = o.kubeconfig
	overrides := &clientcmd.ConfigOverrides{CurrentContext: o.context}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, errors.New("no hub: give --kubeconfig, set KUBECONFIG, or run inside the hub's cluster")
	}
	if err != nil {
		return nil, fmt.Errorf("find the hub: %w", err)
	}
	config.UserAgent = "fleetquota-hub/" + version
	return config, nil
}

func parseMode(text string) (v1alpha1.LocalStatusMode, error) {
	for _, mode := range []v1alpha1.LocalStatusMode{v1alpha1.LocalAlways, v1alpha1.LocalNever, v1alpha1.LocalAuto} {
		if strings.EqualFold(text, string(mode)) {
			return mode, nil
		}
	}
	return "", fmt.Errorf("--local-status=%s: use Always, Never or Auto", text)
}
