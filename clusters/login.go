package clusters

import (
	"bytes"
	"time"

	"k8s.io/client-go/rest"
)

// Login is how to reach a member and who to be there. It is a value that nobody
// changes, and prints as nothing that is secret.
type Login struct {
	config  *rest.Config // without the token, if the login comes from a kubeconfig
	token   string       // added to each request; empty: config authenticates by itself
	proxy   string       // as written; config.Proxy cannot be compared
	expires time.Time    // zero: unknown
	trusted bool         // config is the hub's own and may refer to files
}

// Trusted is the login of a configuration that the hub's operator made. It is
// used as it is: nothing in it is refused.
func Trusted(config *rest.Config) *Login {
	return &Login{config: rest.CopyConfig(config), trusted: true}
}

// String hides what the login is made of.
func (*Login) String() string { return "(hidden)" }

// GoString hides what the login is made of.
func (*Login) GoString() string { return "(hidden)" }

// sameLink says whether a connection made for l also serves o, but for the
// token.
func (l *Login) sameLink(o *Login) bool {
	if l.trusted || o.trusted {
		return l == o
	}
	a, b := l.config, o.config
	return a.Host == b.Host && l.proxy == o.proxy &&
		a.DisableCompression == b.DisableCompression &&
		a.ServerName == b.ServerName &&
		bytes.Equal(a.CAData, b.CAData) &&
		bytes.Equal(a.CertData, b.CertData) &&
		bytes.Equal(a.KeyData, b.KeyData)
}

// Refusal says why a kubeconfig is not used. Neither text holds a byte of it.
type Refusal struct {
	Reason  string
	Message string
}
