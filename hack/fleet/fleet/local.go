package fleet

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// local runs one cluster as processes of this machine.
type local struct {
	dir      string
	tools    toolbox
	lifetime lifetime
	children map[string]*child // name of a program -> its process, if this process started it
}

// programs lists what a cluster should run, in the order of starting.
func programs(nativeQuota bool) []string { //nolint:revive // a fact about the cluster
	list := []string{etcd, apiServer}
	if nativeQuota {
		list = append(list, manager)
	}
	return list
}

func (l *local) start(ctx context.Context, s state) (err error) {
	// Parts that run without the others are left from a start that crashed.
	if err := l.endAll(ctx, 0); err != nil {
		return err
	}
	if err := l.writeFiles(s); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, l.endAll(ctx, 0))
		}
	}()

	store, err := l.run(ctx, s, etcd, etcdArgs(l.dir, s))
	if err != nil {
		return err
	}
	if err := store.named(awaitHTTP(ctx, plainClient(), etcdURL(s.Ports.Etcd)+"/health", store.ended)); err != nil {
		return err
	}
	server, err := l.run(ctx, s, apiServer, apiServerArgs(l.dir, s))
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(l.dir, adminKubeconfig))
	if err != nil {
		return err
	}
	if err := server.named(awaitAPI(ctx, config, server.ended)); err != nil {
		return err
	}
	if s.NativeQuota {
		return l.startManager(ctx, s)
	}
	return nil
}

func (l *local) startManager(ctx context.Context, s state) error {
	c, err := l.run(ctx, s, manager, managerArgs(l.dir, s))
	if err != nil {
		return err
	}
	return c.named(awaitHTTP(ctx, plainClient(), "https://"+loopback(s.Ports.Manager)+"/healthz", c.ended))
}

// plainClient reads the health of a program on loopback, which may serve with
// a certificate that it signed itself.
func plainClient() *http.Client {
	return &http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // health only, on loopback
		DisableKeepAlives: true,
	}}
}

// named puts the program's own last words in place of a bare "it ended".
func (c *child) named(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errBroken):
		return c.failure()
	default:
		return fmt.Errorf("wait for %s: %w", c.name, err)
	}
}

func (l *local) run(ctx context.Context, s state, program string, args []string) (*child, error) {
	r := release{version: s.Version, assets: s.Assets}
	if err := l.tools.ensure(ctx, r, program); err != nil {
		return nil, err
	}
	c, err := process{name: program, dir: l.dir}.start(ctx, l.lifetime, l.tools.path(r, program), args)
	if c != nil {
		l.children[program] = c
	}
	return c, err
}

// end stops one program and waits until nothing of it is left.
func (l *local) end(ctx context.Context, program string, grace time.Duration) error {
	if err := (process{name: program, dir: l.dir}).stop(ctx, grace); err != nil {
		return err
	}
	if c := l.children[program]; c != nil {
		<-c.ended
		delete(l.children, program)
	}
	return nil
}

// endAll stops the cluster from the outside in, so that each program still
// finds what it needs to end well.
func (l *local) endAll(ctx context.Context, grace time.Duration) error {
	for _, program := range []string{manager, apiServer, etcd} {
		if err := l.end(ctx, program, grace); err != nil {
			return err
		}
	}
	return nil
}

func (l *local) do(ctx context.Context, s state, a action) error {
	switch a {
	case freeze:
		return l.signalAll(syscall.SIGSTOP, apiServer, etcd)
	case thaw:
		return l.signalAll(syscall.SIGCONT, etcd, apiServer)
	case kill:
		return l.endAll(ctx, 0)
	case stop:
		return l.endAll(ctx, stopGrace)
	case stopQuota:
		return l.end(ctx, manager, stopGrace)
	case startQuota:
		if running, _ := (process{name: manager, dir: l.dir}).find(); running != nil {
			return running.Release()
		}
		return l.startManager(ctx, s)
	}
	return fmt.Errorf("unknown action %q", a)
}

// signalAll sends a signal to programs that must all be there.
func (l *local) signalAll(signal syscall.Signal, names ...string) error {
	for _, name := range names {
		p := process{name: name, dir: l.dir}
		running, _ := p.find()
		if running == nil {
			return fmt.Errorf("%s does not run", name)
		}
		_ = running.Release() //nolint:errcheck // cannot fail
		if err := p.signal(signal); err != nil {
			return err
		}
	}
	return nil
}

func (l *local) status(_ context.Context, s state) (Status, error) {
	var letters []byte // of the programs that run
	for _, program := range programs(s.NativeQuota) {
		running, letter := process{name: program, dir: l.dir}.find()
		if running == nil {
			continue
		}
		_ = running.Release() //nolint:errcheck // cannot fail
		letters = append(letters, letter)
	}
	switch {
	case len(letters) == 0:
		return Stopped, nil
	case slices.Contains(letters, 'T'):
		return Frozen, nil
	case len(letters) < len(programs(s.NativeQuota)):
		return Broken, nil
	default:
		return Running, nil
	}
}

func (l *local) remove(ctx context.Context, _ state) error {
	return l.endAll(ctx, 0)
}

// writeFiles writes all that the programs read. Keys and certificates stay as
// they are once they exist.
func (l *local) writeFiles(s state) error {
	if err := writePKI(l.dir, s.Name); err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(l.dir, auditPolicyFile), []byte(auditPolicy)); err != nil {
		return err
	}
	ca, err := loadAuthority(l.dir)
	if err != nil {
		return err
	}
	server := "https://" + loopback(s.Ports.API)
	for file, identity := range map[string][]string{
		adminKubeconfig:   {"fleet-admin", "system:masters"},
		managerKubeconfig: {"system:kube-controller-manager"},
	} {
		path := filepath.Join(l.dir, file)
		if _, err := os.Stat(path); err == nil {
			continue
		}
		text, err := ca.kubeconfigFor(s.Name, server, identity[0], identity[1:])
		if err != nil {
			return err
		}
		if err := replaceFile(path, text); err != nil {
			return err
		}
	}
	return nil
}
