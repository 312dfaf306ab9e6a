package fleet

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Status says what a cluster does now.
type Status string

// The statuses.
const (
	Running Status = "Running"
	Frozen  Status = "Frozen"
	Stopped Status = "Stopped"
	Broken  Status = "Broken" // some of its parts run, others do not
)

// action is something done to a cluster that exists.
type action string

const (
	freeze     action = "freeze"
	thaw       action = "thaw"
	kill       action = "kill"
	stop       action = "stop"
	startQuota action = "start the native quota controller of"
	stopQuota  action = "stop the native quota controller of"
)

// machine is what a provider does for one cluster. Calls for one cluster never
// overlap.
type machine interface {
	// start makes the cluster if need be and returns when it is ready. If it
	// fails nothing of it runs.
	start(ctx context.Context, s state) error
	do(ctx context.Context, s state, a action) error
	status(ctx context.Context, s state) (Status, error)
	// remove ends it at once; its folder is removed by the caller.
	remove(ctx context.Context, s state) error
}

const readyTimeout = 3 * time.Minute

// awaitAPI returns once the server is ready and has made the namespaces that
// it makes itself. A failure that the check cannot cure comes from broken.
func awaitAPI(ctx context.Context, config *rest.Config, broken <-chan struct{}) error {
	quick := rest.CopyConfig(config)
	quick.Timeout = 2 * time.Second
	client, err := kubernetes.NewForConfig(quick)
	if err != nil {
		return err
	}
	return await(ctx, broken, func(ctx context.Context) error {
		if _, err := client.RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
			return err
		}
		for _, namespace := range []string{metav1.NamespaceDefault, metav1.NamespaceSystem} {
			if _, err := client.CoreV1().Namespaces().Get(ctx, namespace, metav1.GetOptions{}); err != nil {
				return err
			}
		}
		return nil
	})
}

// awaitHTTP returns once the address answers 200.
func awaitHTTP(ctx context.Context, client *http.Client, url string, broken <-chan struct{}) error {
	return await(ctx, broken, func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, response.Status)
		}
		return nil
	})
}

var errBroken = errors.New("ended before it was ready")

// await repeats a check until it succeeds.
func await(ctx context.Context, broken <-chan struct{}, check func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(5 * pollInterval)
	defer tick.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-broken:
			return errBroken
		case <-ctx.Done():
			return fmt.Errorf("%w; last: %w", context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}
