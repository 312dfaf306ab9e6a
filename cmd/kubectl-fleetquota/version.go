package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/yaml"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// hubTimeout is how long version waits for the hub.
const hubTimeout = 5 * time.Second

// The states of the API at the hub.
const (
	apiPresent = "present"
	apiAbsent  = "absent"
)

// versions is what version prints.
type versions struct {
	Client clientVersion `json:"client"`
	Hub    *hubVersion   `json:"hub,omitempty"`
}

type clientVersion struct {
	Version   string `json:"version"`
	GoVersion string `json:"goVersion"`
	Platform  string `json:"platform"`
}

type hubVersion struct {
	API        string `json:"api"`                  // the version that this client speaks
	State      string `json:"state"`                // present, absent or unknown
	Kubernetes string `json:"kubernetes,omitempty"` // the hub's version
	Error      string `json:"error,omitempty"`      // why the state is unknown
}

func newVersion(s *shell) *cobra.Command {
	var output string
	var clientOnly bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Show the version of this program, and whether the hub has its API",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := oneOf("output", output, "", formatJSON, formatYAML); err != nil {
				return err
			}
			v := versions{Client: thisVersion()}
			if !clientOnly {
				v.Hub = s.hubVersion(cmd.Context())
			}
			return s.printVersions(output, v)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "json or yaml")
	cmd.Flags().BoolVar(&clientOnly, "client", false, "ask no cluster")
	completeWords(cmd, "output", formatJSON, formatYAML)
	return cmd
}

// thisVersion is the one set by the build, else the one of the Go module.
func thisVersion() clientVersion {
	v := clientVersion{Version: version, GoVersion: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok && v.Version == "" {
		v.Version = info.Main.Version
	}
	v.Version = orUnknown(v.Version)
	return v
}

// hubVersion asks the hub. That it cannot be asked is an answer, not an error.
func (s *shell) hubVersion(ctx context.Context) *hubVersion {
	v := &hubVersion{API: v1alpha1.SchemeGroupVersion.String(), State: unknown}
	config, err := s.hubConfig()
	if err != nil {
		v.Error = err.Error()
		return v
	}
	config.Timeout = hubTimeout
	hub, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		v.Error = err.Error()
		return v
	}
	if info, err := hub.ServerVersionWithContext(ctx); err == nil {
		v.Kubernetes = info.GitVersion
	}
	_, err = hub.ServerResourcesForGroupVersionWithContext(ctx, v.API)
	switch {
	case err == nil:
		v.State = apiPresent
	case apierrors.IsNotFound(err):
		v.State = apiAbsent
	default:
		v.Error = err.Error()
	}
	return v
}

func (s *shell) printVersions(output string, v versions) error {
	var text []byte
	var err error
	switch output {
	case formatJSON:
		text, err = json.MarshalIndent(v, "", "  ")
		text = append(text, '\n')
	case formatYAML:
		text, err = yaml.Marshal(v)
	default:
		text = []byte(v.String())
	}
	if err != nil {
		return fmt.Errorf("print the version: %w", err)
	}
	_, err = s.Out.Write(text)
	return err
}

func (v versions) String() string {
	text := fmt.Sprintf("Client: %s (%s, %s)\n", v.Client.Version, v.Client.GoVersion, v.Client.Platform)
	if v.Hub == nil {
		return text
	}
	text += fmt.Sprintf("Hub API: %s %s", v.Hub.API, v.Hub.State)
	switch {
	case v.Hub.Error != "":
		text += " (" + v.Hub.Error + ")"
	case v.Hub.Kubernetes != "":
		text += " (Kubernetes " + v.Hub.Kubernetes + ")"
	}
	return text + "\n"
}
