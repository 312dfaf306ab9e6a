package clusters

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
)

var errNotKubernetes = errors.New("not the answer of a Kubernetes API server")

// failure is why a probe failed, in words of our own: an error of the network
// may quote the address, one of the server anything.
type failure struct {
	reason, message string
	result          ProbeResult
}

func diagnose(err error) failure {
	var status statusError
	var network net.Error
	var lookup *net.DNSError
	switch {
	case errors.As(err, &status):
		return diagnoseStatus(int(status))
	case errors.Is(err, errNotKubernetes):
		return failure{ReasonUnknownServer, "the server does not answer as a Kubernetes API server does", ProbeOther}
	case errors.As(err, &lookup) && lookup.IsNotFound:
		return failure{ReasonHostNotFound, "the name of the server does not resolve", ProbeOther}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout(), isLost(err):
		return failure{ReasonTimeout, "the server did not answer in time", ProbeTimeout}
	case errors.Is(err, syscall.ECONNREFUSED):
		return failure{ReasonConnectionRefused, "nothing listens at the address of the server", ProbeOther}
	}
	if message := diagnoseTLS(err); message != "" {
		return failure{ReasonTLSError, message, ProbeTLS}
	}
	return failure{ReasonConnectionLost, "the connection to the server failed", ProbeOther}
}

// isLost says whether HTTP/2 gave up a connection whose peer answered no ping:
// the same silence as that of a probe that ends by its own timeout.
func isLost(err error) bool {
	return strings.Contains(err.Error(), "http2: client connection lost") // which is not exported
}

func diagnoseStatus(code int) failure {
	switch {
	case code == http.StatusUnauthorized:
		return failure{ReasonUnauthorized, "the member does not accept the credentials", ProbeUnauthorized}
	case code == http.StatusForbidden:
		return failure{
			ReasonForbidden,
			"the credentials may not get /version and the namespace kube-system, by which a cluster is known", ProbeOther,
		}
	case code == http.StatusTooManyRequests || code >= http.StatusInternalServerError:
		return failure{ReasonServerError, fmt.Sprintf("the server answers with status %d", code), ProbeOther}
	default:
		return failure{
			ReasonUnknownServer,
			fmt.Sprintf("the server answers with status %d, unlike a Kubernetes API server", code), ProbeOther,
		}
	}
}

// diagnoseTLS is empty for an error that is not one of TLS.
func diagnoseTLS(err error) string {
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	switch {
	case errors.As(err, &authority):
		return "the server's certificate is not signed by the kubeconfig's certificate authority"
	case errors.As(err, &hostname):
		return "the server's certificate is for another host; tls-server-name can name it"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the server's certificate has expired or is not yet valid"
	case errors.As(err, &invalid), errors.As(err, &verification):
		return "the server's certificate is not valid"
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return "the server does not speak TLS"
	case errors.As(err, &alert):
		return "the server ended the TLS handshake"
	default:
		return ""
	}
}
