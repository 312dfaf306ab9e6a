package fleet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	pollInterval = 20 * time.Millisecond
	stopGrace    = 15 * time.Second // between SIGTERM and SIGKILL
)

// lifetime says what ends the processes that we start.
type lifetime int

const (
	detached lifetime = iota // they run until somebody stops them
	owned                    // they end with this process
)

// life is one run of one process. A pid alone comes back, the pair does not.
type life struct {
	pid   int
	birth string // boot and start time
}

// process is one program of one cluster.
type process struct {
	name string // also the name of its files
	dir  string
}

func (p process) record() string  { return filepath.Join(p.dir, p.name+".pid") }
func (p process) logFile() string { return filepath.Join(p.dir, p.name+".log") }

// child is a process started by this very process.
type child struct {
	process
	ended chan struct{} // closed once it has ended and is reaped
	err   error         // why it ended; read it after ended
}

// start runs a program and returns once its record is on disk.
//
// The record is written by a shell that then becomes the program, so there is
// no moment at which the program runs and nobody knows.
func (p process) start(ctx context.Context, l lifetime, path string, args []string) (*child, error) {
	output, err := os.OpenFile(p.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer output.Close()
	if err := p.forget(); err != nil {
		return nil, err
	}

	script := `set -e; { ` + recordScript + `; } >"$0"; exec "$@"`
	shell := append([]string{"-c", script, p.record(), path}, args...)
	// The process outlives this call, hence not its context.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh", shell...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, output, output
	cmd.SysProcAttr = processAttributes(l)

	c := &child{process: p, ended: make(chan struct{})}
	started := make(chan error)
	go c.run(cmd, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", p.name, err)
	}
	return c, c.awaitRecord()
}

// run starts the command and waits for its end, all on one thread: Linux ties
// the death signal of a child to the thread that forked it, so that thread has
// to live as long as the child does.
func (c *child) run(cmd *exec.Cmd, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.ended)
	err := cmd.Start()
	started <- err
	if err == nil {
		c.err = cmd.Wait()
	}
}

func (c *child) awaitRecord() error {
	tick := time.NewTicker(pollInterval / 4)
	defer tick.Stop()
	for {
		if _, err := c.recorded(); err == nil {
			return nil
		}
		select {
		case <-c.ended:
			return c.failure()
		case <-tick.C:
		}
	}
}

// failure says why the child has ended, in one line.
func (c *child) failure() error {
	reason := "exit status 0"
	if c.err != nil {
		reason = c.err.Error()
	}
	if line := lastLine(c.logFile()); line != "" {
		reason += ": " + line
	}
	return fmt.Errorf("%s ended: %s (see %s)", c.name, reason, c.logFile())
}

func lastLine(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.TrimSpace(lines[len(lines)-1])
}

// recorded is the life that the record speaks of, over or not.
func (p process) recorded() (life, error) {
	text, err := os.ReadFile(p.record())
	if err != nil {
		return life{}, err
	}
	first, rest, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		return life{}, fmt.Errorf("record %s: %w", p.record(), err)
	}
	birth, err := recordedBirth(rest)
	if err != nil {
		return life{}, fmt.Errorf("record %s: %w", p.record(), err)
	}
	return life{pid: pid, birth: birth}, nil
}

// find returns a handle on the running process and its state letter, as in ps.
// Nil means that it does not run.
func (p process) find() (*os.Process, byte) {
	recorded, err := p.recorded()
	if err != nil || recorded.pid <= 1 {
		return nil, 0
	}
	// First the handle, then the look: the handle keeps meaning this process
	// even if the number passes on.
	handle, err := os.FindProcess(recorded.pid)
	if err != nil {
		return nil, 0
	}
	birth, state, err := inspect(recorded.pid)
	if err != nil || birth != recorded.birth || state == 'Z' || state == 'X' {
		_ = handle.Release() //nolint:errcheck // a handle of nothing
		return nil, 0
	}
	return handle, state
}

// signal reaches the process if it runs, and is no error if it does not.
func (p process) signal(s syscall.Signal) error {
	handle, _ := p.find()
	if handle == nil {
		return nil
	}
	defer handle.Release() //nolint:errcheck // cannot fail
	err := handle.Signal(s)
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("send %v to %s: %w", s, p.name, err)
	}
	return nil
}

// stop ends the process and returns when it is gone. It asks first and insists
// after the grace, or when the context ends; with no grace it does not ask.
func (p process) stop(ctx context.Context, grace time.Duration) error {
	if grace > 0 {
		// A frozen process hears SIGTERM only once it is thawed.
		if err := errors.Join(p.signal(syscall.SIGTERM), p.signal(syscall.SIGCONT)); err != nil {
			return err
		}
		limited, cancel := context.WithTimeout(ctx, grace)
		gone := p.awaitEnd(limited)
		cancel()
		if gone {
			return p.forget()
		}
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
	defer cancel()
	if !p.awaitEnd(limited) {
		return fmt.Errorf("stop %s: still there after SIGKILL", p.name)
	}
	return p.forget()
}

func (p process) awaitEnd(ctx context.Context) bool {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		handle, _ := p.find()
		if handle == nil {
			return true
		}
		_ = handle.Release() //nolint:errcheck // cannot fail
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
}

func (p process) forget() error {
	if err := os.Remove(p.record()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
