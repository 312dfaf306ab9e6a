package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// demo is one run of it.
type demo struct {
	root  string        // of the repository
	dir   string        // of everything that the demo writes
	out   io.Writer     // for people
	limit time.Duration // how long to show totals; 0: until interrupted

	scene *scene.Scene
	hub   *scene.Process
}

// up is the demo from start to end. When it returns nothing of it runs.
func (d *demo) up(ctx context.Context) error {
	unlock, err := d.lock()
	if err != nil {
		return err
	}
	defer unlock()
	if err := d.clear(ctx); err != nil {
		return err
	}
	err = errors.Join(d.play(ctx), d.close()) //nolint:contextcheck // it ends everything also when ctx has ended
	if err != nil && !errors.Is(context.Cause(ctx), errInterrupted) {
		d.say("The logs are in %s until make demo-down or the next make demo.", d.dir)
		return err
	}
	if removed := os.RemoveAll(d.dir); err == nil {
		err = removed
	}
	d.say("The hub and all clusters are stopped, and their files removed. Nothing is left running.")
	return err
}

// play is what comes between an empty stage and its clearing.
func (d *demo) play(ctx context.Context) error {
	for _, act := range []func(context.Context) error{
		d.build, d.startClusters, d.writeAccess, d.load, d.startHub, d.join, d.awaitTotals,
	} {
		if err := act(ctx); err != nil {
			return err
		}
	}
	return d.live(ctx)
}

// build builds the programs that users run.
func (d *demo) build(ctx context.Context) error {
	return d.step("Building fleetquota-hub, kubectl-fleetquota and fleet", "a second; 2 minutes the first time", func() error {
		err := d.goBuild(ctx, d.root, "./cmd/...")
		if err != nil {
			return err
		}
		return d.goBuild(ctx, filepath.Join(d.root, "hack", "fleet"), ".")
	})
}

func (d *demo) goBuild(ctx context.Context, dir, packages string) error {
	command := exec.CommandContext(ctx, "go", "build", "-o", d.bin("")+string(filepath.Separator), packages)
	command.Dir = dir
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go build %s in %s: %w\n%s", packages, dir, err, out)
	}
	return nil
}

func (d *demo) bin(name string) string { return filepath.Join(d.root, "bin", name) }

// startClusters brings up the hub's cluster and the members'. The first time
// this builds Kubernetes; fleet tells of that.
func (d *demo) startClusters(ctx context.Context) error {
	options := scene.Options{Dir: d.dir, Out: d.out, Owned: true}
	for _, spec := range fleetOfDemo() {
		options.Members = append(options.Members, spec.name)
		if spec.native {
			options.Native = append(options.Native, spec.name)
		}
	}
	return d.step("Starting 4 clusters", "20 s", func() error {
		var err error
		d.scene, err = scene.Start(ctx, options)
		return err
	})
}

// writeAccess writes a kubeconfig with a context for each cluster, and what a
// shell needs to use it.
func (d *demo) writeAccess(context.Context) error {
	all := clientcmdapi.NewConfig()
	all.CurrentContext = scene.HubName
	for _, cluster := range d.scene.Fleet.Clusters() {
		config, err := clientcmd.LoadFromFile(cluster.KubeconfigPath())
		if err != nil {
			return err
		}
		current := config.Contexts[config.CurrentContext]
		if current == nil {
			return fmt.Errorf("%s has no current context", cluster.KubeconfigPath())
		}
		name := cluster.Name()
		all.Clusters[name] = config.Clusters[current.Cluster]
		all.AuthInfos[name] = config.AuthInfos[current.AuthInfo]
		all.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	}
	if err := clientcmd.WriteToFile(*all, d.kubeconfig()); err != nil {
		return err
	}
	env := fmt.Sprintf("export KUBECONFIG='%s' FLEET_DIR='%s' PATH='%s':\"$PATH\"\n",
		d.kubeconfig(), filepath.Join(d.dir, "clusters"), d.bin(""))
	return os.WriteFile(d.env(), []byte(env), 0o600)
}

func (d *demo) kubeconfig() string { return filepath.Join(d.dir, "kubeconfig") }
func (d *demo) env() string        { return filepath.Join(d.dir, "env") }

// load fills the hub and the members with teams.
func (d *demo) load(ctx context.Context) error {
	return d.step("Loading sample teams into the hub and its members", "5 s", func() error {
		group, ctx := errgroup.WithContext(ctx)
		group.Go(func() error { return applySample(ctx, d.scene.Hub, "hub") })
		for _, spec := range fleetOfDemo() {
			group.Go(func() error { return loadMember(ctx, d.scene.Member(spec.name), spec) })
		}
		return group.Wait()
	})
}

func (d *demo) startHub(ctx context.Context) error {
	return d.step("Starting the hub process", "3 s", func() error {
		var err error
		d.hub, err = d.scene.StartHub(ctx)
		return err
	})
}

// join registers the members with the program that users have for it.
func (d *demo) join(ctx context.Context) error {
	for _, spec := range fleetOfDemo() {
		args := []string{"join", spec.name, "--local-status", "--labels", "tier=" + spec.tier}
		d.say("$ kubectl fleetquota join %s --local-status --labels tier=%s", spec.name, spec.tier)
		command := exec.CommandContext(ctx, d.bin("kubectl-fleetquota"), args...)
		command.Env = append(os.Environ(), "KUBECONFIG="+d.kubeconfig())
		if out, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("join %s: %w\n%s", spec.name, err, out)
		}
	}
	return nil
}

// awaitTotals waits until every number is live, and every local quota has a
// status: only then do members admit what the churn creates.
func (d *demo) awaitTotals(ctx context.Context) error {
	const patience = time.Minute
	return d.step("Waiting for the totals, and for the hub to take over the local quotas of us-1 and ap-1, which nobody keeps", "12 s", func() error {
		var missing error // when there was last time to look
		return scene.Eventually(ctx, patience, func(ctx context.Context) error {
			err := errors.Join(d.complete(ctx), d.kept(ctx))
			if ctx.Err() == nil {
				missing = err
			}
			return missing
		})
	})
}

func (d *demo) complete(ctx context.Context) error {
	quotas, err := d.scene.Hub.Quota.Quotas("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range quotas.Items {
		q := &quotas.Items[i]
		if !meta.IsStatusConditionTrue(q.Status.Conditions, v1alpha1.ConditionUsageComplete) {
			return fmt.Errorf("the totals of FleetQuota %s/%s are not complete; see %s", q.Namespace, q.Name, d.hub.Log)
		}
	}
	return nil
}

func (d *demo) kept(ctx context.Context) error {
	for _, spec := range fleetOfDemo() {
		quotas, err := d.scene.Member(spec.name).Kubernetes.CoreV1().ResourceQuotas("").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range quotas.Items {
			if q := &quotas.Items[i]; len(q.Status.Used) < len(q.Spec.Hard) {
				return fmt.Errorf("ResourceQuota %s/%s in %s has no status; see %s", q.Namespace, q.Name, spec.name, d.hub.Log)
			}
		}
	}
	return nil
}

// close ends all processes. It tries all of them.
func (d *demo) close() error {
	var errs []error
	if d.hub != nil {
		_, err := d.hub.Stop()
		errs = append(errs, err)
	}
	if d.scene != nil {
		errs = append(errs, d.scene.Close())
	}
	return errors.Join(errs...)
}

func (d *demo) say(format string, args ...any) { fmt.Fprintf(d.out, format+"\n", args...) }

// step says what is being done and how long that usually takes, and goes on
// saying so.
func (d *demo) step(what, usually string, do func() error) error {
	d.say("%s (usually %s)", what, usually)
	begun := time.Now()
	done := make(chan error, 1)
	go func() { done <- do() }()
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if err == nil {
				d.say("  done in %.1f s", time.Since(begun).Seconds())
			}
			return err
		case <-tick.C:
			d.say("  %d s so far", int(time.Since(begun).Seconds()))
		}
	}
}
