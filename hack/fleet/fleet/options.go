package fleet

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// Options says where a fleet lives and what it is made of.
type Options struct {
	Dir      string    // default $FLEET_DIR, else bin/fleet in the repository
	Root     string    // the repository; default the one around the working directory
	Version  string    // of Kubernetes, as in 1.36; default that of $KUBEBUILDER_ASSETS, else 1.37
	Provider Provider  // default Local
	Out      io.Writer // progress for people; default none
	Owned    bool      // clusters end with this process; else they stay up until Down
}

func (o Options) complete() (Options, error) {
	if o.Out == nil {
		o.Out = io.Discard
	}
	if o.Provider == "" {
		o.Provider = Local
	}
	if o.Provider != Local && o.Provider != Kind {
		return o, fmt.Errorf("unknown provider %q: use %s or %s", o.Provider, Local, Kind)
	}
	if o.Root == "" {
		here, err := os.Getwd()
		if err != nil {
			return o, err
		}
		o.Root = findRoot(here)
	}
	if o.Dir == "" {
		o.Dir = os.Getenv("FLEET_DIR")
	}
	if o.Dir == "" {
		if o.Root == "" {
			return o, errors.New("not inside a checkout of fleetquota: say with --dir or FLEET_DIR where the clusters shall live")
		}
		o.Dir = filepath.Join(o.Root, "bin", "fleet")
	}
	dir, err := filepath.Abs(o.Dir)
	o.Dir = dir
	return o, err
}

// lockedWriter keeps lines of clusters that start at once apart.
type lockedWriter struct {
	mu  sync.Mutex // guards out
	out io.Writer
}

func (w *lockedWriter) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.out.Write(p)
}
