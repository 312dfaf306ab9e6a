package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The programs of a local cluster; also the names of their files and logs.
const (
	etcd       = "etcd"
	apiServer  = "kube-apiserver"
	manager    = "kube-controller-manager"
	modulePath = "github.com/fleetquota/fleetquota"

	defaultMinor = "1.37"
)

// toolbox knows where the programs of each version are and builds what is
// missing.
type toolbox struct {
	root   string // of the repository; empty outside of one
	assets string // folder of prebuilt programs; may be empty
	out    io.Writer
}

// release is one version of Kubernetes and where its programs come from.
type release struct {
	version string // as in v1.37.2
	assets  string // empty: built by us
}

// release turns what a user asked for, such as 1.36 or nothing, into a version.
// Prebuilt programs are used unless another minor version is asked for.
func (t toolbox) release(ctx context.Context, wanted string) (release, error) {
	if t.assets == "" {
		version, err := t.pinned(wanted)
		return release{version: version}, err
	}
	version, err := versionOf(ctx, filepath.Join(t.assets, apiServer))
	if err != nil {
		return release{}, fmt.Errorf("prebuilt programs in KUBEBUILDER_ASSETS: %w", err)
	}
	if wanted == "" || minorOf(wanted) == minorOf(version) {
		return release{version: version, assets: t.assets}, nil
	}
	pinned, err := t.pinned(wanted)
	return release{version: pinned}, err
}

// path is where a program of a release is, built or not.
func (t toolbox) path(r release, program string) string {
	version := r.version
	if r.assets != "" {
		prebuilt := filepath.Join(r.assets, program)
		if isFile(prebuilt) {
			return prebuilt
		}
		// Sets of prebuilt programs often lack the controller manager: then
		// ours, of the same minor version.
		if pinned, err := t.pinned(minorOf(version)); err == nil {
			version = pinned
		}
	}
	return filepath.Join(t.root, "bin", "kubernetes", version, program)
}

// pinned is the patch version of a minor version that we can build.
func (t toolbox) pinned(wanted string) (string, error) {
	minor := minorOf(wanted)
	if wanted == "" {
		minor = defaultMinor
	}
	served, err := t.served()
	if err != nil {
		return "", err
	}
	for _, version := range served {
		if minorOf(version) != minor {
			continue
		}
		if patch := "v" + strings.TrimPrefix(wanted, "v"); strings.Count(patch, ".") == 2 && patch != version {
			return "", fmt.Errorf("version %s of Kubernetes is not pinned, %s is: run hack/fleet/kubernetes/pin.sh %s to change that",
				patch, version, patch)
		}
		return version, nil
	}
	return "", fmt.Errorf("version %s of Kubernetes is not one of %s", wanted, strings.Join(served, ", "))
}

// served lists the versions that we can build, oldest first.
func (t toolbox) served() ([]string, error) {
	if t.root == "" {
		return nil, errors.New("run fleet inside a checkout of fleetquota, where it finds what to build")
	}
	modules, err := filepath.Glob(filepath.Join(t.root, "hack", "fleet", "kubernetes", "v*", "go.mod"))
	if err != nil {
		return nil, err
	}
	requirement := regexp.MustCompile(`k8s\.io/kubernetes (v[0-9.]+)`)
	var versions []string
	for _, module := range modules {
		text, err := os.ReadFile(module)
		if err != nil {
			return nil, err
		}
		if match := requirement.FindSubmatch(text); match != nil {
			versions = append(versions, string(match[1]))
		}
	}
	if len(versions) == 0 {
		return nil, fmt.Errorf("nothing is pinned below %s", filepath.Join(t.root, "hack", "fleet", "kubernetes"))
	}
	slices.Sort(versions)
	return versions, nil
}

// minorOf cuts v1.37.2 and 1.37.2 to 1.37.
func minorOf(version string) string {
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	return strings.Join(parts[:min(2, len(parts))], ".")
}

// versionOf asks a program for its version.
func versionOf(ctx context.Context, path string) (string, error) {
	out, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", path, err)
	}
	version := regexp.MustCompile(`v\d+\.\d+\.\d+\S*`).FindString(string(out))
	if version == "" {
		return "", fmt.Errorf("ask %s for its version: it says %q", path, strings.TrimSpace(string(out)))
	}
	return version, nil
}

// findRoot walks up from a folder to the checkout around it; empty if there is none.
func findRoot(dir string) string {
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && slices.Contains(strings.Split(string(text), "\n"), "module "+modulePath) {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
