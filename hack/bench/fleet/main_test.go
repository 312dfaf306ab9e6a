package main_test

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/fleetquota/fleetquota/hack/bench/synthetic"
)

func TestTheFleetEndsWithItsInputAndLeavesNothing(t *testing.T) {
	program := filepath.Join(t.TempDir(), "fleet")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	temporary := t.TempDir()
	c := exec.CommandContext(t.Context(), program, "-members", "2", "-pods", "10")
	c.Env = append(os.Environ(), "TMPDIR="+temporary)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	var members []synthetic.Address
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &members) != nil || len(members) != 2 {
		t.Fatalf("the first line is %q", lines.Text())
	}
	if _, err := os.Stat(members[1].Kubeconfig); err != nil {
		t.Error(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(10 * time.Second):
		t.Error("it goes on")
	}
	left, err := filepath.Glob(filepath.Join(temporary, "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}
