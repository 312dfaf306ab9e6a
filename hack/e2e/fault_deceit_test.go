package e2e_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// A member whose store is put back to an older state answers as before, and
// would take a watch that goes on from a version that it has not reached. It is
// counted anew.
func TestFaultRestoredMember(t *testing.T) {
	t.Parallel()
	moor := shared.addMember(t, "moor")
	x := shared.tenant(t, "moor")
	x.create("moor", pod("a"))
	x.quota("all", list("pods", "100"), only("moor"))
	x.becomes("all", complete, uses("pods", "1"))
	data, backup := filepath.Join(moor.Dir(), "data"), filepath.Join(t.TempDir(), "data")

	x.must(moor.Stop(t.Context()))
	x.must(os.CopyFS(backup, os.DirFS(data)))
	x.must(moor.Restart(t.Context()))
	for i := range 30 {
		x.create("moor", pod(fmt.Sprintf("later-%d", i)))
	}
	x.becomesWithin(time.Minute, "all", complete, uses("pods", "31"))
	time.Sleep(12 * time.Second) // a probe has seen how far the store has come

	x.must(moor.Stop(t.Context()))
	x.must(os.RemoveAll(data))
	x.must(os.CopyFS(data, os.DirFS(backup)))
	x.must(moor.Restart(t.Context()))
	x.becomesWithin(time.Minute, "all", complete, uses("pods", "1"))
	x.create("moor", pod("b"))
	x.becomes("all", complete, uses("pods", "2"))
}

// A kind whose objects the server can no longer read is named, and all others
// are counted, although a list that is asked for as a stream never ends.
func TestFaultKindThatCannotBeRead(t *testing.T) {
	t.Parallel()
	gizmos := schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "gizmos"}
	const key = "count/gizmos.example.com"
	fog := shared.addCluster(t, "fog")
	always := registration("fog")
	always.LocalStatus = "Always"
	x := shared.tenant(t, "fog")
	x.must(x.Register(t.Context(), fog, always))
	x.must(fog.Apply(t.Context(), crd(gizmos)))
	x.must(fog.Allow(t.Context(), gizmos.GroupResource()))
	x.eventually(soon, func(ctx context.Context) error { return fog.Create(ctx, x.namespace, custom(gizmos, "a")) })
	x.create("fog", pod("a"), resourceQuota("local", "pods", "10", key, "10"))
	x.quota("all", list("pods", "10", key, "10"), only("fog"))
	x.becomes("all", complete, uses("pods", "1", key, "1"))
	x.localUses("fog", "local", "pods", "1", key, "1")

	x.must(fog.Apply(t.Context(), unreadable(crd(gizmos))))
	x.must(fog.Restart(t.Context())) // every list is asked for again
	x.create("fog", pod("b"))
	x.becomesWithin(2*time.Minute, "all", unknown("fog", []string{key}, "ListFailed"), uses("pods", "2", key, "1"),
		phase("fog", v1alpha1.Partial, "ListFailed"))
	x.localUses("fog", "local", "pods", "2", key, "1")
	x.delete("fog", pods, "a")
	x.becomes("all", memberUses("fog", "pods", "1"))
	x.localUses("fog", "local", "pods", "1", key, "1")
	x.limit("fog", "local", "pods", "20", key, "20", "configmaps", "5")
	x.localUses("fog", "local", "pods", "1", key, "1", "configmaps", "0")
}

// unreadable stores and serves a custom resource in a version that nobody can
// convert its objects to.
func unreadable(definition *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinition {
	broken := secondVersion(definition)
	broken.Spec.Versions[0].Served = true
	nowhere := "https://127.0.0.1:1/convert"
	broken.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook: &apiextensionsv1.WebhookConversion{
			ClientConfig: &apiextensionsv1.WebhookClientConfig{URL: &nowhere}, ConversionReviewVersions: []string{"v1"},
		},
	}
	return broken
}

// A server that quotes the token that it was sent, wherever it can, brings it
// into no log, event or status. TestMain looks for it once more at the end.
func TestFaultServerThatQuotesTheToken(t *testing.T) {
	t.Parallel()
	x := shared.tenant(t, "east")
	x.create("east", pod("a"))
	lies := map[string]http.HandlerFunc{
		"parrot-lists":    quoting("v1.37.2", "6f9a2c1e-0000-4000-8000-000000000001", http.StatusInternalServerError),
		"parrot-forbids":  quoting("v1.37.2", "6f9a2c1e-0000-4000-8000-000000000002", http.StatusForbidden),
		"parrot-version":  quoting("v1.37.2+%s", "6f9a2c1e-0000-4000-8000-000000000003", http.StatusInternalServerError),
		"parrot-identity": quoting("v1.37.2", "u-%s", http.StatusInternalServerError),
	}
	var secrets [][]byte
	for name, lie := range lies {
		server := httptest.NewTLSServer(lie)
		t.Cleanup(server.Close)
		token := strings.ReplaceAll(randomToken(), ".", "")
		secrets = append(secrets, []byte(token))
		x.must(x.WriteSecret(t.Context(), registration(name), serverKubeconfig(server, token)))
		t.Cleanup(func() { x.forget(name) })
	}
	x.quota("all", list("pods", "10", "count/deployments.apps", "5"))

	for name, reason := range map[string]string{
		"parrot-lists": "EngagementFailed", "parrot-forbids": "EngagementFailed",
		"parrot-version": "UnknownServer", "parrot-identity": "UnknownServer",
	} {
		x.member(name, memberCondition("Ready", metav1.ConditionFalse, reason))
	}
	x.becomes("all", memberUses("east", "pods", "1"))
	x.must(noLeaks(t.Context(), shared, secrets...))
}

// quoting answers as a Kubernetes API server with this version and identity, in
// which %s is the token, and all else with an error that quotes it.
func quoting(version, uid string, status int) http.HandlerFunc {
	fill := func(text, token string) string { return strings.ReplaceAll(text, "%s", token) }
	return func(w http.ResponseWriter, r *http.Request) {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Warning", fmt.Sprintf("299 - %q", token))
		switch r.URL.Path {
		case "/version":
			fmt.Fprintf(w, `{"major": "1", "minor": "37", "gitVersion": %q}`, fill(version, token))
		case "/api/v1/namespaces/kube-system":
			fmt.Fprintf(w, `{"kind": "Namespace", "apiVersion": "v1", "metadata": {"name": "kube-system", "uid": %q}}`, fill(uid, token))
		default:
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": %q, "message": %q, "code": %d}`,
				token, "you sent "+token, status)
		}
	}
}

// serverKubeconfig leads to a server of the test's own.
func serverKubeconfig(server *httptest.Server, token string) []byte {
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := clientcmdapi.NewConfig()
	config.Clusters["own"] = &clientcmdapi.Cluster{Server: server.URL, CertificateAuthorityData: authority}
	config.AuthInfos["own"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["own"] = &clientcmdapi.Context{Cluster: "own", AuthInfo: "own"}
	config.CurrentContext = "own"
	text, err := clientcmd.Write(*config)
	if err != nil {
		panic(err)
	}
	return text
}
