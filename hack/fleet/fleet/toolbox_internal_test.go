package fleet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// write makes a file and the folders above it.
func write(t *testing.T, content string, path ...string) {
	t.Helper()
	file := filepath.Join(path...)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(content), 0o700); err != nil {
		t.Fatal(err)
	}
}

// checkout makes a repository that pins two versions.
func checkout(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	write(t, "module "+modulePath+"\n", root, "go.mod")
	for _, version := range []string{"v1.36.3", "v1.37.2"} {
		write(t, "require k8s.io/kubernetes "+version+"\n",
			root, "hack", "fleet", "kubernetes", "v"+minorOf(version), "go.mod")
	}
	return root
}

func TestWhichVersionIsMeant(t *testing.T) {
	t.Parallel()
	root, assets := checkout(t), t.TempDir()
	write(t, "#!/bin/sh\necho Kubernetes v1.36.0\n", assets, apiServer)
	for sentence, tc := range map[string]struct {
		wanted, assets, version, fails string
	}{
		"the newest by default":           {version: "v1.37.2"},
		"a minor version":                 {wanted: "1.36", version: "v1.36.3"},
		"a minor version with a v":        {wanted: "v1.36", version: "v1.36.3"},
		"a pinned patch version":          {wanted: "1.36.3", version: "v1.36.3"},
		"another patch version":           {wanted: "1.36.9", fails: "run hack/fleet/kubernetes/pin.sh v1.36.9"},
		"an unknown minor version":        {wanted: "1.29", fails: "not one of v1.36.3, v1.37.2"},
		"what is prebuilt by default":     {assets: assets, version: "v1.36.0"},
		"another one than what there is":  {wanted: "1.37", assets: assets, version: "v1.37.2"},
		"a folder without prebuilt files": {assets: root, fails: "KUBEBUILDER_ASSETS"},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			got, err := toolbox{root: root, assets: tc.assets}.release(t.Context(), tc.wanted)
			if tc.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tc.fails) {
					t.Errorf("got %v, want an error with %q", err, tc.fails)
				}
				return
			}
			if err != nil || got.version != tc.version {
				t.Errorf("got %q, %v, want %q", got.version, err, tc.version)
			}
		})
	}
}

func TestWhatIsNotPrebuiltIsOurs(t *testing.T) {
	t.Parallel()
	root, assets := checkout(t), t.TempDir()
	write(t, "", assets, apiServer)
	tools, r := toolbox{root: root}, release{version: "v1.36.0", assets: assets}
	if got, want := tools.path(r, apiServer), filepath.Join(assets, apiServer); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := tools.path(r, manager), filepath.Join(root, "bin/kubernetes/v1.36.3", manager); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestLinkFlags(t *testing.T) {
	t.Parallel()
	const component = " -X k8s.io/component-base/version."
	want := "-s -w" + component + "gitVersion=v1.37.2" + component + "gitMajor=1" + component + "gitMinor=37"
	if got := linkFlags(apiServer, "v1.37.2"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := linkFlags(etcd, "v1.37.2"); got != "-s -w" {
		t.Errorf("etcd: got %q", got)
	}
}

func TestRootIsFoundFromBelow(t *testing.T) {
	t.Parallel()
	root := checkout(t)
	below := filepath.Join(root, "hack", "fleet", "kubernetes")
	if got := findRoot(below); got != root {
		t.Errorf("got %q, want %q", got, root)
	}
	if got := findRoot(t.TempDir()); got != "" {
		t.Errorf("outside of a checkout: got %q", got)
	}
}
