package scenario

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"

	"github.com/fleetquota/fleetquota/hack/bench/synthetic"
)

// player is a synthetic fleet in a process of its own. It ends when its input
// does, and so with this process.
type player struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Scanner
	members []synthetic.Address
}

// play starts a fleet and returns when all its members are served.
func play(ctx context.Context, root, dir string, o Options) (*player, error) {
	program := filepath.Join(o.Bin, "fleet")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "./fleet")
	build.Dir = filepath.Join(root, "hack", "bench")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the synthetic fleet: %w\n%s", err, out)
	}
	p := &player{command: exec.CommandContext(context.WithoutCancel(ctx), program,
		"-members", strconv.Itoa(o.Members), "-pods", strconv.Itoa(o.Pods), "-namespaces", strconv.Itoa(o.Namespaces), "-dir", dir)}
	p.command.Stderr = os.Stderr
	in, err := p.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewScanner(out)
	const longest = 4 << 20
	p.out.Buffer(nil, longest)
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("start the synthetic fleet: %w", err)
	}
	if err := p.read(&p.members); err != nil {
		return nil, errors.Join(fmt.Errorf("wait for the synthetic fleet: %w", err), p.close())
	}
	return p, nil
}

// ask sends a command and reads its answer.
func (p *player) ask(command string, answer any) error {
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		return fmt.Errorf("tell the synthetic fleet to %s: %w", command, err)
	}
	if err := p.read(answer); err != nil {
		return fmt.Errorf("read what the synthetic fleet says to %s: %w", command, err)
	}
	return nil
}

func (p *player) read(answer any) error {
	if !p.out.Scan() {
		return errors.Join(io.ErrUnexpectedEOF, p.out.Err())
	}
	return json.Unmarshal(p.out.Bytes(), answer)
}

func (p *player) churn(perSecond int) error {
	var said struct {
		Churn int `json:"churn"`
	}
	if err := p.ask("churn "+strconv.Itoa(perSecond), &said); err != nil {
		return err
	}
	if said.Churn != perSecond {
		return fmt.Errorf("the synthetic fleet does not change %d pods a second", perSecond)
	}
	return nil
}

func (p *player) truth() (truth map[string]synthetic.Use, err error) {
	err = p.ask("truth", &truth)
	return truth, err
}

func (p *player) stats() (stats synthetic.Stats, err error) {
	err = p.ask("stats", &stats)
	return stats, err
}

// close ends the fleet.
func (p *player) close() error {
	_ = p.in.Close()
	return p.command.Wait()
}
