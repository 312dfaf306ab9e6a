package clusters_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"github.com/fleetquota/fleetquota/clusters"
)

func jwt(expires time.Time) string {
	body := fmt.Sprintf(`{"exp":%d}`, expires.Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(body)) + ".c2ln"
}

// file is a kubeconfig that is accepted, but for the changes.
func file(changes ...func(c *clientcmdv1.Config)) string {
	c := &clientcmdv1.Config{
		CurrentContext: "c",
		Contexts:       []clientcmdv1.NamedContext{{Name: "c", Context: clientcmdv1.Context{Cluster: "k", AuthInfo: "u"}}},
		Clusters:       []clientcmdv1.NamedCluster{{Name: "k", Cluster: clientcmdv1.Cluster{Server: "https://east:6443"}}},
		AuthInfos:      []clientcmdv1.NamedAuthInfo{{Name: "u", AuthInfo: clientcmdv1.AuthInfo{Token: "t0ken"}}},
	}
	for _, change := range changes {
		change(c)
	}
	text, err := yaml.Marshal(c)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func user(change func(*clientcmdv1.AuthInfo)) string {
	return file(func(c *clientcmdv1.Config) { change(&c.AuthInfos[0].AuthInfo) })
}

func server(change func(*clientcmdv1.Cluster)) string {
	return file(func(c *clientcmdv1.Config) { change(&c.Clusters[0].Cluster) })
}

func address(a string) string { return server(func(c *clientcmdv1.Cluster) { c.Server = a }) }

func proxied(p string) string { return server(func(c *clientcmdv1.Cluster) { c.ProxyURL = p }) }

func extensions() []clientcmdv1.NamedExtension {
	e := clientcmdv1.NamedExtension{Name: "e"}
	e.Extension.Raw = []byte(`{"a":1}`)
	return []clientcmdv1.NamedExtension{e}
}

func TestWhatAKubeconfigMayNot(t *testing.T) {
	for name, tc := range map[string]struct{ text, reason string }{
		"run a program":                    {user(func(u *clientcmdv1.AuthInfo) { u.Exec = &clientcmdv1.ExecConfig{Command: "sh"} }), clusters.ReasonExecNotAllowed},
		"run an empty program":             {strings.Replace(file(), "token:", "exec: {}\n    token:", 1), clusters.ReasonExecNotAllowed},
		"use an auth-provider":             {user(func(u *clientcmdv1.AuthInfo) { u.AuthProvider = &clientcmdv1.AuthProviderConfig{} }), clusters.ReasonAuthProviderNotAllowed},
		"name a token file":                {user(func(u *clientcmdv1.AuthInfo) { u.TokenFile = "/etc/passwd" }), clusters.ReasonFileReferenceNotAllowed},
		"name a certificate file":          {user(func(u *clientcmdv1.AuthInfo) { u.ClientCertificate = "/etc/passwd" }), clusters.ReasonFileReferenceNotAllowed},
		"name a key file":                  {user(func(u *clientcmdv1.AuthInfo) { u.ClientKey = "/etc/passwd" }), clusters.ReasonFileReferenceNotAllowed},
		"name an authority file":           {server(func(c *clientcmdv1.Cluster) { c.CertificateAuthority = "/etc/passwd" }), clusters.ReasonFileReferenceNotAllowed},
		"have a username":                  {user(func(u *clientcmdv1.AuthInfo) { u.Username = "admin" }), clusters.ReasonBasicAuthNotAllowed},
		"have a password":                  {user(func(u *clientcmdv1.AuthInfo) { u.Password = "admin" }), clusters.ReasonBasicAuthNotAllowed},
		"skip TLS":                         {server(func(c *clientcmdv1.Cluster) { c.InsecureSkipTLSVerify = true }), clusters.ReasonInsecureTLSNotAllowed},
		"speak plainly":                    {address("http://east"), clusters.ReasonServerNotAllowed},
		"leave the server out":             {address(""), clusters.ReasonServerNotAllowed},
		"leave the scheme out":             {address("east:6443"), clusters.ReasonServerNotAllowed},
		"leave the host out":               {address("https://:6443"), clusters.ReasonServerNotAllowed},
		"have an opaque server":            {address("https:east"), clusters.ReasonServerNotAllowed},
		"have userinfo":                    {address("https://u:p@east"), clusters.ReasonServerNotAllowed},
		"have a query":                     {address("https://east/?a=b"), clusters.ReasonServerNotAllowed},
		"have a fragment":                  {address("https://east/#a"), clusters.ReasonServerNotAllowed},
		"have a server that is no URL":     {address("https://east:%zz"), clusters.ReasonServerNotAllowed},
		"name a proxy":                     {proxied("http://proxy"), clusters.ReasonProxyNotAllowed},
		"impersonate a user":               {user(func(u *clientcmdv1.AuthInfo) { u.Impersonate = "x" }), clusters.ReasonImpersonationNotAllowed},
		"impersonate a UID":                {user(func(u *clientcmdv1.AuthInfo) { u.ImpersonateUID = "x" }), clusters.ReasonImpersonationNotAllowed},
		"impersonate a group":              {user(func(u *clientcmdv1.AuthInfo) { u.ImpersonateGroups = []string{"x"} }), clusters.ReasonImpersonationNotAllowed},
		"impersonate an extra":             {user(func(u *clientcmdv1.AuthInfo) { u.ImpersonateUserExtra = map[string][]string{"x": {"y"}} }), clusters.ReasonImpersonationNotAllowed},
		"have extensions":                  {file(func(c *clientcmdv1.Config) { c.Extensions = extensions() }), clusters.ReasonExtensionsNotAllowed},
		"have extensions of a cluster":     {server(func(c *clientcmdv1.Cluster) { c.Extensions = extensions() }), clusters.ReasonExtensionsNotAllowed},
		"have extensions of a user":        {user(func(u *clientcmdv1.AuthInfo) { u.Extensions = extensions() }), clusters.ReasonExtensionsNotAllowed},
		"have extensions of a context":     {file(func(c *clientcmdv1.Config) { c.Contexts[0].Context.Extensions = extensions() }), clusters.ReasonExtensionsNotAllowed},
		"have extensions of preferences":   {file(func(c *clientcmdv1.Config) { c.Preferences.Extensions = extensions() }), clusters.ReasonExtensionsNotAllowed},
		"be empty":                         {"", clusters.ReasonAmbiguous},
		"have two contexts":                {file(func(c *clientcmdv1.Config) { c.Contexts = append(c.Contexts, c.Contexts[0]) }), clusters.ReasonAmbiguous},
		"have two clusters":                {file(func(c *clientcmdv1.Config) { c.Clusters = append(c.Clusters, c.Clusters[0]) }), clusters.ReasonAmbiguous},
		"have two users":                   {file(func(c *clientcmdv1.Config) { c.AuthInfos = append(c.AuthInfos, c.AuthInfos[0]) }), clusters.ReasonAmbiguous},
		"miss its current context":         {file(func(c *clientcmdv1.Config) { c.CurrentContext = "x" }), clusters.ReasonAmbiguous},
		"miss its cluster":                 {file(func(c *clientcmdv1.Config) { c.Contexts[0].Context.Cluster = "x" }), clusters.ReasonAmbiguous},
		"miss its user":                    {file(func(c *clientcmdv1.Config) { c.Contexts[0].Context.AuthInfo = "x" }), clusters.ReasonAmbiguous},
		"be larger than 1 MiB":             {file() + strings.Repeat("#", 1<<20), clusters.ReasonTooLarge},
		"be no YAML":                       {"\ta: [", clusters.ReasonParseError},
		"be of another kind":               {file(func(c *clientcmdv1.Config) { c.Kind = "Secret" }), clusters.ReasonParseError},
		"have unknown fields":              {file() + "\nfoo: bar\n", clusters.ReasonParseError},
		"have a field twice":               {file() + "\ncontexts: []\n", clusters.ReasonParseError},
		"have a wrong type":                {"clusters: 7", clusters.ReasonParseError},
		"have an empty authority":          {server(func(c *clientcmdv1.Cluster) { c.CertificateAuthorityData = []byte("x") }), clusters.ReasonBadCertificate},
		"have a certificate without a key": {user(func(u *clientcmdv1.AuthInfo) { u.ClientCertificateData = []byte("x") }), clusters.ReasonBadCertificate},
		"have a token of two lines":        {user(func(u *clientcmdv1.AuthInfo) { u.Token = "a\nb" }), clusters.ReasonBadToken},
		"have no credentials":              {user(func(u *clientcmdv1.AuthInfo) { u.Token = "" }), clusters.ReasonNoCredentials},
	} {
		t.Run(name, func(t *testing.T) {
			login, refusal := clusters.ParseKubeconfig([]byte(tc.text), clusters.Allowances{})
			if login != nil || refusal == nil || refusal.Reason != tc.reason || refusal.Message == "" {
				t.Errorf("got %v, want %s", refusal, tc.reason)
			}
		})
	}
}

func TestWhatAKubeconfigMay(t *testing.T) {
	ca := newAuthority(t)
	cert, key := ca.issue(t, "user", time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	for name, text := range map[string]string{
		"have no current context":      file(func(c *clientcmdv1.Config) { c.CurrentContext = "" }),
		"name the TLS server":          server(func(c *clientcmdv1.Cluster) { c.TLSServerName = "x" }),
		"have a path":                  address("https://rancher/k8s/clusters/c-1"),
		"end its token with a newline": user(func(u *clientcmdv1.AuthInfo) { u.Token += "\n" }),
		"name a namespace":             file(func(c *clientcmdv1.Config) { c.Contexts[0].Context.Namespace = "x" }),
		"have preferences":             file() + "\nkind: Config\n",
		"name a proxy, if allowed":     proxied("socks5://proxy:1080"),
		"have a client certificate": user(func(u *clientcmdv1.AuthInfo) {
			u.Token, u.ClientCertificateData, u.ClientKeyData = "", cert, key
		}),
		"be JSON": kubeconfig("https://east", "t0ken", ca.pem),
	} {
		t.Run(name, func(t *testing.T) {
			login, refusal := clusters.ParseKubeconfig([]byte(text), clusters.Allowances{Proxy: true})
			if refusal != nil {
				t.Fatalf("refused: %v", *refusal)
			}
			if got := fmt.Sprintf("%v %+v %#v", login, login, login); strings.Contains(got, "t0ken") {
				t.Errorf("it prints as %s", got)
			}
		})
	}
}

func TestWhatAProxyMayNot(t *testing.T) {
	for _, proxy := range []string{"http://u:p@proxy", "ftp://proxy", "proxy", "%zz"} {
		_, refusal := clusters.ParseKubeconfig([]byte(proxied(proxy)), clusters.Allowances{Proxy: true})
		if refusal == nil || refusal.Reason != clusters.ReasonProxyNotAllowed {
			t.Errorf("%s: got %v", proxy, refusal)
		}
	}
}

// A secret of 12 letters and digits is put into a kubeconfig that is then
// damaged. No 8 bytes of it may show, whatever is found wrong.
func TestARefusalHoldsNothingOfTheSecret(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[A-Za-z0-9]{12}`).Draw(t, "secret")
		raw, _ := json.Marshal([]byte(secret))
		text := rapid.SampledFrom([]string{
			user(func(u *clientcmdv1.AuthInfo) { u.Token = secret + " x" }),
			user(func(u *clientcmdv1.AuthInfo) { u.Password = secret }),
			user(func(u *clientcmdv1.AuthInfo) {
				u.ClientCertificateData, u.ClientKeyData = []byte(secret), []byte(secret)
			}),
			user(func(u *clientcmdv1.AuthInfo) { u.TokenFile = secret }),
			address("https://u:" + secret + "@east:%zz"), address("https://u:" + secret + "@east"),
			proxied("http://u:" + secret + "@proxy"), file() + secret + ": 1\n", file() + secret,
			"clusters: " + secret, "users: [{user: {client-key-data: " + secret + "}}]",
			"users: [{user: {token: {" + secret + ": 1}}}]", "clusters: [{cluster: {insecure-skip-tls-verify: " + secret + "}}]",
			"users: [{user: {client-key-data: " + string(raw) + "x}}]", "a: *" + secret, "a: !" + secret + " b", secret + ": 1\n" + secret + ": 2",
		}).Draw(t, "text")
		cut := rapid.IntRange(0, len(text)).Draw(t, "cut")
		garbage := rapid.StringMatching(`[\[\]{}:"'!&*\n\t -]{0,3}`).Draw(t, "garbage")
		for _, damaged := range []string{text, text[:cut] + garbage + text[cut:], text[:cut]} {
			_, refusal := clusters.ParseKubeconfig([]byte(damaged), clusters.Allowances{Proxy: true})
			if refusal == nil {
				continue
			}
			shown := refusal.Reason + refusal.Message
			for i := range len(secret) - 7 {
				if strings.Contains(shown, secret[i:i+8]) {
					t.Fatalf("%q shows %q", shown, secret)
				}
			}
		}
	})
}

func FuzzParseKubeconfig(f *testing.F) {
	f.Add([]byte(file()))
	f.Add([]byte("a: &a [*a, *a]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		login, refusal := clusters.ParseKubeconfig(data, clusters.Allowances{Proxy: true})
		if (login == nil) == (refusal == nil) {
			t.Errorf("login %v, refusal %v", login, refusal)
		}
	})
}
