package controller

import (
	"context"
	"errors"
	"net/url"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/fleetquota/fleetquota/clusters"
)

// dead is a client of a server where nothing listens.
type dead struct{ asked chan struct{} }

var errRefused = &url.Error{Op: "Get", URL: "https://127.0.0.1:1", Err: syscall.ECONNREFUSED}

func (d dead) List(context.Context, metav1.ListOptions) (*corev1.ResourceQuotaList, error) {
	return nil, errRefused
}

func (d dead) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	select {
	case d.asked <- struct{}{}:
	default:
	}
	return nil, errRefused
}

func TestAnInformerOfADeadMemberEndsAtOnce(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	client := dead{asked: make(chan struct{})}
	i := newInformer(listWatch(client), &corev1.ResourceQuota{}, 0)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		i.RunWithContext(ctx)
	}()
	for range 2 {
		<-client.asked
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(500 * time.Millisecond):
		t.Error("it sleeps on after it was told to end")
	}
}

func TestOnlyErrorsThatInformersSleepOnAreHidden(t *testing.T) {
	t.Parallel()
	other := errors.New("other")
	if got := clusters.Hasty(other); !errors.Is(got, other) {
		t.Errorf("%v is hidden", got)
	}
	if got := clusters.Hasty(errRefused); errors.Is(got, syscall.ECONNREFUSED) {
		t.Error("a refused connection is not hidden")
	}
	if clusters.Hasty(nil) != nil {
		t.Error("no error is one")
	}
}
