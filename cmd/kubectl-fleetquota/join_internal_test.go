package main

import (
	"encoding/base64"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const secretPath = "/api/v1/namespaces/fleetquota-system/secrets/"

// fleet is a hub and a cluster that has not joined yet.
func fleet(t *testing.T) (hub, member *fakeAPI, both map[string]*fakeAPI) {
	t.Helper()
	hub = hubWith(t)
	member = newFakeAPI(t, "uid-new")
	member.life = 30 * 24 * time.Hour
	return hub, member, map[string]*fakeAPI{"hub": hub, "new": member}
}

// stored is the kubeconfig that the hub has of a member.
func stored(t *testing.T, hub *fakeAPI, name string) *clientcmdapi.Config {
	t.Helper()
	secret := hub.object(secretPath + name)
	if secret == nil {
		t.Fatalf("no secret %s", name)
	}
	text, _ := secret.Object["data"].(map[string]any)["kubeconfig"].(string)
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

func (r result) showsNoToken(t *testing.T) {
	t.Helper()
	if strings.Contains(r.out+r.errOut, secretToken) {
		t.Errorf("the token is shown:\n%s%s", r.out, r.errOut)
	}
}

func TestJoin(t *testing.T) {
	hub, member, both := fleet(t)
	r := cli(t, both, "join", "new", "--labels", "region=eu,tier=prod")
	r.showsNoToken(t)
	r.want(t, `
		namespace/fleetquota-system created in member new
		serviceaccount/fleetquota-hub created in member new
		clusterrole.rbac.authorization.k8s.io/fleetquota-observe created in member new
		clusterrolebinding.rbac.authorization.k8s.io/fleetquota-observe created in member new
		clusterrole.rbac.authorization.k8s.io/fleetquota-observe-base created in member new
		clusterrolebinding.rbac.authorization.k8s.io/fleetquota-observe-base created in member new
		token of serviceaccount/fleetquota-hub issued by member new, it expires at 2026-01-31T12:00:00Z (in 30d)
		secret/new created at the hub in namespace fleetquota-system
		Run the same command again before the token expires, to rotate it.
		See whether the hub reaches the member: kubectl fleetquota clusters
		`)
	config := stored(t, hub, "new")
	if auth := config.AuthInfos["new"]; config.CurrentContext != "new" || auth.Token != secretToken+"1" {
		t.Error("the stored kubeconfig is not of the token that was issued")
	}
	if cluster := config.Clusters["new"]; cluster.Server != member.URL || len(cluster.CertificateAuthorityData) == 0 {
		t.Errorf("server %s", cluster.Server)
	}
	want := map[string]string{"fleetquota.io/member": "true", "region": "eu", "tier": "prod"}
	if got := hub.object(secretPath + "new").GetLabels(); !maps.Equal(got, want) {
		t.Errorf("labels %v", got)
	}
}

func TestJoinAgainRotatesTheTokenAndKeepsLabels(t *testing.T) {
	hub, member, both := fleet(t)
	cli(t, both, "join", "new", "--labels", "region=eu", "--role", "distribute", "--secrets", "--local-status")
	writes := len(member.writes)
	r := cli(t, both, "join", "new", "--role", "distribute", "--labels", "tier=prod")
	r.showsNoToken(t)
	r.want(t, `
		namespace/fleetquota-system unchanged in member new
		serviceaccount/fleetquota-hub unchanged in member new
		clusterrole.rbac.authorization.k8s.io/fleetquota-observe unchanged in member new
		clusterrolebinding.rbac.authorization.k8s.io/fleetquota-observe unchanged in member new
		clusterrole.rbac.authorization.k8s.io/fleetquota-observe-base unchanged in member new
		clusterrolebinding.rbac.authorization.k8s.io/fleetquota-observe-base unchanged in member new
		clusterrole.rbac.authorization.k8s.io/fleetquota-distribute unchanged in member new
		clusterrolebinding.rbac.authorization.k8s.io/fleetquota-distribute unchanged in member new
		clusterrolebinding.rbac.authorization.k8s.io/fleetquota-observe-secrets deleted in member new
		clusterrolebinding.rbac.authorization.k8s.io/fleetquota-local-status deleted in member new
		token of serviceaccount/fleetquota-hub issued by member new, it expires at 2026-01-31T12:00:00Z (in 30d)
		secret/new configured at the hub in namespace fleetquota-system
		Run the same command again before the token expires, to rotate it.
		See whether the hub reaches the member: kubectl fleetquota clusters
		`)
	if len(member.writes) == writes {
		t.Error("no write was counted")
	}
	if token := stored(t, hub, "new").AuthInfos["new"].Token; token != secretToken+"2" {
		t.Error("the token was not rotated")
	}
	if got := hub.object(secretPath + "new").GetLabels(); got["region"] != "eu" || got["tier"] != "prod" {
		t.Errorf("labels %v", got)
	}
}

func TestJoinSaysWhenTheClusterGrantsLess(t *testing.T) {
	_, member, both := fleet(t)
	member.life = 24 * time.Hour
	r := cli(t, both, "join", "new")
	if !strings.Contains(r.errOut, "asked for a token of 30d, the cluster grants no more than 24h") {
		t.Errorf("said %s", r.errOut)
	}
}

func TestJoinStoresNoTokenThatDoesNotWork(t *testing.T) {
	hub, member, both := fleet(t)
	member.denied = secretToken + "1"
	r := cli(t, both, "join", "new")
	r.showsNoToken(t)
	if r.code != 1 || !strings.Contains(r.errOut, "nothing was stored at the hub") || hub.object(secretPath+"new") != nil {
		t.Errorf("%d %s", r.code, r.errOut)
	}
}

func TestDryRunsChangeNothing(t *testing.T) {
	hub, member, both := fleet(t)
	for mode, suffix := range map[string]string{"--dry-run": " (dry run)", "--dry-run=client": " (dry run)", "--dry-run=server": " (server dry run)"} {
		cli(t, both, "join", "new", mode).want(t, strings.ReplaceAll(`
			namespace/fleetquota-system created in member new@
			serviceaccount/fleetquota-hub created in member new@
			clusterrole.rbac.authorization.k8s.io/fleetquota-observe created in member new@
			clusterrolebinding.rbac.authorization.k8s.io/fleetquota-observe created in member new@
			clusterrole.rbac.authorization.k8s.io/fleetquota-observe-base created in member new@
			clusterrolebinding.rbac.authorization.k8s.io/fleetquota-observe-base created in member new@
			secret/new created at the hub in namespace fleetquota-system@
			`, "@", suffix))
	}
	if len(hub.writes)+len(member.writes)+member.tokens > 0 {
		t.Errorf("wrote %v %v, issued %d tokens", hub.writes, member.writes, member.tokens)
	}
}

func TestObjectsArePrintedWithoutTheToken(t *testing.T) {
	_, _, both := fleet(t)
	for _, args := range [][]string{{"-o", "yaml"}, {"-o", "yaml", "--dry-run=client"}, {"-o", "json"}, {"-o", "json", "--dry-run=server"}} {
		r := cli(t, both, append([]string{"join", "new"}, args...)...)
		r.showsNoToken(t)
		if r.code != 0 || !strings.Contains(r.out, tokenPlaceholder) || strings.Contains(r.out, "created in member") {
			t.Errorf("%v: %d\n%s%s", args, r.code, r.out, r.errOut)
		}
	}
}

func TestJoinRefuses(t *testing.T) {
	foreign := "{apiVersion: v1, kind: Secret, metadata: {name: foreign, namespace: fleetquota-system}}"
	itself := "{apiVersion: fleetquota.io/v1alpha1, kind: FleetMember, metadata: {name: itself}}"
	hub, member := hubWith(t, foreign, itself), newFakeAPI(t, "uid-eu-1")
	both := map[string]*fakeAPI{"hub": hub, "eu": member}
	for name, c := range map[string]struct{ args, says string }{
		"the same cluster under another name": {"join eu --name eu-2", "already the member eu-1"},
		"another cluster under this name":     {"join hub --name us-1", "member us-1 is another cluster"},
		"the name of a foreign Secret":        {"join hub --name foreign", "registers no member"},
		"the name of the hub as a member":     {"join hub --name itself", "--include-hub"},
		"a name that is none":                 {"join eu --name EU_1", "cannot be the name of a member"},
		"an unknown context":                  {"join nope", "it has eu, hub"},
		"a hub without the namespace":         {"join hub --name h --hub-namespace nowhere", "no namespace nowhere"},
		"a label that cannot be one":          {"join eu --labels bad!key=x", "--labels: Invalid value"},
		"a short token":                       {"join eu --token-duration 5m", "use 10m0s or more"},
		"an unknown role":                     {"join eu --role admin", "observe, distribute"},
		"an unknown dry run":                  {"join eu --dry-run=maybe", "none, client, server"},
		"an unknown hub":                      {"join eu --name eu-1 --hub-context nope", `context "nope" does not exist`},
		"an address without TLS":              {"join eu --name eu-1 --member-server http://eu", "https only"},
	} {
		t.Run(name, func(t *testing.T) {
			r := cli(t, both, strings.Fields(c.args)...)
			if r.code != 1 || !strings.Contains(r.errOut, c.says) {
				t.Errorf("exit code %d, said %s", r.code, r.errOut)
			}
		})
	}
	if len(hub.writes)+len(member.writes)+member.tokens > 0 {
		t.Errorf("wrote %v %v, issued %d tokens", hub.writes, member.writes, member.tokens)
	}
}

func TestEndpointIsWhatTheHubAccepts(t *testing.T) {
	ca := newFakeAPI(t, "x").clusterOf().CertificateAuthorityData
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		cluster clientcmdapi.Cluster
		says    string // empty: accepted
	}{
		"CA inline":       {clientcmdapi.Cluster{Server: "https://a", CertificateAuthorityData: ca, TLSServerName: "b"}, ""},
		"CA in a file":    {clientcmdapi.Cluster{Server: "https://a", CertificateAuthority: file}, ""},
		"CA of system":    {clientcmdapi.Cluster{Server: "https://a"}, ""},
		"no such CA file": {clientcmdapi.Cluster{Server: "https://a", CertificateAuthority: file + "x"}, "read the CA"},
		"CA of nothing":   {clientcmdapi.Cluster{Server: "https://a", CertificateAuthorityData: []byte("x")}, "no certificate"},
		"insecure":        {clientcmdapi.Cluster{Server: "https://a", InsecureSkipTLSVerify: true}, "insecure-skip-tls-verify"},
		"plain HTTP":      {clientcmdapi.Cluster{Server: "http://a"}, "https only"},
		"with a password": {clientcmdapi.Cluster{Server: "https://u:hidden@a"}, "user name"},
		"no URL":          {clientcmdapi.Cluster{Server: "https://hidden\x7f"}, "not a URL"},
		"no host":         {clientcmdapi.Cluster{Server: "https:///hidden"}, "no host"},
		"by a proxy":      {clientcmdapi.Cluster{Server: "https://a", ProxyURL: "http://hidden"}, "proxy-url"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := (&target{cluster: &c.cluster}).endpoint("")
			switch {
			case c.says == "" && (err != nil || got.CertificateAuthority != "" || got.TLSServerName != c.cluster.TLSServerName):
				t.Errorf("got %v, %v", got, err)
			case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hidden")):
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestLoopback(t *testing.T) {
	for server, want := range map[string]bool{
		"https://127.0.0.1:6443": true, "https://[::1]": true, "https://localhost": true,
		"https://10.0.0.1": false, "https://eu.example.com": false,
	} {
		if got := loopback(server); got != want {
			t.Errorf("%s: %t", server, got)
		}
	}
}

const grantOfEU = `
apiVersion: fleetquota.io/v1alpha1
kind: FleetGrant
metadata: {namespace: team-a, name: compute}
spec:
  members:
  - {cluster: eu-1, revision: 1, granted: {pods: "30", requests.cpu: "2"}}
  - {cluster: us-1, revision: 2, granted: {pods: "0"}, target: {pods: "0"}}
`

// joined is a hub with a Secret for eu-1, which has an account in its cluster.
func joined(t *testing.T, more ...string) (hub, member *fakeAPI, both map[string]*fakeAPI) {
	t.Helper()
	hub = hubWith(t, more...)
	member = newFakeAPI(t, "uid-eu-1")
	member.life = time.Hour
	both = map[string]*fakeAPI{"hub": hub, "eu": member}
	if r := cli(t, both, "join", "eu", "--name", "eu-1"); r.code != 0 {
		t.Fatal(r.errOut)
	}
	return hub, member, both
}

func TestLeave(t *testing.T) {
	hub, member, both := joined(t)
	cli(t, both, "leave", "eu-1", "--member-context", "eu").want(t, `
		secret/eu-1 deleted at the hub in namespace fleetquota-system
		clusterrolebinding.rbac.authorization.k8s.io/fleetquota-observe deleted in member eu-1
		clusterrole.rbac.authorization.k8s.io/fleetquota-observe deleted in member eu-1
		clusterrolebinding.rbac.authorization.k8s.io/fleetquota-observe-base deleted in member eu-1
		clusterrole.rbac.authorization.k8s.io/fleetquota-observe-base deleted in member eu-1
		serviceaccount/fleetquota-hub deleted in member eu-1
		namespace/fleetquota-system kept in member eu-1
		`)
	if hub.object(secretPath+"eu-1") != nil {
		t.Error("the Secret is still there")
	}
	left := slices.DeleteFunc(slices.Collect(maps.Keys(member.objects)), func(at string) bool { return strings.Contains(at, "/namespaces/") && strings.Count(at, "/") == 4 })
	if len(left) > 0 {
		t.Errorf("left in the member: %v", left)
	}
	cli(t, both, "leave", "eu-1").want(t, `
		The Secret of member eu-1 is gone already.
		The account of the hub stays in the cluster; --member-context removes it, too.
		`)
}

func TestLeaveRefusesToLoseGrants(t *testing.T) {
	hub, _, both := joined(t, grantOfEU)
	r := cli(t, both, "leave", "eu-1")
	if r.code != 1 || !strings.Contains(r.errOut, "holds grants of team-a/compute (pods 30, requests.cpu 2)") || hub.object(secretPath+"eu-1") == nil {
		t.Errorf("%d %s", r.code, r.errOut)
	}
	r = cli(t, both, "leave", "eu-1", "--force")
	if r.code != 0 || !strings.Contains(r.errOut, "team-a/compute (pods 30, requests.cpu 2) stays reserved") || hub.object(secretPath+"eu-1") != nil {
		t.Errorf("%d %s", r.code, r.errOut)
	}
	if r := cli(t, both, "leave", "us-1"); r.code != 0 {
		t.Errorf("a row of nothing is no grant: %s", r.errOut)
	}
}

func TestLeaveRefuses(t *testing.T) {
	foreign := "{apiVersion: v1, kind: Secret, metadata: {name: us-1, namespace: fleetquota-system, labels: {sigs.k8s.io/multicluster-runtime-kubeconfig: \"true\"}}}"
	itself := "{apiVersion: fleetquota.io/v1alpha1, kind: FleetMember, metadata: {name: itself}}"
	hub, member, both := joined(t, foreign, itself)
	writes := len(hub.writes) + len(member.writes)
	for name, c := range map[string]struct{ args, says string }{
		"the context of another cluster": {"leave eu-1 --member-context hub", "is not of member eu-1"},
		"no such member":                 {"leave nope", "there is no member nope"},
		"a Secret of somebody else":      {"leave us-1", "is not one of fleetquota"},
		"the hub itself":                 {"leave itself", "--include-hub"},
		"an unknown context":             {"leave eu-1 --member-context nope", "it has eu, hub"},
	} {
		t.Run(name, func(t *testing.T) {
			r := cli(t, both, strings.Fields(c.args)...)
			if r.code != 1 || !strings.Contains(r.errOut, c.says) {
				t.Errorf("exit code %d, said %s", r.code, r.errOut)
			}
		})
	}
	if len(hub.writes)+len(member.writes) != writes {
		t.Errorf("wrote %v %v", hub.writes, member.writes)
	}
}
