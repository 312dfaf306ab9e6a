package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fleetquota/fleetquota/hack/fleet/fleet"
)

// errRuns is that another demo holds the lock.
var errRuns = errors.New("a demo runs already; stop it with Ctrl-C there, or with make demo-down")

// lock keeps two demos out of one folder. It ends with the process.
func (d *demo) lock() (unlock func(), err error) {
	path := d.dir + ".lock"
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	unlock = func() { _ = file.Close() } // what matters is that the lock ends
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		unlock()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errRuns
		}
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	err = errors.Join(file.Truncate(0), writeAt(file, strconv.Itoa(os.Getpid())))
	if err != nil {
		unlock()
		return nil, err
	}
	return unlock, nil
}

func writeAt(file io.WriterAt, text string) error {
	_, err := file.WriteAt([]byte(text), 0)
	return err
}

// down stops the demo that runs, if one does, and removes what a crashed one
// left.
func (d *demo) down(ctx context.Context) error {
	unlock, err := d.lock()
	stopped := errors.Is(err, errRuns)
	if stopped {
		unlock, err = d.stopOther(ctx)
	}
	if err != nil {
		return err
	}
	defer unlock()
	_, err = os.Stat(d.dir)
	switch {
	case errors.Is(err, os.ErrNotExist) && stopped:
		d.say("It has stopped, and removed its files.")
		return nil
	case errors.Is(err, os.ErrNotExist):
		d.say("There is nothing to stop or remove.")
		return nil
	}
	if err := d.clear(ctx); err != nil {
		return err
	}
	d.say("Removed %s and all that ran for it.", d.dir)
	return nil
}

// stopOther asks the demo that holds the lock to end, and takes the lock over.
func (d *demo) stopOther(ctx context.Context) (unlock func(), err error) {
	text, err := os.ReadFile(d.dir + ".lock")
	if err != nil {
		return nil, err
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || pid <= 1 {
		return nil, fmt.Errorf("%w: %s does not say which process it is", errRuns, d.dir+".lock")
	}
	d.say("Asking the demo that runs to stop, process %d (usually 3 s)", pid)
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil {
		return nil, fmt.Errorf("stop process %d: %w", pid, err)
	}
	const patience = time.Minute
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		unlock, err = d.lock()
		if !errors.Is(err, errRuns) {
			return unlock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("process %d does not end: %w", pid, ctx.Err())
		case <-tick.C:
		}
	}
}

// clear ends and removes what a crashed demo has left in the folder.
func (d *demo) clear(ctx context.Context) error {
	clusters := filepath.Join(d.dir, "clusters")
	if _, err := os.Stat(clusters); err == nil {
		left, err := fleet.New(fleet.Options{Dir: clusters, Root: d.root, Out: d.out})
		if err != nil {
			return err
		}
		if err := left.Down(ctx); err != nil {
			return err
		}
	}
	return os.RemoveAll(d.dir)
}
