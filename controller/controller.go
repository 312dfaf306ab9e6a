package controller

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"

	"github.com/fleetquota/fleetquota/clusters"
	"github.com/fleetquota/fleetquota/evaluator/wire"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/federation/v1alpha1/client"
)

// Options says how the hub runs.
type Options struct {
	Hub       *rest.Config // how to reach the hub's API server; required
	Namespace string       // where the Secrets of members are; required

	LocalStatus       v1alpha1.LocalStatusMode // for members whose Secret does not say; default Auto
	IncludeHub        string                   // the hub is a member under this name; empty: it is not
	ClusterAPI        bool                     // kubeconfig Secrets of Cluster API are members too
	AllowProxy        bool                     // kubeconfigs may name a proxy
	StatusMinInterval time.Duration            // between two writes of one status; default 1s
	StatusRate        int                      // bytes of status per second and object; default 64 KiB
	StatusRateHub     int                      // bytes of status per second in all; default 2 MiB
	AnswerWithin      time.Duration            // what a native quota controller is given to answer before Auto takes over; default 10s
	ReleaseSettle     time.Duration            // how long after admission has charged for an object it may still be stored; default 6s
	RestartHold       time.Duration            // how long after a start a status that names a member waits for that member; default 10s
	Workers           int                      // for each queue; default 4
	Listing           int                      // members whose lists are read at one time; default 16

	Members  clusters.Options      // probing and back-off
	Registry prometheus.Registerer // for the hub's metrics; nil: they are not exported
}

func (o Options) complete() (Options, error) {
	switch {
	case o.Hub == nil:
		return o, errors.New("the field Hub is required")
	case o.Namespace == "":
		return o, errors.New("the field Namespace is required: where the Secrets of members are")
	}
	if o.LocalStatus == "" {
		o.LocalStatus = v1alpha1.LocalAuto
	}
	if !validMode(o.LocalStatus) {
		return o, fmt.Errorf("LocalStatus %q: use Always, Never or Auto", o.LocalStatus)
	}
	const kib = 1024
	o.StatusMinInterval = positive(o.StatusMinInterval, time.Second)
	o.StatusRate = positive(o.StatusRate, 64*kib)
	o.StatusRateHub = positive(o.StatusRateHub, 2*kib*kib)
	o.AnswerWithin = positive(o.AnswerWithin, 10*time.Second)
	o.ReleaseSettle = positive(o.ReleaseSettle, 6*time.Second)
	o.RestartHold = positive(o.RestartHold, 10*time.Second)
	o.Workers = positive(o.Workers, 4)
	o.Listing = positive(o.Listing, 16)
	return o, nil
}

func positive[T int | time.Duration](value, otherwise T) T {
	if value <= 0 {
		return otherwise
	}
	return value
}

func validMode(mode v1alpha1.LocalStatusMode) bool {
	return mode == v1alpha1.LocalAlways || mode == v1alpha1.LocalNever || mode == v1alpha1.LocalAuto
}

// hub is what the loops share.
type hub struct {
	Options

	kubernetes kubernetes.Interface
	fleet      *client.Client
	metrics    *metrics

	broadcaster events.EventBroadcaster
	recorder    events.EventRecorder

	ledger  *federation.Ledger
	charges *wire.Charges // of the objects of all members
	quotas  *quotas       // the FleetQuotas
	gate    *gate         // bounds how many members are listed at one time
	roster  *roster       // the members, as they are known now
	report  *reporter     // writes the status of FleetQuotas
	enforce *enforcer     // divides their limits among the members
}

// Run watches the members and keeps every status until ctx ends. When it
// returns, nothing that it started is left. Only one process may run it at a
// time for one hub; two would write the same numbers, but twice.
func Run(ctx context.Context, o Options) error {
	o, err := o.complete()
	if err != nil {
		return fmt.Errorf("options of the controller: %w", err)
	}
	h, err := newHub(o)
	if err != nil {
		return err
	}
	if o.Registry != nil {
		if err := o.Registry.Register(h.metrics); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
		defer o.Registry.Unregister(h.metrics)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return h.record(ctx) })
	group.Go(func() error { return h.quotas.run(ctx) })
	group.Go(func() error { return h.roster.run(ctx) })
	group.Go(func() error { return h.report.run(ctx) })
	group.Go(func() error { return h.enforce.run(ctx) })
	group.Go(func() error { return h.serve(ctx) })
	return group.Wait()
}

// newHub makes all that the loops share, and starts nothing.
func newHub(o Options) (*hub, error) {
	config := rest.CopyConfig(o.Hub)
	config.QPS, config.Burst = 1000, 2000 // a status a second of each of many FleetQuotas; the server limits its clients by itself
	shared, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("make a client of the hub: %w", err)
	}
	h := &hub{Options: o}
	if err := h.connect(config, shared); err != nil {
		return nil, fmt.Errorf("make a client of the hub: %w", err)
	}
	if err := h.newBroadcaster(); err != nil {
		return nil, err
	}
	h.gate = newGate(h.Listing)
	h.quotas = newQuotas(h)
	h.roster = newRoster(h)
	h.metrics = newMetrics(h.roster.drifting)
	h.report = newReporter(h)
	h.enforce = newEnforcer(h)
	h.ledger, h.charges = federation.NewLedger(h.moved), wire.NewCharges(0)
	return h, nil
}

func (h *hub) connect(config *rest.Config, shared *http.Client) error {
	var err error
	if h.fleet, err = client.New(config, shared); err != nil {
		return err
	}
	binary := rest.CopyConfig(config)
	binary.ContentType = runtime.ContentTypeProtobuf
	binary.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	h.kubernetes, err = kubernetes.NewForConfigAndClient(binary, shared)
	return err
}

// serve runs one engagement per member until ctx ends.
func (h *hub) serve(ctx context.Context) error {
	source := clusters.NewSecrets(h.kubernetes, h.Namespace, clusters.SecretOptions{
		ClusterAPI: h.ClusterAPI, AllowProxy: h.AllowProxy, HubName: h.IncludeHub, HubConfig: h.Hub,
	})
	options := h.Members
	options.Listed = func(context.Context) { h.roster.listed() }
	options.Probed = h.metrics.probed
	return clusters.Serve(ctx, source, h.roster, options)
}

// gather is how long a change waits for those that belong to it: one deletion
// of a pod arrives as two events, the second some milliseconds after the first.
const gather = 20 * time.Millisecond

// moved queues the FleetQuotas that a change in a member can touch. The ledger
// calls it for every change.
func (h *hub) moved(move federation.Move) {
	for _, quota := range h.quotas.in(move.Namespace) {
		h.report.queue.AddAfter(keyOf(quota), gather)
		if move.Kind == federation.Namespaces {
			h.enforce.queue.Add(keyOf(quota)) // there is something to bound now, or no more
		}
	}
	h.roster.moved(move)
}
