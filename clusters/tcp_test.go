package clusters_test

import (
	"context"
	"encoding/pem"
	"errors"
	"net/http/httptest"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/clusters"
)

// fixed is a source of one member.
type fixed struct{ offer clusters.Offer }

func (f fixed) Run(ctx context.Context, sink clusters.Sink) error {
	sink.Offer(f.offer)
	sink.Listed()
	<-ctx.Done()
	return nil
}

// broken is a source that cannot go on.
type broken struct{ fixed }

func (b broken) Run(_ context.Context, sink clusters.Sink) error {
	sink.Offer(b.offer)
	return errEngage
}

// once is a host that is content with one engagement.
type once struct{ engaged chan *clusters.Connection }

func (o once) Engage(ctx context.Context, c *clusters.Connection) error {
	o.engaged <- c
	<-ctx.Done()
	return ctx.Err()
}
func (once) Observe(context.Context, clusters.State)                       {}
func (once) Gone(context.Context, string)                                  {}
func (once) Refuse(_ context.Context, _ types.NamespacedName, _, _ string) {}

func onTCP(t *testing.T) clusters.Offer {
	t.Helper()
	c := &cluster{uid: "uid-1", version: "v1.37.2", token: "t0ken", tokens: map[string]int{}}
	s := httptest.NewUnstartedServer(c)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	login, refusal := clusters.ParseKubeconfig([]byte(kubeconfig(s.URL, "t0ken", ca)), clusters.Allowances{})
	if refusal != nil {
		t.Fatal(*refusal)
	}
	return clusters.Offer{Member: clusters.Member{Name: "east"}, Login: login}
}

func TestAMemberOnTCP(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	host := once{make(chan *clusters.Connection, 1)}
	probed := make(chan clusters.ProbeResult, 100)
	done := make(chan error)
	go func() {
		done <- clusters.Serve(ctx, fixed{onTCP(t)}, host, clusters.Options{
			Probed: func(_ string, result clusters.ProbeResult, _ time.Duration) { probed <- result },
		})
	}()
	select {
	case c := <-host.engaged:
		if _, err := c.Kubernetes.Discovery().ServerVersion(); err != nil {
			t.Error(err)
		}
	case <-ctx.Done():
		t.Error("not engaged")
	}
	if result := <-probed; result != clusters.ProbeSuccess {
		t.Errorf("probed: %s", result)
	}
	cancel()
	must(t, <-done)
}

func TestASourceThatFailsEndsServe(t *testing.T) {
	host := once{make(chan *clusters.Connection, 1)}
	err := clusters.Serve(t.Context(), broken{fixed{onTCP(t)}}, host, clusters.Options{})
	if !errors.Is(err, errEngage) {
		t.Errorf("got %v", err)
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	for _, o := range []clusters.Options{
		{StaleAfter: time.Hour}, {ProbeEvery: time.Hour}, {BackoffMin: time.Hour},
	} {
		if err := clusters.Serve(t.Context(), fixed{}, once{}, o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
