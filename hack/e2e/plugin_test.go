package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// plugin runs kubectl-fleetquota as a user with a kubeconfig of both clusters
// does.
type plugin struct {
	*tenant

	kubeconfig string
	said       bytes.Buffer // all that it ever printed
}

// plugin makes the kubeconfig: the contexts hub, which is current, and those of
// the members.
func (x *tenant) plugin(members ...string) *plugin {
	x.t.Helper()
	merged := clientcmdapi.NewConfig()
	for _, cluster := range append([]string{scene.HubName}, members...) {
		c := x.Hub
		if cluster != scene.HubName {
			c = x.Member(cluster)
		}
		config, err := clientcmd.LoadFromFile(c.KubeconfigPath())
		x.must(err)
		current := config.Contexts[config.CurrentContext]
		merged.Clusters[cluster] = config.Clusters[current.Cluster]
		merged.AuthInfos[cluster] = config.AuthInfos[current.AuthInfo]
		merged.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: cluster}
	}
	merged.CurrentContext = scene.HubName
	p := &plugin{tenant: x, kubeconfig: filepath.Join(x.t.TempDir(), "kubeconfig")}
	x.must(clientcmd.WriteToFile(*merged, p.kubeconfig))
	return p
}

// run runs a command that succeeds, and returns what it prints.
func (p *plugin) run(arguments ...string) string {
	p.t.Helper()
	text, err := p.try(arguments...)
	if err != nil {
		p.t.Fatalf("kubectl fleetquota %s: %v\n%s", strings.Join(arguments, " "), err, text)
	}
	return text
}

func (p *plugin) try(arguments ...string) (string, error) {
	command := exec.CommandContext(p.t.Context(), filepath.Join(p.Bin, "kubectl-fleetquota"), arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+p.kubeconfig)
	text, err := command.CombinedOutput()
	p.said.Write(text)
	return string(text), err
}

// row is the fields of a line of a table by the heads of its columns. Columns
// are at least two blanks apart.
func row(table, name string) map[string]string {
	lines := strings.Split(strings.TrimRight(table, "\n"), "\n")
	var starts []int
	head := lines[0]
	for i := range head {
		if head[i] != ' ' && (i == 0 || strings.HasSuffix(head[:i], "  ")) {
			starts = append(starts, i)
		}
	}
	for _, line := range lines[1:] {
		if !strings.Contains(" "+line+" ", " "+name+" ") {
			continue
		}
		cells := map[string]string{}
		for i, start := range starts {
			end := len(line)
			if i+1 < len(starts) {
				end = min(end, starts[i+1])
			}
			headEnd := len(head)
			if i+1 < len(starts) {
				headEnd = starts[i+1]
			}
			if start < len(line) {
				cells[strings.TrimSpace(head[start:headEnd])] = strings.TrimSpace(line[start:end])
			}
		}
		return cells
	}
	return nil
}

// shows wants cells of a row, by the heads of their columns.
func (p *plugin) shows(table, name string, want map[string]string) {
	p.t.Helper()
	have := row(table, name)
	for column, text := range want {
		if have[column] != text {
			p.t.Errorf("%s of %s shows %q, want %q in\n%s", column, name, have[column], text, table)
		}
	}
}

// A user registers a cluster, looks at it, and takes it out again, with the
// plugin alone; the token is never printed.
func TestPlugin(t *testing.T) {
	t.Parallel()
	plug := shared.addCluster(t, "plug")
	x := shared.tenant(t, "east", "plug")
	x.create("east", pod("a", requests("cpu", "1")))
	x.create("plug", pod("a", requests("cpu", "2")), pod("b"))
	x.quota("all", list("pods", "10", "requests.cpu", "4"), in("east", "plug"))
	x.becomes("all", complete, rows("east"), uses("pods", "1"))
	p := x.plugin("plug")

	nothingChanged := func(after string) {
		t.Helper()
		_, atHub := x.Hub.Kubernetes.CoreV1().Secrets(scene.Namespace).Get(t.Context(), "plug", metav1.GetOptions{})
		_, inMember := plug.Kubernetes.CoreV1().Namespaces().Get(t.Context(), scene.Namespace, metav1.GetOptions{})
		if !apierrors.IsNotFound(atHub) || !apierrors.IsNotFound(inMember) {
			t.Fatalf("%s changed something: %v, %v", after, atHub, inMember)
		}
	}
	text := p.run("join", "plug", "--labels", "region=plug", "--dry-run=client", "-o", "yaml")
	for _, kind := range []string{"kind: ServiceAccount", "kind: ClusterRoleBinding", "kind: Secret"} {
		if !strings.Contains(text, kind) {
			t.Errorf("join --dry-run does not show %s:\n%s", kind, text)
		}
	}
	nothingChanged("join --dry-run=client")
	p.run("join", "plug", "--labels", "region=plug", "--dry-run=server")
	nothingChanged("join --dry-run=server")

	t.Log(p.run("join", "plug", "--labels", "region=plug"))
	x.becomes("all", complete, rows("east", "plug"), uses("pods", "3", "requests.cpu", "3"))
	x.member("plug", memberCondition("Ready", "True", "Live"), localMode(v1alpha1.LocalNever)) // the permission was not asked for

	table := p.run("get", "-n", x.namespace)
	t.Log(table)
	p.shows(table, "all", map[string]string{"READY": "True", "USED%": "75%", "CLUSTERS": "2/2"})
	table = p.run("get", "-n", x.namespace, "-o", "wide")
	p.shows(table, "all", map[string]string{"CPU": "3/4", "PODS": "3/10"})
	quota := &v1alpha1.FleetQuota{}
	x.must(json.Unmarshal([]byte(p.run("get", "all", "-n", x.namespace, "-o", "json")), quota))
	x.must(uses("pods", "3", "requests.cpu", "3")(quota))
	if table := p.run("get", "-A", "--over", "74"); !strings.Contains(table, x.namespace) {
		t.Errorf("get -A --over 74 does not show it:\n%s", table)
	}
	var exit *exec.ExitError
	if text, err := p.try("get", "-n", x.namespace, "--over", "74", "--exit-code"); !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("get --over 74 --exit-code: %v, want status 2\n%s", err, text)
	}
	p.run("get", "-n", x.namespace, "--over", "76", "--exit-code")

	text = p.run("describe", "all", "-n", x.namespace)
	t.Log(text)
	for _, words := range []string{"east", "plug", "requests.cpu", "pods", "Live", "UsageComplete"} {
		if !strings.Contains(text, words) {
			t.Errorf("describe does not say %q", words)
		}
	}
	table = p.run("clusters")
	t.Log(table)
	p.shows(table, "plug", map[string]string{"READY": "True", "VERSION": x.version("plug"), "LOCAL": "Never"})
	p.shows(table, "west", map[string]string{"READY": "True", "LOCAL": "Always"})

	// Again, with more rights: the token is rotated.
	before, err := x.Hub.Kubernetes.CoreV1().Secrets(scene.Namespace).Get(t.Context(), "plug", metav1.GetOptions{})
	x.must(err)
	p.run("join", "plug", "--labels", "region=plug", "--secrets", "--local-status")
	after, err := x.Hub.Kubernetes.CoreV1().Secrets(scene.Namespace).Get(t.Context(), "plug", metav1.GetOptions{})
	x.must(err)
	if bytes.Equal(before.Data["kubeconfig"], after.Data["kubeconfig"]) {
		t.Error("the token was not rotated")
	}
	x.change("all", func(s *v1alpha1.FleetQuotaSpec) { s.Hard = list("pods", "10", "secrets", "10") })
	x.becomes("all", complete, uses("pods", "3", "secrets", "0"))

	if text, err := p.try("join", "nowhere"); err == nil || !strings.Contains(text, "nowhere") {
		t.Errorf("join of a context that does not exist: %v\n%s", err, text)
	}
	t.Log(p.run("version"))

	t.Log(p.run("leave", "plug", "--member-context", "plug"))
	x.becomesWithin(soon+soon, "all", complete, rows("east"), uses("pods", "1"))
	x.eventually(soon, func(ctx context.Context) error {
		_, member := x.Hub.Quota.Members().Get(ctx, "plug", metav1.GetOptions{})
		_, registration := x.Hub.Kubernetes.CoreV1().Secrets(scene.Namespace).Get(ctx, "plug", metav1.GetOptions{})
		_, account := plug.Kubernetes.CoreV1().ServiceAccounts(scene.Namespace).Get(ctx, "fleetquota-hub", metav1.GetOptions{})
		if !apierrors.IsNotFound(member) || !apierrors.IsNotFound(registration) || !apierrors.IsNotFound(account) {
			return fmt.Errorf("left behind: FleetMember %w, Secret %w, account %w", member, registration, account)
		}
		return nil
	})

	secrets := append(secretsIn(before.Data["kubeconfig"]), secretsIn(after.Data["kubeconfig"])...)
	if found := leaks(p.said.Bytes(), secrets[0], secrets[5]); found != "" {
		t.Errorf("the plugin printed a piece of a token: ...%s...", found)
	}
}

func memberVersion(version string) func(*v1alpha1.FleetMember) error {
	return func(m *v1alpha1.FleetMember) error {
		if m.Status.Version != version {
			return fmt.Errorf("version %q, want %q", m.Status.Version, version)
		}
		return nil
	}
}

// What the plugin says that files would use of a global quota is what they do
// use once they are there; and it says where they do not fit any more.
func TestPluginAgainst(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, "east", "west")
	x.create("east", pod("a", requests("cpu", "1500m")))
	x.create("west", pod("b", requests("cpu", "1")))
	x.quota("all", list("pods", "10", "requests.cpu", "4", "count/deployments.apps", "5"), in("east", "west"))
	before := x.becomes("all", complete, uses("pods", "2", "requests.cpu", "2500m"))
	x.member("east", memberVersion(x.version("east")))
	x.member("west", memberVersion(x.version("west")))
	p := x.plugin()

	manifest := filepath.Join(t.TempDir(), "pod.yaml")
	x.must(os.WriteFile(manifest, []byte(`{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "c"}, "spec": {"containers": [`+
		`{"name": "main", "image": "image", "resources": {"limits": {"cpu": "1"}}}]}}`), 0o600))
	ask := func(more ...string) []string {
		return append([]string{"usage", "-f", manifest, "--against", x.namespace + "/all", "--exit-code"}, more...)
	}
	table := p.run(ask()...)
	t.Log(table)
	p.shows(table, "requests.cpu", map[string]string{"WOULD USE": "1", "USED": "2500m", "HARD": "4", "LEFT": "500m", "FITS": "yes"})
	if !strings.HasSuffix(table, "\nfits\n") || !strings.Contains(table, x.version("west")) {
		t.Errorf("want it to fit, and the versions of members in\n%s", table)
	}
	text, _ := strings.CutSuffix(p.run(ask("-o", "json")...), "fits\n") // on standard error
	after := &v1alpha1.FleetQuota{}
	x.must(json.Unmarshal([]byte(text), after))
	if now, err := x.get(t.Context(), "all"); err != nil || now.ResourceVersion != before.ResourceVersion {
		t.Errorf("asking has changed the quota: %v", err)
	}

	x.create("west", pod("c", limits("cpu", "1")))
	x.becomes("all", complete, func(q *v1alpha1.FleetQuota) error { return same("used", q.Status.Used, after.Status.Used) })
	table, err := p.try(ask()...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !strings.HasSuffix(table, "\ndoes not fit: requests.cpu is 500m short\n") {
		t.Errorf("%v, want status 2 and what is short in\n%s", err, table)
	}
	p.run(ask("--replaces", manifest)...) // nothing is added
	if text, err := p.try("usage", "-f", manifest, "--against", x.namespace+"/none"); err == nil || !strings.Contains(text, "not found") {
		t.Errorf("a quota that is not there: %v\n%s", err, text)
	}
}
