package clusters

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// explained is an error whose text is ours.
type explained struct{ err error }

// Error quotes nothing that the member sent: a hostile server answers with the
// token that it was sent, and a helpful one with the request.
func (e explained) Error() string {
	var status apierrors.APIStatus
	if errors.As(e.err, &status) {
		code := int(status.Status().Code)
		return fmt.Sprintf("the member answers %d %s", code, http.StatusText(code))
	}
	return diagnose(e.err).message
}

// Unwrap keeps the error for those who ask what kind it is, and log nothing.
func (e explained) Unwrap() error { return e.err }

// Explain puts the error of a request to a member into words of our own. Only
// such an error may reach a log, an event or a status.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	return explained{err}
}

// Hasty hides what kind the error of a watch is from client-go's informers,
// which wait after some, for up to half a minute, and do not hear meanwhile that
// they shall end.
func Hasty(err error) error {
	if err != nil && (utilnet.IsConnectionRefused(err) || apierrors.IsTooManyRequests(err)) {
		return errors.New(err.Error())
	}
	return err
}
