package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/kind/pkg/cluster"
)

// kindNode runs one cluster as one kind node in Docker.
type kindNode struct {
	dir string
	out io.Writer
}

// name is the cluster's name for kind. It names our folder too, so that two
// fleets, or a user's own clusters, never mix.
func (k *kindNode) name(s state) string {
	return fmt.Sprintf("fleet-%08x-%s", hashOf(k.dir), s.Name)
}

func (k *kindNode) node(s state) string { return k.name(s) + "-control-plane" }

func (k *kindNode) provider() *cluster.Provider {
	return cluster.NewProvider(cluster.ProviderWithDocker())
}

// docker runs one command of the Docker client and returns what it prints.
func docker(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", args...)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil {
		return strings.TrimSpace(string(out)), nil
	}
	if text := strings.Join(strings.Fields(stderr.String()), " "); text != "" {
		err = errors.New(text)
	}
	return "", fmt.Errorf("docker %s: %w", args[0], err)
}

// dockerAnswers says in one line why clusters of kind cannot run here.
func dockerAnswers(ctx context.Context) error {
	if _, err := docker(ctx, "version", "--format", "{{.Server.Version}}"); err != nil {
		return fmt.Errorf("provider kind needs a running Docker engine: %w; use --provider local", err)
	}
	return nil
}

func (k *kindNode) start(ctx context.Context, s state) error {
	if err := dockerAnswers(ctx); err != nil {
		return err
	}
	status, err := k.container(ctx, s)
	if err != nil {
		return err
	}
	switch status {
	case "":
		err = k.create(ctx, s)
	case "paused":
		_, err = docker(ctx, "unpause", k.node(s))
	case "running":
	default:
		_, err = docker(ctx, "start", k.node(s))
	}
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(k.dir, adminKubeconfig))
	if err == nil {
		err = awaitAPI(ctx, config, nil)
	}
	if err != nil {
		return errors.Join(err, k.do(context.WithoutCancel(ctx), s, kill))
	}
	return k.shareAuditLog(ctx, s)
}

func (k *kindNode) create(ctx context.Context, s state) error {
	audit := filepath.Join(k.dir, kindAuditFolder)
	if err := os.MkdirAll(audit, 0o700); err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(audit, auditPolicyFile), []byte(auditPolicy)); err != nil {
		return err
	}
	config, err := kindConfig(k.dir, s)
	if err != nil {
		return err
	}
	fmt.Fprintf(k.out, "%s: making a kind cluster from %s; the image is fetched first if it is missing\n",
		s.Name, kindImage(s.Version))
	err = k.provider().Create(k.name(s),
		cluster.CreateWithV1Alpha4Config(config),
		cluster.CreateWithKubeconfigPath(filepath.Join(k.dir, adminKubeconfig)))
	if err == nil {
		err = ctx.Err() // kind does not listen to contexts
	}
	if err == nil {
		err = k.saveAuthority(ctx, s)
	}
	if err != nil {
		return errors.Join(err, k.remove(context.WithoutCancel(ctx), s))
	}
	return nil
}

// saveAuthority copies the CA, with which kubeconfigs for other users are made.
func (k *kindNode) saveAuthority(ctx context.Context, s state) error {
	files := map[string][]byte{}
	for _, name := range []string{caCert, caKey} {
		text, err := docker(ctx, "exec", k.node(s), "cat", "/etc/kubernetes/pki/"+name)
		if err != nil {
			return err
		}
		files[name] = []byte(text + "\n")
	}
	return writeFolder(filepath.Join(k.dir, pkiFolder), files)
}

// shareAuditLog lets tests read the log, which belongs to root.
func (k *kindNode) shareAuditLog(ctx context.Context, s state) error {
	_, err := docker(ctx, "exec", k.node(s), "chmod", "a+r", kindAuditMount+"/"+auditLogFile)
	return err
}

func (k *kindNode) do(ctx context.Context, s state, a action) error {
	status, err := k.container(ctx, s)
	if err != nil {
		return err
	}
	if status == "" {
		if a == stop || a == kill {
			return nil
		}
		return fmt.Errorf("node %s does not exist", k.node(s))
	}
	for _, args := range kindCommands(k.node(s), a, status) {
		if _, err := docker(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

// kindCommands lists the Docker commands for an action on a node whose
// container has the given status.
func kindCommands(node string, a action, status string) [][]string {
	runs := slices.Contains([]string{"running", "paused", "restarting"}, status)
	var commands [][]string
	if status == "paused" && a != freeze {
		commands = append(commands, []string{"unpause", node})
	}
	switch a {
	case freeze:
		if status != "paused" {
			commands = append(commands, []string{"pause", node})
		}
	case thaw:
	case kill, stop:
		if runs {
			commands = append(commands, []string{string(a), node})
		}
	case startQuota:
		commands = append(commands, editControllers(node, `s/,`+withoutQuota+`//`))
	case stopQuota:
		commands = append(commands, editControllers(node, `/`+withoutQuota+`/!s/\(--controllers=.*\)$/\1,`+withoutQuota+`/`))
	}
	return commands
}

// editControllers changes the controller manager's manifest; kubelet then
// restarts it. The file is written in place, since kubelet would take a
// temporary one beside it for a second manifest.
func editControllers(node, expression string) []string {
	const manifest = "/etc/kubernetes/manifests/kube-controller-manager.yaml"
	script := fmt.Sprintf("sed '%s' %s >/tmp/manager.yaml && cat /tmp/manager.yaml >%s", expression, manifest, manifest)
	return []string{"exec", node, "sh", "-c", script}
}

func (k *kindNode) status(ctx context.Context, s state) (Status, error) {
	status, err := k.container(ctx, s)
	if err != nil {
		return "", err
	}
	switch status {
	case "running":
		return Running, nil
	case "paused":
		return Frozen, nil
	case "restarting", "dead":
		return Broken, nil
	default:
		return Stopped, nil
	}
}

// container is Docker's word for the state of the node; empty if there is none.
func (k *kindNode) container(ctx context.Context, s state) (string, error) {
	return docker(ctx, "ps", "--all", "--filter", "name=^/?"+k.node(s)+"$", "--format", "{{.State}}")
}

func (k *kindNode) remove(ctx context.Context, s state) error {
	if err := dockerAnswers(ctx); err != nil {
		return err
	}
	return k.provider().Delete(k.name(s), filepath.Join(k.dir, adminKubeconfig))
}
