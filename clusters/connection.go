package clusters

import (
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Connection is one engagement's way to reach a member.
type Connection struct {
	Member  Member // as it was when the engagement began
	UID     types.UID
	Version string

	// Config is for further clients. It holds no secret: the token is added by
	// its transport, which always has the latest. All clients that are made from
	// it share one rate limiter.
	Config *rest.Config
	// Client is shared by the clients that are made for this engagement, as in
	// metadata.NewForConfigAndClient(c.Config, c.Client).
	Client *http.Client
	// Kubernetes speaks protobuf.
	Kubernetes kubernetes.Interface

	clock *clockOffset // nil: none is known
}

// Now is the time of the member's clock at the given time of the hub's, by the
// offset last seen.
func (c *Connection) Now(hub time.Time) time.Time {
	return hub.Add(c.clock.load())
}

// clockOffset is the member's clock minus the hub's. It is written by probes
// and read by the engagement. The nil pointer is an offset of zero.
type clockOffset struct{ nanos atomic.Int64 }

func (c *clockOffset) load() time.Duration {
	if c == nil {
		return 0
	}
	return time.Duration(c.nanos.Load())
}

func (c *clockOffset) store(d time.Duration) { c.nanos.Store(int64(d)) }
