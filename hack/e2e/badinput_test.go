package e2e_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

// forget deletes registrations of a test.
func (x *tenant) forget(names ...string) {
	for _, name := range names {
		if err := x.DeleteSecret(context.WithoutCancel(x.t.Context()), name); err != nil {
			x.t.Error(err)
		}
	}
}

// randomToken is a token that no server knows.
func randomToken() string {
	text := make([]byte, 48)
	_, _ = rand.Read(text)
	return base64.RawURLEncoding.EncodeToString(text)
}

// expiredToken looks like a token of a service account that expired long ago.
func expiredToken() string {
	part := func(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }
	return part(`{"alg":"RS256","kid":"none"}`) + "." +
		part(`{"iss":"https://kubernetes.default.svc.cluster.local","exp":1600000000,"sub":"system:serviceaccount:fleetquota-system:fleetquota-hub"}`) +
		"." + randomToken()
}

// changed is a kubeconfig after a change.
func changed(kubeconfig []byte, change func(*clientcmdapi.Cluster, *clientcmdapi.AuthInfo)) []byte {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		panic(err)
	}
	context := config.Contexts[config.CurrentContext]
	change(config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo])
	text, err := clientcmd.Write(*config)
	if err != nil {
		panic(err)
	}
	return text
}

// deadKubeconfig leads to an address where nobody listens.
func deadKubeconfig() []byte {
	config := clientcmdapi.NewConfig()
	config.Clusters["dead"] = &clientcmdapi.Cluster{Server: "https://127.0.0.1:1"}
	config.AuthInfos["dead"] = &clientcmdapi.AuthInfo{Token: randomToken()}
	config.Contexts["dead"] = &clientcmdapi.Context{Cluster: "dead", AuthInfo: "dead"}
	config.CurrentContext = "dead"
	text, err := clientcmd.Write(*config)
	if err != nil {
		panic(err)
	}
	return text
}

// secretsIn are the secret parts of a kubeconfig, or all of it when it is none.
func secretsIn(kubeconfig []byte) [][]byte {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil || len(config.AuthInfos) == 0 {
		return [][]byte{kubeconfig}
	}
	var secrets [][]byte
	for _, user := range config.AuthInfos {
		secrets = append(secrets, []byte(user.Token), []byte(user.Password), pemBody(user.ClientCertificateData), pemBody(user.ClientKeyData))
	}
	for _, cluster := range config.Clusters {
		secrets = append(secrets, pemBody(cluster.CertificateAuthorityData))
	}
	return secrets
}

// pemBody is PEM without its first and last line, which are no secret.
func pemBody(text []byte) []byte {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	if len(lines) < 3 {
		return nil
	}
	return bytes.Join(lines[1:len(lines)-1], []byte("\n"))
}

// noLeaks fails unless the hub's logs, events and objects are free of these
// secrets and of those of every registration.
func noLeaks(ctx context.Context, w *world, secrets ...[]byte) error {
	registered, err := w.Hub.Kubernetes.CoreV1().Secrets(scene.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range registered.Items {
		for _, value := range registered.Items[i].Data {
			secrets = append(secrets, secretsIn(value)...)
		}
	}
	var errs []error
	look := func(where string, text []byte, err error) {
		if found := leaks(text, secrets...); found != "" {
			err = fmt.Errorf("%s holds a piece of a secret, in %q", where, found)
		}
		errs = append(errs, err)
	}
	text, err := os.ReadFile(w.hub.Log)
	look("the hub's log", text, err)
	for what, path := range map[string]string{
		"an event": "/apis/events.k8s.io/v1/events", "a FleetMember": "/apis/fleetquota.io/v1alpha1/fleetmembers",
		"a FleetQuota": "/apis/fleetquota.io/v1alpha1/fleetquotas", "a lease": "/apis/coordination.k8s.io/v1/leases",
	} {
		text, err := w.Hub.Kubernetes.CoreV1().RESTClient().Get().AbsPath(path).DoRaw(ctx)
		look(what, text, err)
	}
	metrics, err := w.hub.Scrape(ctx)
	look("the metrics", []byte(metrics), err)
	return errors.Join(errs...)
}

// badMember is a registration that cannot work, and what its FleetMember says.
type badMember struct {
	kubeconfig []byte
	data       map[string][]byte // instead of the kubeconfig
	condition  string            // the one that is false
	reasons    []string          // one of them
	says       string            // words of the message
}

// Whatever a Secret holds, its FleetMember says what is wrong, no other member
// is disturbed, and no byte of it is told.
func TestMalformedRegistrations(t *testing.T) { //nolint:tparallel // the subtests are steps of one story
	t.Parallel()
	x := shared.tenant(t)
	west := x.Member("west")
	good, err := x.Credentials(t.Context(), west, scene.Registration{Name: "west"})
	x.must(err)
	atHub, err := x.Credentials(t.Context(), x.Hub, scene.Registration{Name: "hub"})
	x.must(err)
	type cluster = clientcmdapi.Cluster
	type user = clientcmdapi.AuthInfo
	server := func(address string) []byte { return changed(good, func(c *cluster, _ *user) { c.Server = address }) }
	hubCA := []byte{}
	changed(atHub, func(c *cluster, _ *user) { hubCA = c.CertificateAuthorityData })
	_, silentPort, _ := net.SplitHostPort(silent(t))
	token := func(token string) []byte { return changed(good, func(_ *cluster, u *user) { u.Token = token }) }
	with := func(change func(*user)) []byte {
		return changed(good, func(_ *cluster, u *user) { change(u) })
	}
	valid, ready := "CredentialsValid", "Ready"
	cases := map[string]badMember{
		"no-key":       {data: map[string][]byte{"config": good}, condition: valid, reasons: []string{"MissingKey"}, says: "kubeconfig"},
		"empty":        {kubeconfig: []byte{}, condition: valid, reasons: []string{"MissingKey", "ParseError", "Ambiguous"}},
		"garbage":      {kubeconfig: []byte("token: [" + randomToken()), condition: valid, reasons: []string{"ParseError"}},
		"only-a-token": {kubeconfig: []byte(randomToken()), condition: valid, reasons: []string{"ParseError"}},
		"json":         {kubeconfig: []byte(`{"users":"` + randomToken() + `"}`), condition: valid, reasons: []string{"ParseError"}},
		"huge":         {kubeconfig: bytes.Repeat([]byte("# "+randomToken()+"\n"), 900_000/67), condition: valid, reasons: []string{"Ambiguous"}},
		"exec": {kubeconfig: with(func(u *user) {
			u.Exec = &clientcmdapi.ExecConfig{Command: "sh", APIVersion: "client.authentication.k8s.io/v1", InteractiveMode: "Never"}
		}), condition: valid, reasons: []string{"ExecNotAllowed"}, says: "exec"},
		"auth-provider": {kubeconfig: with(func(u *user) {
			u.AuthProvider = &clientcmdapi.AuthProviderConfig{Name: "oidc", Config: map[string]string{"id-token": randomToken()}}
		}), condition: valid, reasons: []string{"AuthProviderNotAllowed"}, says: "auth-provider"},
		"token-file":    {kubeconfig: with(func(u *user) { u.TokenFile = "/etc/passwd" }), condition: valid, reasons: []string{"FileReferenceNotAllowed"}, says: "tokenFile"},
		"password":      {kubeconfig: with(func(u *user) { u.Username, u.Password = "admin", randomToken() }), condition: valid, reasons: []string{"BasicAuthNotAllowed"}, says: "password"},
		"impersonation": {kubeconfig: with(func(u *user) { u.Impersonate = "system:admin" }), condition: valid, reasons: []string{"ImpersonationNotAllowed"}, says: "impersonate"},
		"no-credential": {kubeconfig: with(func(u *user) { u.Token = "" }), condition: valid, reasons: []string{"NoCredentials"}, says: "token"},
		"bad-token":     {kubeconfig: token("two words " + randomToken()), condition: valid, reasons: []string{"BadToken"}, says: "token"},
		"bad-cert":      {kubeconfig: with(func(u *user) { u.ClientCertificateData, u.ClientKeyData = []byte(randomToken()), []byte(randomToken()) }), condition: valid, reasons: []string{"BadCertificate"}, says: "client-certificate-data"},
		"bad-ca":        {kubeconfig: changed(good, func(c *cluster, _ *user) { c.CertificateAuthorityData = []byte(randomToken()) }), condition: valid, reasons: []string{"BadCertificate"}, says: "certificate-authority-data"},
		"insecure":      {kubeconfig: changed(good, func(c *cluster, _ *user) { c.CertificateAuthorityData, c.InsecureSkipTLSVerify = nil, true }), condition: valid, reasons: []string{"InsecureTLSNotAllowed"}, says: "insecure-skip-tls-verify"},
		"proxy":         {kubeconfig: changed(good, func(c *cluster, _ *user) { c.ProxyURL = "http://127.0.0.1:3128" }), condition: valid, reasons: []string{"ProxyNotAllowed"}, says: "proxy-url"},
		"plain-http":    {kubeconfig: server("http://127.0.0.1:8080"), condition: valid, reasons: []string{"ServerNotAllowed"}, says: "https"},
		"userinfo":      {kubeconfig: server("https://admin:" + randomToken() + "@127.0.0.1:6443"), condition: valid, reasons: []string{"ServerNotAllowed"}, says: "server"},
		"two-contexts":  {kubeconfig: twoContexts(good), condition: valid, reasons: []string{"Ambiguous"}, says: "context"},

		"dead-address":  {kubeconfig: server("https://127.0.0.1:1"), condition: ready, reasons: []string{"ConnectionRefused"}},
		"no-such-host":  {kubeconfig: server("https://member.invalid:6443"), condition: ready, reasons: []string{"HostNotFound"}},
		"silent-server": {kubeconfig: server("https://127.0.0.1:" + silentPort), condition: ready, reasons: []string{"Timeout"}},
		"wrong-ca":      {kubeconfig: changed(good, func(c *cluster, _ *user) { c.CertificateAuthorityData = hubCA }), condition: ready, reasons: []string{"TLSError"}},
		"unknown-token": {kubeconfig: token(randomToken()), condition: valid, reasons: []string{"Unauthorized"}},
		"expired-token": {kubeconfig: token(expiredToken()), condition: valid, reasons: []string{"Unauthorized", "Expired"}},
		"of-another":    {kubeconfig: changed(good, func(_ *cluster, u *user) { changed(atHub, func(_ *cluster, other *user) { u.Token = other.Token }) }), condition: valid, reasons: []string{"Unauthorized"}},
		"twin":          {kubeconfig: good, condition: ready, reasons: []string{"DuplicateCluster"}, says: "west"},
	}
	x.create("west", pod("a"))
	x.quota("all", list("pods", "10"), sharedMembers)
	x.quota("bad", list("pods", "10"), selecting("bad", "true"))
	x.becomes("all", complete, uses("pods", "1"))
	seen := x.watch("all")
	var given [][]byte
	for name, bad := range cases {
		registration := scene.Registration{Name: "bad-" + name, Labels: map[string]string{"bad": "true"}}
		t.Cleanup(func() { x.forget(registration.Name) })
		if bad.data == nil {
			bad.data = map[string][]byte{"kubeconfig": bad.kubeconfig}
		}
		for _, value := range bad.data {
			given = append(given, secretsIn(value)...)
		}
		x.must(x.WriteSecretData(t.Context(), registration, bad.data))
	}
	for name, bad := range cases {
		t.Run(name, func(t *testing.T) {
			x := &tenant{world: x.world, t: t, namespace: x.namespace}
			x.eventually(soon, func(ctx context.Context) error {
				member, err := x.Hub.Quota.Members().Get(ctx, "bad-"+name, metav1.GetOptions{})
				if err != nil {
					return err
				}
				c := meta.FindStatusCondition(member.Status.Conditions, bad.condition)
				if c == nil || c.Status != metav1.ConditionFalse || !slices.Contains(bad.reasons, c.Reason) || !strings.Contains(c.Message, bad.says) {
					return fmt.Errorf("%s is %+v, want false because of %v, with %q in its message; phase %s", bad.condition, c, bad.reasons, bad.says, member.Status.Phase)
				}
				return hasFalse(member.Status.Conditions, "Ready")
			})
		})
	}
	t.Run("others go on", func(t *testing.T) {
		x := &tenant{world: x.world, t: t, namespace: x.namespace}
		x.create("east", pod("a"))
		x.becomesWithin(10*time.Second, "all", complete, uses("pods", "2"))
		x.create("west", pod("b"))
		x.becomesWithin(10*time.Second, "all", complete, uses("pods", "3"))
		seen.stop()
		seen.always(t, complete)
		// None of the bad ones is counted as if it used nothing.
		quota := x.becomes("bad", condition("UsageComplete", "False", "MembersNotLive"), absent("pods"))
		for i := range quota.Status.Clusters {
			if row := &quota.Status.Clusters[i]; row.Phase != "NeverSynced" || len(row.Used) > 0 {
				t.Errorf("%s is %s and uses %s", row.Name, row.Phase, text(row.Used))
			}
		}
		if rowOf(quota, "bad-twin") != nil {
			t.Error("a cluster that is known under two names is summed under both")
		}
	})
	t.Run("no secret is told", func(t *testing.T) {
		if err := noLeaks(t.Context(), shared, given...); err != nil {
			t.Error(err)
		}
		// The search itself works.
		hay, err := json.Marshal(map[string]string{"a": string(given[0])})
		if err != nil || len(given[0]) > 16 && leaks(hay, given[0]) == "" {
			t.Error("a leak would not be found", err)
		}
	})
	t.Run("a good kubeconfig mends it", func(t *testing.T) {
		// Of a member that works: the bad one is refused, and the one before is used on.
		x := &tenant{world: x.world, t: t, namespace: x.namespace}
		east, err := x.Credentials(t.Context(), x.Member("east"), scene.Registration{})
		x.must(err)
		labels := scene.Registration{Name: "east", Labels: map[string]string{"shared": "true", "region": "east"}}
		x.must(x.WriteSecret(t.Context(), labels, cases["exec"].kubeconfig))
		x.member("east", memberCondition("CredentialsValid", "False", "ExecNotAllowed"), memberCondition("Ready", "True", "Live"))
		x.create("east", pod("b"))
		x.becomes("all", complete, uses("pods", "4"))
		x.must(x.WriteSecret(t.Context(), labels, east))
		x.member("east", memberCondition("CredentialsValid", "True", "Accepted"), memberCondition("Ready", "True", "Live"))
	})
}

func hasFalse(conditions []metav1.Condition, kind string) error {
	if c := meta.FindStatusCondition(conditions, kind); c == nil || c.Status != metav1.ConditionFalse {
		return fmt.Errorf("%s is %+v, want false", kind, c)
	}
	return nil
}

func twoContexts(kubeconfig []byte) []byte {
	config, err := clientcmd.Load(kubeconfig)
	if err != nil {
		panic(err)
	}
	config.Contexts["second"] = config.Contexts[config.CurrentContext].DeepCopy()
	text, err := clientcmd.Write(*config)
	if err != nil {
		panic(err)
	}
	return text
}

// silent is the address of a server that accepts connections and never says a
// word.
func silent(t *testing.T) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = connection.Close() })
		}
	}()
	return listener.Addr().String()
}
