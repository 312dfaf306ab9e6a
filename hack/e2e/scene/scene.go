// Package scene sets up a hub with members on real API servers, for the
// end-to-end tests, the benchmarks and the demo: the clusters, the API, the
// registrations, and the hub as the process that users run, with the rights
// that users give it.
//
// With [Options.Owned] everything that it starts ends with the calling process,
// however that ends.
package scene

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/fleetquota/fleetquota/federation/v1alpha1/client"
	"github.com/fleetquota/fleetquota/hack/fleet/fleet"
)

// HubName is the name of the hub's cluster.
const HubName = "hub"

// Namespace is where the hub keeps its Secrets and lease.
const Namespace = "fleetquota-system"

// Options says what the scene is made of.
type Options struct {
	Dir     string    // required; removed by Close when Owned
	Members []string  // the clusters besides the hub
	Native  []string  // those that run Kubernetes' own quota controller
	Out     io.Writer // progress for people; default none
	Owned   bool      // everything ends with this process
	Version string    // of Kubernetes; default the newest
	Bin     string    // where the hub and the plugin are built; default bin/ of the repository
	Built   bool      // they are there already
}

// Scene is a running hub with its members' clusters.
type Scene struct {
	Fleet *fleet.Fleet
	Root  string // of the repository
	Dir   string
	Bin   string // where the hub and the plugin are built
	Hub   *Cluster

	out   io.Writer
	build sync.Mutex // guards built
	built bool       // the programs are those of the present source

	mu      sync.Mutex // guards all below
	members map[string]*Cluster
	hubs    int // how many were started
}

// Cluster is one cluster with its clients, all with full rights.
type Cluster struct {
	*fleet.Cluster

	Config     *rest.Config
	Kubernetes kubernetes.Interface
	Dynamic    dynamic.Interface
	Quota      *client.Client // for the API of fleetquota; of use on the hub
}

// Start brings up the clusters and installs the API of fleetquota and the
// hub's account. No member is registered yet, and the hub's process is not
// started.
func Start(ctx context.Context, o Options) (*Scene, error) {
	if o.Dir == "" {
		return nil, errors.New("the option Dir is required")
	}
	if o.Out == nil {
		o.Out = io.Discard
	}
	root, err := findRoot()
	if err != nil {
		return nil, err
	}
	if o.Bin == "" {
		o.Bin = filepath.Join(root, "bin")
	}
	provider := fleet.Provider(os.Getenv("FLEET_PROVIDER"))
	clusters, err := fleet.New(fleet.Options{
		Dir: filepath.Join(o.Dir, "clusters"), Root: root, Out: o.Out, Owned: o.Owned, Version: o.Version, Provider: provider,
	})
	if err != nil {
		return nil, err
	}
	specs := []fleet.Spec{{Name: HubName}}
	for _, name := range o.Members {
		specs = append(specs, fleet.Spec{Name: name, NativeQuota: slices.Contains(o.Native, name)})
	}
	if err := clusters.Up(ctx, specs...); err != nil {
		return nil, err
	}
	s := &Scene{Fleet: clusters, Root: root, Dir: o.Dir, Bin: o.Bin, out: o.Out, built: o.Built, members: map[string]*Cluster{}}
	if err := s.connect(o.Members); err != nil {
		return nil, errors.Join(err, s.Close()) //nolint:contextcheck // it ends what ctx did not
	}
	if err := s.install(ctx); err != nil {
		return nil, errors.Join(err, s.Close()) //nolint:contextcheck // it ends what ctx did not
	}
	return s, nil
}

func (s *Scene) connect(members []string) error {
	var err error
	if s.Hub, err = s.cluster(HubName); err != nil {
		return err
	}
	for _, name := range members {
		if s.members[name], err = s.cluster(name); err != nil {
			return err
		}
	}
	return nil
}

func (s *Scene) cluster(name string) (*Cluster, error) {
	found, err := s.Fleet.Cluster(name)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Cluster: found}
	if c.Config, err = found.RESTConfig(); err != nil {
		return nil, err
	}
	c.Config.QPS, c.Config.Burst = -1, -1
	if c.Kubernetes, err = kubernetes.NewForConfig(c.Config); err != nil {
		return nil, err
	}
	if c.Dynamic, err = dynamic.NewForConfig(c.Config); err != nil {
		return nil, err
	}
	c.Quota, err = client.New(c.Config, nil)
	return c, err
}

// Member is one of the members' clusters, by name.
func (s *Scene) Member(name string) *Cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.members[name]
}

// AddMember brings up one more cluster.
func (s *Scene) AddMember(ctx context.Context, spec fleet.Spec) (*Cluster, error) {
	if err := s.Fleet.Up(ctx, spec); err != nil {
		return nil, err
	}
	c, err := s.cluster(spec.Name)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members[spec.Name] = c
	return c, nil
}

// Close stops all clusters and removes their data.
func (s *Scene) Close() error {
	const patience = 30 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return s.Fleet.Down(ctx)
}

// Eventually waits until a check passes, and else says why it last did not.
func Eventually(ctx context.Context, patience time.Duration, check func(ctx context.Context) error) error {
	const every = 50 * time.Millisecond
	var last error
	err := wait.PollUntilContextTimeout(ctx, every, patience, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if err == nil || last == nil || ctx.Err() == nil {
			last = err // not that the time is up, which says nothing
		}
		return err == nil, nil
	})
	if err != nil && last != nil {
		return fmt.Errorf("after %s: %w", patience, last)
	}
	return err
}

// findRoot is the repository that holds the working directory.
func findRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "hack", "fleet", "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not inside a checkout of fleetquota")
		}
		dir = parent
	}
}
