package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Cluster is one cluster of a fleet. Its methods may be called from many
// goroutines; those that change it wait for each other.
type Cluster struct {
	name    string
	dir     string
	machine machine
	mu      sync.Mutex // guards machine, the state's file, and what of state may change
	state   state      // changing: NativeQuota, Phase, ExtraArgs, NativeArgs
}

// Info describes a cluster.
type Info struct {
	Name        string
	Provider    Provider
	Version     string // as in v1.37.2
	Address     string // as in https://127.0.0.1:20001
	Status      Status
	NativeQuota bool
}

// Name is the name that its Spec gave.
func (c *Cluster) Name() string { return c.name }

// Dir is the folder with its state and logs.
func (c *Cluster) Dir() string { return c.dir }

// KubeconfigPath is a file that gives full access.
func (c *Cluster) KubeconfigPath() string { return filepath.Join(c.dir, adminKubeconfig) }

// AuditLog is a file with one JSON line for each create, update, patch and
// delete that the server answered. Writes of the server itself, such as those
// of quota admission and of its own Leases, are in it too.
func (c *Cluster) AuditLog() string {
	if c.state.Provider == Kind {
		return filepath.Join(c.dir, kindAuditFolder, auditLogFile)
	}
	return filepath.Join(c.dir, auditLogFile)
}

// RESTConfig gives full access, with a rate limit that does not get in the way
// of tests.
func (c *Cluster) RESTConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", c.KubeconfigPath())
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.name, err)
	}
	config.QPS, config.Burst = 500, 1000
	return config, nil
}

// Kubeconfig makes a kubeconfig for a user of these groups, with a client
// certificate in it. What the user may do is up to RBAC.
func (c *Cluster) Kubeconfig(user string, groups ...string) ([]byte, error) {
	config, err := c.RESTConfig()
	if err != nil {
		return nil, err
	}
	ca, err := loadAuthority(c.dir)
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", c.name, err)
	}
	return ca.kubeconfigFor(c.name, config.Host, user, groups)
}

// Info says what the cluster is and does now.
func (c *Cluster) Info(ctx context.Context) (Info, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	status, err := c.machine.status(ctx, c.state)
	if err != nil {
		return Info{}, c.failed("look at", err)
	}
	return Info{
		Name: c.name, Provider: c.state.Provider, Version: c.state.Version,
		Address: "https://" + loopback(c.state.Ports.API), Status: status, NativeQuota: c.state.NativeQuota,
	}, nil
}

// Freeze stops the cluster's clock: connections stay open and nothing answers.
func (c *Cluster) Freeze(ctx context.Context) error { return c.do(ctx, freeze) }

// Thaw lets a frozen cluster go on.
func (c *Cluster) Thaw(ctx context.Context) error { return c.do(ctx, thaw) }

// Kill ends all of the cluster at once, as a loss of power would.
func (c *Cluster) Kill(ctx context.Context) error { return c.do(ctx, kill) }

// Stop ends the cluster in good order. Its data stays for Restart.
func (c *Cluster) Stop(ctx context.Context) error { return c.do(ctx, stop) }

// Restart stops the cluster if it runs and starts it again with the same data,
// ports and certificates. It returns when the cluster is ready.
func (c *Cluster) Restart(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.machine.do(ctx, c.state, stop); err != nil {
		return c.failed("stop", err)
	}
	return c.start(ctx)
}

// StartNativeQuota runs Kubernetes' own quota controller for the cluster, now
// and after each restart. It returns when the controller is healthy; its caches
// fill within the seconds that follow.
func (c *Cluster) StartNativeQuota(ctx context.Context) error {
	return c.setNativeQuota(ctx, startQuota)
}

// StopNativeQuota ends it, until StartNativeQuota.
func (c *Cluster) StopNativeQuota(ctx context.Context) error { return c.setNativeQuota(ctx, stopQuota) }

func (c *Cluster) setNativeQuota(ctx context.Context, a action) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.setNativeQuotaLocked(ctx, a)
}

func (c *Cluster) setNativeQuotaLocked(ctx context.Context, a action) error {
	if err := c.machine.do(ctx, c.state, a); err != nil {
		return c.failed(string(a), err)
	}
	c.state.NativeQuota = a == startQuota
	return c.state.save(c.dir)
}

func (c *Cluster) do(ctx context.Context, a action) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.machine.do(ctx, c.state, a); err != nil {
		return c.failed(string(a), err)
	}
	return nil
}

func (c *Cluster) start(ctx context.Context) error {
	if err := c.machine.start(ctx, c.state); err != nil {
		return c.failed("start", err)
	}
	return nil
}

func (c *Cluster) failed(what string, err error) error {
	return fmt.Errorf("%s cluster %s: %w", what, c.name, err)
}

// up brings the cluster to what the spec says. It reports whether it had to be
// started.
func (c *Cluster) up(ctx context.Context, spec Spec) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isReady(ctx) {
		if spec.NativeQuota == c.state.NativeQuota {
			return false, nil
		}
		if spec.NativeQuota {
			return false, c.setNativeQuotaLocked(ctx, startQuota)
		}
		return false, c.setNativeQuotaLocked(ctx, stopQuota)
	}
	c.state.NativeQuota, c.state.Phase = spec.NativeQuota, starting
	c.state.ExtraArgs, c.state.NativeArgs = spec.ExtraArgs, spec.NativeArgs
	if err := c.state.save(c.dir); err != nil {
		return false, c.failed("start", err)
	}
	if err := c.start(ctx); err != nil {
		return false, errors.Join(err, c.settle())
	}
	return true, c.settle()
}

// settle notes that nobody is at work on the cluster any more.
func (c *Cluster) settle() error {
	c.state.Phase = settled
	return c.state.save(c.dir)
}

// isReady looks whether the cluster runs and answers within a few seconds.
func (c *Cluster) isReady(ctx context.Context) bool {
	status, err := c.machine.status(ctx, c.state)
	if err != nil || status != Running || c.state.Phase != settled {
		return false
	}
	config, err := c.RESTConfig()
	if err != nil {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	return awaitAPI(ctx, config, nil) == nil
}

// reload learns of what other processes have done with the cluster.
func (c *Cluster) reload() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	s, err := loadState(c.dir)
	if err != nil {
		return err
	}
	c.state.NativeQuota, c.state.Phase = s.NativeQuota, s.Phase
	c.state.ExtraArgs, c.state.NativeArgs = s.ExtraArgs, s.NativeArgs
	return nil
}

// endLeftover ends what a crashed start has left.
func (c *Cluster) endLeftover(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state.Phase != starting {
		return nil
	}
	if err := c.machine.do(ctx, c.state, kill); err != nil {
		return c.failed("end what is left of", err)
	}
	return c.settle()
}

func (c *Cluster) remove(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.machine.remove(ctx, c.state); err != nil {
		return c.failed("remove", err)
	}
	if err := os.RemoveAll(c.dir); err != nil {
		return c.failed("remove", err)
	}
	return nil
}
