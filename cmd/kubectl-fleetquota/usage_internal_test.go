package main

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// update rewrites the transcripts with what the commands print now.
var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// TestUsage runs the commands of each transcript again. A line with a $ is a
// command, lines with ! are what it says on standard error, and an exit code
// other than 0 stands at its end.
func TestUsage(t *testing.T) {
	transcripts, err := filepath.Glob("testdata/usage/*.txt")
	if err != nil || len(transcripts) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for i := range transcripts {
		transcripts[i] = filepath.Base(transcripts[i])
	}
	t.Chdir("testdata/usage")
	for _, name := range transcripts {
		t.Run(strings.TrimSuffix(name, ".txt"), func(t *testing.T) { replay(t, name) })
	}
}

func replay(t *testing.T, name string) {
	t.Helper()
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for line := range strings.Lines(string(want)) {
		switch {
		case strings.HasPrefix(line, "#"):
			got.WriteString(line)
		case strings.HasPrefix(line, "$ "):
			got.WriteString(line + transcribe(t, strings.TrimSpace(line[2:])) + "\n")
		}
	}
	if *update {
		if err := os.WriteFile(name, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got.String() != string(want) {
		t.Errorf("%s is no longer what is printed; go test -run TestUsage -update writes it anew. Now it is:\n%s", name, got.String())
	}
}

// transcribe runs one command and writes down all that it does.
func transcribe(t *testing.T, command string) string {
	t.Helper()
	command, from, _ := strings.Cut(command, " < ")
	args := strings.Fields(command)
	if len(args) < 2 || args[0] != "kubectl" || args[1] != "fleetquota" {
		t.Fatalf("no command of ours: %s", command)
	}
	var in io.Reader = strings.NewReader("")
	if from != "" {
		text, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		in = bytes.NewReader(text)
	}
	var out, errOut bytes.Buffer
	s := shell{IOStreams: genericiooptions.IOStreams{In: in, Out: &out, ErrOut: &errOut}, now: noon}
	code := run(t.Context(), append([]string{"kubectl-fleetquota"}, args[2:]...), s)
	text, _, _ := strings.Cut(out.String(), "\nGlobal Flags:") // these are of all commands, and of this machine
	for line := range strings.Lines(errOut.String()) {
		text += "! " + line
	}
	if code != 0 {
		text += "exit code " + strconv.Itoa(code) + "\n"
	}
	return text
}
