package clusters

import (
	"net/url"
	"strings"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
)

// rule is one entry of the allow-list, in the negative.
type rule struct {
	broken          bool
	reason, message string
}

func check(rules ...rule) *Refusal {
	for _, r := range rules {
		if r.broken {
			return &Refusal{r.reason, r.message}
		}
	}
	return nil
}

func firstBroken(refusals ...*Refusal) *Refusal {
	for _, r := range refusals {
		if r != nil {
			return r
		}
	}
	return nil
}

const minify = "; kubectl config view --minify --flatten --raw prints one that is"

func checkFile(f *clientcmdv1.Config) *Refusal {
	return check(
		rule{
			(f.Kind != "" && f.Kind != "Config") || (f.APIVersion != "" && f.APIVersion != "v1"),
			ReasonParseError, "this is not a kubeconfig of version v1",
		},
		rule{len(f.Clusters) != 1, ReasonAmbiguous, "the kubeconfig must have exactly one cluster" + minify},
		rule{len(f.AuthInfos) != 1, ReasonAmbiguous, "the kubeconfig must have exactly one user" + minify},
		rule{len(f.Contexts) != 1, ReasonAmbiguous, "the kubeconfig must have exactly one context" + minify},
		rule{hasExtensions(f), ReasonExtensionsNotAllowed, "the kubeconfig may have no extensions"},
	)
}

func hasExtensions(f *clientcmdv1.Config) bool {
	n := len(f.Extensions) + len(f.Preferences.Extensions)
	for i := range f.Clusters {
		n += len(f.Clusters[i].Cluster.Extensions)
	}
	for i := range f.AuthInfos {
		n += len(f.AuthInfos[i].AuthInfo.Extensions)
	}
	for i := range f.Contexts {
		n += len(f.Contexts[i].Context.Extensions)
	}
	return n > 0
}

func checkCurrent(f *clientcmdv1.Config) *Refusal {
	context := &f.Contexts[0]
	return check(
		rule{
			f.CurrentContext != "" && f.CurrentContext != context.Name,
			ReasonAmbiguous, "the current context of the kubeconfig does not exist in it",
		},
		rule{
			context.Context.Cluster != f.Clusters[0].Name,
			ReasonAmbiguous, "the context of the kubeconfig names a cluster that does not exist in it",
		},
		rule{
			context.Context.AuthInfo != f.AuthInfos[0].Name,
			ReasonAmbiguous, "the context of the kubeconfig names a user that does not exist in it",
		},
	)
}

func checkUser(u *clientcmdv1.AuthInfo) *Refusal {
	return check(
		rule{
			u.Exec != nil, ReasonExecNotAllowed,
			"the user may run no program (exec); use the token of a service account, as kubectl fleetquota join does",
		},
		rule{
			u.AuthProvider != nil, ReasonAuthProviderNotAllowed,
			"the user may use no auth-provider; use the token of a service account",
		},
		rule{u.TokenFile != "", ReasonFileReferenceNotAllowed, "the user may name no tokenFile; put the token inline"},
		rule{
			u.ClientCertificate != "" || u.ClientKey != "", ReasonFileReferenceNotAllowed,
			"the user may name no files; put client-certificate-data and client-key-data inline",
		},
		rule{u.Username != "" || u.Password != "", ReasonBasicAuthNotAllowed, "the user may have no username and password"},
		rule{
			u.Impersonate != "" || u.ImpersonateUID != "" || len(u.ImpersonateGroups)+len(u.ImpersonateUserExtra) > 0,
			ReasonImpersonationNotAllowed, "the user may impersonate nobody (as, as-uid, as-groups, as-user-extra)",
		},
	)
}

func checkCluster(c *clientcmdv1.Cluster) *Refusal {
	return check(
		rule{
			c.CertificateAuthority != "", ReasonFileReferenceNotAllowed,
			"the cluster may name no file; put certificate-authority-data inline",
		},
		rule{
			c.InsecureSkipTLSVerify, ReasonInsecureTLSNotAllowed,
			"insecure-skip-tls-verify is not allowed: anybody in between would get the token",
		},
	)
}

func checkServer(server string) *Refusal {
	u, err := url.Parse(server)
	if err != nil {
		return &Refusal{ReasonServerNotAllowed, "the server's address is not a URL"}
	}
	return check(
		rule{u.Scheme != "https", ReasonServerNotAllowed, "the server's address must begin with https://"},
		rule{u.User != nil, ReasonServerNotAllowed, "the server's address may hold no user and password"},
		rule{u.Hostname() == "" || u.Opaque != "", ReasonServerNotAllowed, "the server's address has no host"},
		rule{strings.ContainsAny(server, "?#"), ReasonServerNotAllowed, "the server's address may have no query and no fragment"},
	)
}
