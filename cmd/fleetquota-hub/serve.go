package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"
)

// serve answers HTTP at an address until ctx ends.
func serve(ctx context.Context, what, address string, handler http.Handler) error {
	if address == "0" || address == "" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("listen for %s at %s: %w", what, address, err)
	}
	klog.FromContext(ctx).Info("Listening", "for", what, "address", listener.Addr().String())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() {
		if err := server.Close(); err != nil {
			klog.FromContext(ctx).V(2).Info("Cannot close the listener", "err", err)
		}
	})
	defer stop()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s at %s: %w", what, address, err)
	}
	return nil
}

// health answers the probes: live while the process works, ready once it leads
// or stands by.
func health(state *state) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) {
		if state.ended.Load() {
			http.Error(w, "ended", http.StatusServiceUnavailable)
			return
		}
		say(w, "ok")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		switch {
		case state.ended.Load():
			http.Error(w, "ended", http.StatusServiceUnavailable)
		case state.leading.Load():
			say(w, "leading")
		case state.standby.Load():
			say(w, "standby")
		default:
			http.Error(w, "starting", http.StatusServiceUnavailable)
		}
	})
	return mux
}

func say(w http.ResponseWriter, text string) {
	if _, err := fmt.Fprintln(w, text); err != nil {
		return // the prober is gone
	}
}

// metrics answers a scrape with everything that is registered.
func metrics() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", legacyregistry.Handler())
	return mux
}

// registerBuildInfo exports the version as a label of a metric that is 1.
func registerBuildInfo(registry prometheus.Registerer) error {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "fleetquota_build_info", Help: "1, with the version of the hub as a label.",
		ConstLabels: prometheus.Labels{"version": version, "go_version": runtime.Version()},
	})
	info.Set(1)
	if err := registry.Register(info); err != nil {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}
