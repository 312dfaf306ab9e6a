package scene

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process is the hub as the program that users run.
type Process struct {
	Log     string // the file of its log
	Metrics string // http://address/metrics
	Health  string // http://address

	command *exec.Cmd
	ended   chan struct{} // closed once it has
	err     error         // valid once ended is closed
}

// BuildHub builds the hub's program and the kubectl plugin, once for a scene:
// a hub that is started again is the same program.
func (s *Scene) BuildHub(ctx context.Context) error {
	s.build.Lock()
	defer s.build.Unlock()
	if s.built {
		return nil
	}
	if err := BuildPrograms(ctx, s.Root, s.Bin); err != nil {
		return err
	}
	s.built = true
	return nil
}

// BuildPrograms builds the hub's program and the kubectl plugin from a checkout
// into a folder.
func BuildPrograms(ctx context.Context, root, into string) error {
	if err := os.MkdirAll(into, 0o750); err != nil {
		return err
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", into+string(filepath.Separator), "./cmd/...")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the hub: %w\n%s", err, out)
	}
	return nil
}

// StartHub starts the hub's program with the rights of its account, and waits
// until it leads or stands by. The flags come after those that it needs.
func (s *Scene) StartHub(ctx context.Context, flags ...string) (*Process, error) {
	if err := s.BuildHub(ctx); err != nil {
		return nil, err
	}
	token, err := s.Hub.token(ctx, "fleetquota-controller", 24*time.Hour)
	if err != nil {
		return nil, err
	}
	config, err := kubeconfig(s.Hub, token)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.hubs++
	name := "hub"
	if s.hubs > 1 {
		name += "-" + strconv.Itoa(s.hubs)
	}
	s.mu.Unlock()
	path := filepath.Join(s.Dir, name+".kubeconfig")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		return nil, err
	}
	return s.startHub(ctx, name, append([]string{"--kubeconfig", path, "--namespace", Namespace, "-v=2"}, flags...))
}

func (s *Scene) startHub(ctx context.Context, name string, flags []string) (*Process, error) {
	metrics, health, err := twoPorts(ctx)
	if err != nil {
		return nil, err
	}
	p := &Process{
		Log: filepath.Join(s.Dir, name+".log"), Metrics: "http://" + metrics + "/metrics", Health: "http://" + health,
		ended: make(chan struct{}),
	}
	log, err := os.OpenFile(p.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	flags = append(flags, "--metrics-bind-address", metrics, "--health-probe-bind-address", health)
	p.command = exec.Command(filepath.Join(s.Bin, "fleetquota-hub"), flags...) //nolint:noctx // our own program; Stop ends it
	p.command.Stdout, p.command.Stderr = log, log
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start the hub: %w", err)
	}
	if err := Eventually(ctx, 30*time.Second, p.ready); err != nil {
		return nil, errors.Join(fmt.Errorf("wait for the hub, see %s: %w", p.Log, err), p.Kill())
	}
	return p, nil
}

func (p *Process) ready(ctx context.Context) error {
	_, err := p.Ready(ctx)
	return err
}

// Ready asks the hub for its readiness: leading, or standby.
func (p *Process) Ready(ctx context.Context) (string, error) {
	if err := p.Ended(); err != nil {
		return "", err
	}
	text, err := read(ctx, p.Health+"/readyz")
	return strings.TrimSpace(text), err
}

// read is what a GET answers.
func read(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return "", errors.New(response.Status)
	}
	body, err := io.ReadAll(response.Body)
	return string(body), err
}

// Scrape reads the hub's metrics, as text.
func (p *Process) Scrape(ctx context.Context) (string, error) { return read(ctx, p.Metrics) }

// Ended says how the hub has ended; nil while it runs.
func (p *Process) Ended() error {
	select {
	case <-p.ended:
		return fmt.Errorf("the hub has ended, see %s: %w", p.Log, errors.Join(p.err, errEnded))
	default:
		return nil
	}
}

var errEnded = errors.New("nobody asked it to")

// Stop asks the hub to end, and says how long that took.
func (p *Process) Stop() (time.Duration, error) {
	began := time.Now()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	select {
	case <-p.ended:
		return time.Since(began), p.err
	case <-time.After(20 * time.Second):
		return time.Since(began), errors.Join(errors.New("the hub does not end"), p.Kill())
	}
}

// Kill ends the hub at once, as a loss of power would.
func (p *Process) Kill() error {
	err := p.command.Process.Kill()
	<-p.ended
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// PID is the hub's process id.
func (p *Process) PID() int { return p.command.Process.Pid }

// twoPorts finds two addresses on loopback that nobody uses.
func twoPorts(ctx context.Context) (first, second string, err error) {
	a, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	defer a.Close()
	b, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", "", err
	}
	defer b.Close()
	return a.Addr().String(), b.Addr().String(), nil
}
