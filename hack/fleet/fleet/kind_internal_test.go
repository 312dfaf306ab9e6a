package fleet

import (
	"io"
	"reflect"
	"strings"
	"testing"

	"sigs.k8s.io/kind/pkg/apis/config/defaults"
)

func TestKindWithoutDockerSaysSo(t *testing.T) {
	for sentence, script := range map[string]string{
		"no engine": "#!/bin/sh\necho 'Cannot connect to the Docker daemon.' >&2\nexit 1\n",
		"no client": "",
	} {
		t.Run(sentence, func(t *testing.T) {
			dir := t.TempDir()
			if script != "" {
				write(t, script, dir, "docker")
			}
			t.Setenv("PATH", dir)
			f, err := New(Options{Dir: t.TempDir(), Provider: Kind})
			if err != nil {
				t.Fatal(err)
			}
			err = f.Up(t.Context(), Spec{Name: "a"})
			if err == nil {
				t.Fatal("no error")
			}
			text := err.Error()
			if !strings.HasPrefix(text, "provider kind needs a running Docker engine: ") ||
				!strings.HasSuffix(text, "; use --provider local") || strings.Contains(text, "\n") {
				t.Errorf("got %q", text)
			}
			if len(f.Clusters()) != 0 {
				t.Error("a cluster was noted that cannot be")
			}
		})
	}
}

func TestKindVersions(t *testing.T) {
	t.Parallel()
	builtIn := imageVersion(defaults.Image)
	for wanted, want := range map[string]string{
		"": builtIn, minorOf(builtIn): builtIn, "v" + minorOf(builtIn): builtIn, "1.30": "v1.30.0", "1.30.4": "v1.30.4",
	} {
		if got := kindVersion(wanted); got != want {
			t.Errorf("%q: got %q, want %q", wanted, got, want)
		}
	}
	if got := kindImage(builtIn); got != defaults.Image {
		t.Errorf("the built-in image is %q", got)
	}
	if got := kindImage("v1.30.4"); got != "kindest/node:v1.30.4" {
		t.Errorf("another image is %q", got)
	}
}

func TestKindConfigKeepsThePortAndLogsWrites(t *testing.T) {
	t.Parallel()
	s := state{Name: "a", Version: "v1.36.1", Ports: ports{API: 20001}, ExtraArgs: []string{"--v=4"}, NativeArgs: []string{"--v=5"}}
	config, err := kindConfig("/f/a", s)
	if err != nil {
		t.Fatal(err)
	}
	if got := config.Networking; got.APIServerPort != 20001 || got.APIServerAddress != "127.0.0.1" {
		t.Errorf("the address is %+v", got)
	}
	if got := config.Nodes[0]; got.Image != "kindest/node:v1.36.1" || got.ExtraMounts[0].HostPath != "/f/a/audit" {
		t.Errorf("the node is %+v", got)
	}
	want := map[string]string{
		"v1beta3": `{"op":"add","path":"/apiServer/extraArgs/v","value":"4"}`,
		"v1beta4": `{"op":"add","path":"/apiServer/extraArgs/-","value":{"name":"v","value":"4"}}`,
	}
	for _, patch := range config.KubeadmConfigPatchesJSON6902 {
		native := strings.NewReplacer("apiServer", "controllerManager", `"4"`, `"5"`).Replace(want[patch.Version])
		for _, part := range []string{want[patch.Version], native, "audit-log-path", withoutQuota} {
			if !strings.Contains(patch.Patch, part) {
				t.Errorf("the patch for %s lacks %s: %s", patch.Version, part, patch.Patch)
			}
		}
		delete(want, patch.Version)
	}
	if len(want) != 0 {
		t.Errorf("no patch for %v", want)
	}
}

func TestKindCommands(t *testing.T) {
	t.Parallel()
	for sentence, tc := range map[string]struct {
		action action
		status string
		want   [][]string
	}{
		"freeze pauses":                 {freeze, "running", [][]string{{"pause", "n"}}},
		"freeze twice does nothing":     {freeze, "paused", nil},
		"thaw goes on":                  {thaw, "paused", [][]string{{"unpause", "n"}}},
		"thaw of a running one is fine": {thaw, "running", nil},
		"stop stops":                    {stop, "running", [][]string{{"stop", "n"}}},
		"a paused one goes on first":    {kill, "paused", [][]string{{"unpause", "n"}, {"kill", "n"}}},
		"a stopped one stays so":        {kill, "exited", nil},
	} {
		if got := kindCommands("n", tc.action, tc.status); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: got %v, want %v", sentence, got, tc.want)
		}
	}
}

func TestKindNamesTellFoldersApart(t *testing.T) {
	t.Parallel()
	one, two := &kindNode{dir: "/f/a", out: io.Discard}, &kindNode{dir: "/g/a", out: io.Discard}
	if one.name(state{Name: "a"}) == two.name(state{Name: "a"}) {
		t.Error("two fleets share a name")
	}
}

func TestExtraArgumentsNeedAValue(t *testing.T) {
	t.Parallel()
	for _, flag := range []string{"v=4", "--v", "-v=4"} {
		if _, err := parseArguments([]string{flag}); err == nil {
			t.Errorf("%q is accepted", flag)
		}
	}
}
