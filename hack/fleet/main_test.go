package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeDocker puts a docker in the path that fails as the real one does without
// its engine.
func fakeDocker(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\necho 'Cannot connect to the Docker daemon.' >&2\nexit 1\n"
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/bin:/usr/bin")
}

func TestRun(t *testing.T) {
	fakeDocker(t)
	for sentence, tc := range map[string]struct {
		args   []string
		status int
		out    string // contained in the output
		errOut string // the whole of it
	}{
		"without arguments it explains itself": {
			args: nil, out: "Runs a handful of real Kubernetes clusters",
		},
		"an empty fleet is a list with a head": {
			args: []string{"list"}, out: "NAME   PROVIDER   VERSION   ADDRESS   STATUS   NATIVE-QUOTA\n",
		},
		"kind without Docker says what to do instead": {
			args: []string{"up", "--provider", "kind"}, status: 1,
			errOut: "fleet: provider kind needs a running Docker engine: " +
				"docker version: Cannot connect to the Docker daemon.; use --provider local\n",
		},
		"an unknown provider is refused": {
			args: []string{"up", "--provider", "vm"}, status: 1,
			errOut: "fleet: unknown provider \"vm\": use local or kind\n",
		},
		"a quota controller needs a cluster": {
			args: []string{"up", "--clusters", "a", "--native-quota", "b"}, status: 1,
			errOut: "fleet: --native-quota names \"b\", which is none of the clusters\n",
		},
		"going down twice is no error": {args: []string{"down"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Setenv("FLEET_DIR", t.TempDir())
			var out, errOut strings.Builder
			if status := run(tc.args, &out, &errOut); status != tc.status {
				t.Errorf("exit status %d, want %d", status, tc.status)
			}
			if !strings.Contains(out.String(), tc.out) {
				t.Errorf("output %q lacks %q", out.String(), tc.out)
			}
			if errOut.String() != tc.errOut {
				t.Errorf("errors %q, want %q", errOut.String(), tc.errOut)
			}
		})
	}
}

func TestEveryClusterCommandNamesTheMissingCluster(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("FLEET_DIR", dir)
	for _, command := range []string{"freeze", "thaw", "kill", "restart", "kubeconfig", "down"} {
		var out, errOut strings.Builder
		status := run([]string{command, "nobody"}, &out, &errOut)
		if want := "fleet: no cluster \"nobody\" in " + dir + "\n"; status != 1 || errOut.String() != want {
			t.Errorf("%s: status %d, errors %q, want %q", command, status, errOut.String(), want)
		}
	}
}
