package controller

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// newBroadcaster sends events to the hub's API server, once it is started. The
// recorder may be used before.
func (h *hub) newBroadcaster() error {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return fmt.Errorf("register the types of %s: %w", v1alpha1.GroupName, err)
	}
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return fmt.Errorf("register the types of Kubernetes: %w", err)
	}
	h.broadcaster = events.NewBroadcaster(&events.EventSinkImpl{Interface: h.kubernetes.EventsV1()})
	h.recorder = h.broadcaster.NewRecorder(scheme, "fleetquota.io/hub")
	return nil
}

// record sends events until ctx ends.
func (h *hub) record(ctx context.Context) error {
	defer h.broadcaster.Shutdown()
	if err := h.broadcaster.StartRecordingToSinkWithContext(ctx); err != nil {
		return fmt.Errorf("record events: %w", err)
	}
	<-ctx.Done()
	return nil
}
