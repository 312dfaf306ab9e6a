package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Fleet is a set of clusters in one directory.
type Fleet struct {
	options  Options
	tools    toolbox
	mu       sync.Mutex // guards clusters
	clusters []*Cluster // sorted by name
}

// New opens the fleet of a directory, with the clusters that are there already.
func New(options Options) (*Fleet, error) {
	options, err := options.complete()
	if err != nil {
		return nil, err
	}
	options.Out = &lockedWriter{out: options.Out}
	f := &Fleet{options: options, tools: toolbox{
		root: options.Root, assets: os.Getenv("KUBEBUILDER_ASSETS"), out: options.Out,
	}}
	return f, f.refresh()
}

// Build builds the programs of local clusters as far as they are missing.
func (f *Fleet) Build(ctx context.Context) error {
	r, err := f.tools.release(ctx, f.options.Version)
	if err != nil {
		return err
	}
	return f.tools.ensure(ctx, r, etcd, apiServer, manager)
}

// Up starts clusters, all at once, and returns when each is ready. Those that
// are up already stay as they are, except that their native quota controller
// follows the spec; stopped ones start again with their data. If one fails,
// those that this call started are stopped.
func (f *Fleet) Up(ctx context.Context, specs ...Spec) error {
	unlock, err := lockFile(ctx, filepath.Join(f.options.Dir, ".lock"), f.options.Out)
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.refresh(); err != nil {
		return err
	}
	if err := f.endLeftovers(ctx); err != nil {
		return err
	}
	clusters, err := f.plan(ctx, specs)
	if err != nil {
		return err
	}
	return f.startAll(ctx, clusters, specs)
}

func (f *Fleet) startAll(ctx context.Context, clusters []*Cluster, specs []Spec) error {
	started := make([]bool, len(clusters))
	group, groupCtx := errgroup.WithContext(ctx)
	for i, c := range clusters {
		group.Go(func() error {
			begun := time.Now()
			var err error
			started[i], err = c.up(groupCtx, specs[i])
			if err == nil {
				state := "is up"
				if started[i] {
					state = fmt.Sprintf("ready after %.1f s", time.Since(begun).Seconds())
				}
				fmt.Fprintf(f.options.Out, "%s: %s at https://%s\n", c.name, state, loopback(c.state.Ports.API))
			}
			return err
		})
	}
	err := group.Wait()
	if err == nil {
		return nil
	}
	errs := []error{err}
	for i, c := range clusters {
		if started[i] {
			errs = append(errs, c.Kill(context.WithoutCancel(ctx)))
		}
	}
	return errors.Join(errs...)
}

// plan checks all specs, builds what they need, and finds or makes the cluster
// of each.
func (f *Fleet) plan(ctx context.Context, specs []Spec) ([]*Cluster, error) {
	if f.options.Provider == Kind {
		if err := dockerAnswers(ctx); err != nil {
			return nil, err
		}
	}
	releases := make([]release, len(specs))
	for i, spec := range specs {
		var err error
		if releases[i], err = f.check(ctx, spec, specs[:i]); err != nil {
			return nil, err
		}
	}
	clusters := make([]*Cluster, len(specs))
	for i, spec := range specs {
		var err error
		if clusters[i], err = f.findOrMake(spec, releases[i]); err != nil {
			return nil, err
		}
	}
	return clusters, nil
}

// check says what the spec gets, and builds it if it is missing.
func (f *Fleet) check(ctx context.Context, spec Spec, others []Spec) (release, error) {
	if err := validName(spec.Name); err != nil {
		return release{}, err
	}
	if slices.ContainsFunc(others, func(o Spec) bool { return o.Name == spec.Name }) {
		return release{}, fmt.Errorf("cluster %s is asked for twice", spec.Name)
	}
	if _, err := parseArguments(slices.Concat(spec.ExtraArgs, spec.NativeArgs)); err != nil {
		return release{}, fmt.Errorf("cluster %s: %w", spec.Name, err)
	}
	wanted, err := f.release(ctx, spec)
	if err != nil || f.options.Provider == Kind {
		return wanted, err
	}
	return wanted, f.tools.ensure(ctx, wanted, programs(spec.NativeQuota)...)
}

func (f *Fleet) release(ctx context.Context, spec Spec) (release, error) {
	version := spec.Version
	if version == "" {
		version = f.options.Version
	}
	if f.options.Provider == Kind {
		return release{version: kindVersion(version)}, nil
	}
	return f.tools.release(ctx, version)
}

func (f *Fleet) findOrMake(spec Spec, wanted release) (*Cluster, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var taken []ports
	for _, c := range f.clusters {
		if c.name != spec.Name {
			taken = append(taken, c.state.Ports)
			continue
		}
		if c.state.Provider != f.options.Provider || c.state.Version != wanted.version {
			return nil, fmt.Errorf("cluster %s exists as %s %s: take it down first",
				c.name, c.state.Provider, c.state.Version)
		}
		return c, nil
	}
	dir := filepath.Join(f.options.Dir, spec.Name)
	chosen, err := choosePorts(dir, taken)
	if err != nil {
		return nil, err
	}
	c := f.cluster(dir, state{
		Name: spec.Name, Provider: f.options.Provider, Version: wanted.version, Assets: wanted.assets,
		Ports: chosen, NativeQuota: spec.NativeQuota, ExtraArgs: spec.ExtraArgs, NativeArgs: spec.NativeArgs, Phase: settled,
	})
	if err := c.state.save(dir); err != nil {
		return nil, err
	}
	f.add(c)
	return c, nil
}

// cluster makes the value for a cluster, running or not.
func (f *Fleet) cluster(dir string, s state) *Cluster {
	c := &Cluster{name: s.Name, dir: dir, state: s}
	if s.Provider == Kind {
		c.machine = &kindNode{dir: dir, out: f.options.Out}
		return c
	}
	l := &local{dir: dir, tools: f.tools, children: map[string]*child{}}
	if f.options.Owned {
		l.lifetime = owned
	}
	c.machine = l
	return c
}

func (f *Fleet) add(c *Cluster) {
	f.clusters = append(f.clusters, c)
	slices.SortFunc(f.clusters, func(a, b *Cluster) int { return strings.Compare(a.name, b.name) })
}

// refresh learns of what others have done in our directory.
func (f *Fleet) refresh() error {
	for _, c := range f.Clusters() {
		if err := c.reload(); errors.Is(err, fs.ErrNotExist) {
			f.forget(c)
		} else if err != nil {
			return err
		}
	}
	files, err := filepath.Glob(filepath.Join(f.options.Dir, "*", stateFile))
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, file := range files {
		s, err := loadState(filepath.Dir(file))
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(f.clusters, func(c *Cluster) bool { return c.name == s.Name }) {
			f.add(f.cluster(filepath.Dir(file), s))
		}
	}
	return nil
}

func (f *Fleet) endLeftovers(ctx context.Context) error {
	for _, c := range f.Clusters() {
		if err := c.endLeftover(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Clusters lists the clusters by name, whatever their status.
func (f *Fleet) Clusters() []*Cluster {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.clusters)
}

// Cluster finds a cluster by its name.
func (f *Fleet) Cluster(name string) (*Cluster, error) {
	for _, c := range f.Clusters() {
		if c.name == name {
			return c, nil
		}
	}
	return nil, fmt.Errorf("no cluster %q in %s", name, f.options.Dir)
}

// Down ends clusters at once and removes their folders with all data; without
// names, all clusters.
func (f *Fleet) Down(ctx context.Context, names ...string) error {
	unlock, err := lockFile(ctx, filepath.Join(f.options.Dir, ".lock"), f.options.Out)
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.refresh(); err != nil {
		return err
	}
	doomed := f.Clusters()
	if len(names) > 0 {
		doomed = nil
	}
	for _, name := range names {
		c, err := f.Cluster(name)
		if err != nil {
			return err
		}
		doomed = append(doomed, c)
	}
	return f.removeAll(ctx, doomed)
}

// removeAll tries all, whatever becomes of the others.
func (f *Fleet) removeAll(ctx context.Context, doomed []*Cluster) error {
	errs := make([]error, len(doomed))
	var wait sync.WaitGroup
	for i, c := range doomed {
		wait.Go(func() {
			if errs[i] = c.remove(ctx); errs[i] == nil {
				f.forget(c)
				fmt.Fprintf(f.options.Out, "%s: removed\n", c.name)
			}
		})
	}
	wait.Wait()
	return errors.Join(errs...)
}

func (f *Fleet) forget(gone *Cluster) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clusters = slices.DeleteFunc(f.clusters, func(c *Cluster) bool { return c == gone })
}
