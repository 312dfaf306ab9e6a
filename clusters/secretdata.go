package clusters

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"
)

// checkSecrets looks at the certificates and the token, and learns when they
// expire.
func (l *Login) checkSecrets() *Refusal {
	c := &l.config.TLSClientConfig
	if l.token == "" && len(c.CertData)+len(c.KeyData) == 0 {
		return &Refusal{ReasonNoCredentials, "the user has neither a token nor a client certificate"}
	}
	if len(c.CAData) > 0 && !x509.NewCertPool().AppendCertsFromPEM(c.CAData) {
		return &Refusal{ReasonBadCertificate, "certificate-authority-data holds no certificate in PEM"}
	}
	if strings.ContainsFunc(l.token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return &Refusal{ReasonBadToken, "the token holds characters that no token has, such as a blank"}
	}
	l.expires = tokenExpiry(l.token)
	if len(c.CertData)+len(c.KeyData) == 0 {
		return nil
	}
	pair, err := tls.X509KeyPair(c.CertData, c.KeyData)
	if err != nil {
		return &Refusal{ReasonBadCertificate, "client-certificate-data and client-key-data are not a certificate and its key in PEM"}
	}
	l.expires = earlier(l.expires, pair.Leaf.NotAfter)
	return nil
}

// tokenExpiry reads when a JWT expires, without a look at its signature. Zero:
// it does not say, or is none.
func tokenExpiry(token string) time.Time {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}
	}
	body, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil {
		return time.Time{}
	}
	var claims struct {
		Expires float64 `json:"exp"`
	}
	const year9999 = 253402300799 // beyond it a time has no text
	if json.Unmarshal(body, &claims) != nil || claims.Expires <= 0 || claims.Expires > year9999 {
		return time.Time{}
	}
	return time.Unix(int64(claims.Expires), 0).UTC()
}

// earlier is the earlier of two times; zero is no time at all.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
