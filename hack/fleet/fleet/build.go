package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Why building takes so long, in the words that the user sees.
func buildHint(program string) string {
	switch program {
	case apiServer:
		return " (the first build usually takes about 7 minutes on 2 cores; Go's cache serves later ones)"
	case manager:
		return " (the first build usually takes about 2 minutes on 2 cores, after kube-apiserver's)"
	default:
		return ""
	}
}

func packageOf(program string) string {
	if program == etcd {
		return "go.etcd.io/etcd/server/v3"
	}
	return "k8s.io/kubernetes/cmd/" + program
}

// linkFlags sets the version that the program reports.
func linkFlags(program, version string) string {
	flags := "-s -w"
	if program == etcd {
		return flags
	}
	major, minor, _ := strings.Cut(minorOf(version), ".")
	for _, assignment := range []string{"gitVersion=" + version, "gitMajor=" + major, "gitMinor=" + minor} {
		flags += " -X k8s.io/component-base/version." + assignment
	}
	return flags
}

// ensure builds those of the programs that are missing.
func (t toolbox) ensure(ctx context.Context, r release, programs ...string) error {
	for _, program := range programs {
		if isFile(t.path(r, program)) {
			continue
		}
		if err := t.buildLocked(ctx, r, program); err != nil {
			return fmt.Errorf("build %s %s: %w", program, r.version, err)
		}
	}
	return nil
}

func (t toolbox) buildLocked(ctx context.Context, r release, program string) error {
	module := filepath.Join(t.root, "hack", "fleet", "kubernetes", "v"+minorOf(r.version))
	if t.root == "" || !isFile(filepath.Join(module, "go.mod")) {
		return errors.New("this version is not pinned below hack/fleet/kubernetes of a checkout")
	}
	target := t.path(r, program)
	unlock, err := lockFile(ctx, filepath.Join(filepath.Dir(target), ".lock"), t.out)
	if err != nil {
		return err
	}
	defer unlock()
	if isFile(target) { // somebody else built it while we waited
		return nil
	}
	return t.build(ctx, module, target)
}

func (t toolbox) build(ctx context.Context, module, target string) error {
	program, version := filepath.Base(target), filepath.Base(filepath.Dir(target))
	temporary := target + ".tmp"
	defer os.Remove(temporary) // gone if all went well

	begun := time.Now()
	fmt.Fprintf(t.out, "Building %s %s%s\n", program, version, buildHint(program))
	// No -trimpath: it would not share the cache with builds by hand.
	cmd := exec.CommandContext(ctx, "go", "build", "-o", temporary,
		"-ldflags", linkFlags(program, version), packageOf(program))
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "GOWORK=off")
	// A group of its own, so that compilers and linkers end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = 10 * time.Second

	var out []byte
	err := t.reportWhile(fmt.Sprintf("still building %s", program), func() error {
		var err error
		out, err = cmd.CombinedOutput()
		return err
	})
	if ctx.Err() != nil {
		if cmd.Process != nil {
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // mostly there is nothing left
		}
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	if err := os.Rename(temporary, target); err != nil {
		return err
	}
	fmt.Fprintf(t.out, "Built %s in %v\n", program, time.Since(begun).Round(time.Second))
	return nil
}

// reportWhile says every ten seconds that the work goes on.
func (t toolbox) reportWhile(message string, work func() error) error {
	begun := time.Now()
	done := make(chan error, 1)
	go func() { done <- work() }()
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-tick.C:
			fmt.Fprintf(t.out, "  %s, %v so far\n", message, time.Since(begun).Round(time.Second))
		}
	}
}
