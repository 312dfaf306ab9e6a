package e2e_test

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// What people who run the hub look at: health, and metrics of the process, its
// clients, its queues and the quotas.
func TestHealthAndMetrics(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t)
	x.create("east", pod("a", requests("cpu", "1500m")))
	x.quota("all", list("requests.cpu", "4", "pods", "10"), sharedMembers)
	x.becomes("all", complete, uses("pods", "1"))
	for _, path := range []string{"/livez", "/readyz"} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, shared.hub.Health+path, http.NoBody)
		x.must(err)
		response, err := http.DefaultClient.Do(request)
		x.must(err)
		x.must(response.Body.Close())
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s answers %s", path, response.Status)
		}
	}
	text, err := shared.hub.Scrape(t.Context())
	x.must(err)
	for _, name := range []string{
		"process_cpu_seconds_total", "go_goroutines", "workqueue_depth{", "rest_client_requests_total{", "fleetquota_build_info{",
		`fleetquota_member_up{member_cluster="east"} 1`, `fleetquota_member_probe_duration_seconds_bucket{member_cluster="east"`,
		"fleetquota_quota{", "fleetquota_quota_stale_members{",
	} {
		if !strings.Contains(text, "\n"+name) {
			t.Errorf("no metric %s", name)
		}
	}
	used := ""
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "fleetquota_quota{") && strings.Contains(line, `"`+x.namespace+`"`) && strings.Contains(line, `"requests.cpu"`) {
			used += line
		}
	}
	if !strings.Contains(used, " 1.5\n") || !strings.Contains(used, " 4\n") {
		t.Errorf("used and hard of requests.cpu, 1.5 and 4 cores, are exported as\n%s", used)
	}
}

// Flags that cannot work are refused with a sentence, and a status that is not
// zero.
func TestFlagsThatCannotWork(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	for name, test := range map[string]struct {
		flags []string
		says  string
	}{
		"a mode that does not exist":     {[]string{"--kubeconfig", shared.Hub.KubeconfigPath(), "--local-status=Sometimes"}, "use Always, Never or Auto"},
		"a kubeconfig that is not there": {[]string{"--kubeconfig", missing}, missing},
		"an unknown flag":                {[]string{"--kubeconfigs=x"}, "unknown flag"},
		"an argument":                    {[]string{"start"}, "start"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flags := append([]string{"--metrics-bind-address=0", "--health-probe-bind-address=0"}, test.flags...)
			command := exec.CommandContext(t.Context(), filepath.Join(shared.Bin, "fleetquota-hub"), flags...)
			command.Env = append(os.Environ(), "KUBECONFIG=")
			text, err := command.CombinedOutput()
			if err == nil || !strings.Contains(string(text), test.says) {
				t.Errorf("ended with %v, want an error that says %q:\n%s", err, test.says, text)
			}
		})
	}
}
