// Package check compares the two sides, and shows where they differ.
package check

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/fleetquota/fleetquota/hack/conformance/answer"
)

// evaluators is the package that upstream answers with.
const evaluators = "k8s.io/kubernetes/pkg/quota/v1/evaluator/core"

// Build builds the program that answers for a minor version, such as "1.37",
// into a folder. It counts the statements of the evaluators that it runs. The
// first build of a version takes minutes.
func Build(ctx context.Context, minor, folder string) (string, error) {
	program := filepath.Join(folder, "v"+minor)
	// Nothing is written unless the program's own package is covered too.
	command := exec.CommandContext(ctx, "go", "build", "-cover", "-coverpkg=.,"+evaluators, "-o", program, ".")
	command.Dir = filepath.Join(Folder(), "v"+minor)
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build upstream's evaluators of %s: %w\n%s", minor, err, output)
	}
	return program, nil
}

// Folder is where this module is, as seen from its packages.
func Folder() string {
	if _, err := os.Stat("testdata"); err == nil {
		return "."
	}
	return ".."
}

// Upstream is a running program that answers for one version.
type Upstream struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// Start starts a program that [Build] has built, with these feature gates set.
// What it has covered is written below the folder when it ends.
func Start(ctx context.Context, program, coverage string, gates ...string) (*Upstream, error) {
	command := exec.CommandContext(ctx, program, gates...)
	command.Env = append(os.Environ(), "GOCOVERDIR="+coverage)
	command.Stderr = os.Stderr
	in, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("start upstream: %w", err)
	}
	return &Upstream{command: command, in: in, out: bufio.NewReaderSize(out, 1<<20)}, nil
}

// Ask puts a question. Answers come in the same order.
func (u *Upstream) Ask(world *answer.World) error {
	line, err := json.Marshal(world)
	if err != nil {
		return err
	}
	_, err = u.in.Write(append(line, '\n'))
	return err
}

// Next is the next answer.
func (u *Upstream) Next() (string, error) {
	line, err := u.out.ReadBytes('\n')
	if err != nil {
		return "", fmt.Errorf("read upstream's answer: %w", err)
	}
	var text string
	return text, json.Unmarshal(line, &text)
}

// Stop lets the program end.
func (u *Upstream) Stop() error {
	if err := u.in.Close(); err != nil {
		return err
	}
	return u.command.Wait()
}
