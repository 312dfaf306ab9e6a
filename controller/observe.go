package controller

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/fleetquota/fleetquota/clusters"
	"github.com/fleetquota/fleetquota/evaluator/wire"
	"github.com/fleetquota/fleetquota/federation"
)

// observers keep the book of one engagement, one for each kind that is asked
// for. Only follow uses it, troubled aside.
type observers struct {
	engagement *engagement
	running    map[schema.GroupResource]*running
	trouble    atomic.Bool // some kind may be served no more
}

type running struct {
	version string
	cancel  context.CancelFunc
	ended   sync.WaitGroup
}

func newObservers(e *engagement) *observers {
	return &observers{engagement: e, running: map[schema.GroupResource]*running{}}
}

// want starts and stops observers so that there is one for each of these kinds.
func (o *observers) want(ctx context.Context, kinds catalogue) {
	for kind, r := range o.running {
		if version, wanted := kinds[kind]; !wanted || version != r.version {
			o.end(kind, r)
		}
	}
	o.engagement.book.Keep(kinds.set())
	for kind, version := range kinds {
		if o.running[kind] == nil {
			o.begin(ctx, kind, version)
		}
	}
}

func (o *observers) begin(ctx context.Context, kind schema.GroupResource, version string) {
	ctx, cancel := context.WithCancel(ctx)
	r := &running{version: version, cancel: cancel}
	o.running[kind] = r
	r.ended.Go(func() { o.engagement.observe(ctx, kind, version) })
}

func (o *observers) end(kind schema.GroupResource, r *running) {
	r.cancel()
	r.ended.Wait()
	delete(o.running, kind)
}

// stop ends all and waits for them.
func (o *observers) stop() {
	for _, r := range o.running {
		r.cancel()
	}
	for kind, r := range o.running {
		o.end(kind, r)
	}
}

// served is the kinds that are being observed, with their versions.
func (o *observers) served() iter.Seq2[schema.GroupResource, string] {
	return func(yield func(schema.GroupResource, string) bool) {
		for kind, r := range o.running {
			if kind != federation.Namespaces && !yield(kind, r.version) {
				return
			}
		}
	}
}

func (o *observers) troubled() bool { return o.trouble.Load() }

// observe keeps one kind's page of the book until ctx ends.
func (e *engagement) observe(ctx context.Context, kind schema.GroupResource, version string) {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("kind", kind.String()))
	reader := e.reader(kind)
	source, example, err := e.lister(reader, kind.WithVersion(version), metav1.NamespaceAll)
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot watch")
		e.book.Fail(kind, "NoClient")
		return
	}
	var silent klog.Logger // client-go's reflector logs what the member says
	page := &page{engagement: e, kind: kind, reader: reader}
	direct := cache.ToListerWatcherWithContext(source)
	reflector := cache.NewReflectorWithOptions(page.source(direct), example, page, cache.ReflectorOptions{
		Logger: &silent, Name: e.name() + "/" + kind.String(), Backoff: patience(2 * time.Second),
	})
	var checks sync.WaitGroup
	defer checks.Wait()
	page.hear()
	checks.Go(func() { page.check(ctx, direct) })
	var failing time.Time // since when lists fail; zero: they do not
	backoff := patience(30 * time.Second)
	for {
		err := reflector.ListAndWatchWithContext(klog.NewContext(ctx, silent))
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			failing, backoff = time.Time{}, patience(30*time.Second)
		} else if failing.IsZero() {
			failing = time.Now()
		}
		e.failed(ctx, kind, err, failing)
		pause(ctx, backoff.Step())
	}
}

// check finds out why a kind is silent. A list that is asked for as a stream,
// or a watch that goes on, can wait for ever for an object that the server
// cannot read; a list of one says so at once.
func (p *page) check(ctx context.Context, source cache.ListerWithContext) {
	const bookmarks = time.Minute // how often a watch without changes gives a sign
	for {
		pause(ctx, trustFor)
		if ctx.Err() != nil {
			return
		}
		book := p.engagement.book
		_, trouble := book.Synced(slices.Values([]schema.GroupResource{p.kind}))
		listed, since := p.listed.Load(), time.Unix(0, p.heard.Load())
		switch {
		case listed && trouble[p.kind] == reasonListFailed && time.Since(since) < trustFor:
			book.Fail(p.kind, "") // it goes on
		case len(trouble) > 0, listed && time.Since(since) < 3*bookmarks:
		default:
			_, err := source.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
			p.engagement.failed(ctx, p.kind, err, since)
		}
	}
}

// patience is how failed requests are spaced.
func patience(limit time.Duration) *wait.Backoff {
	return &wait.Backoff{Duration: 500 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 1 << 30, Cap: limit}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// failed notes why a kind cannot be counted. Trouble with the connection is not
// the kind's: the member's phase tells of it. What the server may mend by
// itself is given as long as a member is before it counts as stale.
func (e *engagement) failed(ctx context.Context, kind schema.GroupResource, err error, since time.Time) {
	var status apierrors.APIStatus
	reason := clusters.Explain(err)
	switch {
	case errors.Is(err, wire.ErrMalformed):
		reason = wire.ErrMalformed
	case err == nil || !errors.As(err, &status) || apierrors.IsUnauthorized(err):
		return
	}
	klog.FromContext(ctx).V(2).Info("Cannot list or watch", "err", reason)
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err):
		e.observers.trouble.Store(true)
		e.book.Fail(kind, federation.ReasonNotServed)
		e.ask()
	case apierrors.IsForbidden(err):
		e.book.Fail(kind, "Forbidden")
	case time.Since(since) > trustFor:
		e.book.Fail(kind, reasonListFailed)
	}
}

// reasonListFailed says that the member answers requests for the kind with
// errors of its own, or with what nobody can read.
const reasonListFailed = "ListFailed"

// trustFor is how long numbers are relied on without a sign of life.
const trustFor = 20 * time.Second

// page is the store of one reflector: it charges objects into the book and
// keeps none of them.
type page struct {
	engagement *engagement
	kind       schema.GroupResource
	reader     *wire.Reader
	heard      atomic.Int64 // when the member last sent anything of the kind, in ns
	listed     atomic.Bool  // this observer has got a complete list
	arrived    *arrival     // a list that came as a stream, until Replace; the reflector's own
}

func (p *page) hear() {
	now := time.Now()
	p.heard.Store(now.UnixNano())
	p.engagement.turn.hear(now)
}

// Bookmark notes that the watch goes on although nothing changes.
func (p *page) Bookmark(string) error {
	p.hear()
	return nil
}

// Add notes an object.
func (p *page) Add(obj any) error {
	p.hear()
	slim, err := p.slim(obj)
	if err != nil {
		return err
	}
	o, err := p.object(slim)
	if err != nil {
		return err
	}
	p.UpdateResourceVersion(slim.Version)
	p.engagement.book.Set(p.kind, o)
	return nil
}

// UpdateResourceVersion notes up to where the watch has come, before its event
// is noted.
func (p *page) UpdateResourceVersion(version string) {
	p.engagement.book.Reached(p.kind, version)
}

// Update notes an object. One that was deleted and made again while the watch
// was lost arrives here too: objects are known by name.
func (p *page) Update(obj any) error { return p.Add(obj) }

// Delete notes that an object is gone.
func (p *page) Delete(obj any) error {
	p.hear()
	slim, err := p.slim(obj)
	if err != nil {
		return err
	}
	ns, name := p.key(slim)
	p.UpdateResourceVersion(slim.Version)
	p.engagement.book.Delete(p.kind, ns, name)
	return nil
}

// Replace notes a complete list. One that came as a stream is here already, and
// the reflector's is empty.
func (p *page) Replace(list []any, version string) error {
	p.hear()
	arrived := p.arrived
	p.arrived = nil
	if arrived == nil || arrived.version != version || len(list) > 0 {
		arrived = &arrival{}
		for _, obj := range list {
			slim, err := p.chargeable(obj)
			if err != nil {
				return err
			}
			arrived.add(slim)
		}
	}
	p.listed.Store(true)
	p.UpdateResourceVersion(version)
	p.engagement.book.Replace(p.kind, func(yield func(federation.Object) bool) {
		for slim := range arrived.drain() {
			o, _ := p.object(slim) //nolint:errcheck // chargeable has asked
			if !yield(o) {
				return
			}
		}
	})
	return nil
}

// Resync has nothing to do: time is what Expire is for.
func (p *page) Resync() error { return nil }

// slim is what counts of an object: where it was not read as that, it is charged
// now.
func (p *page) slim(obj any) (*wire.Object, error) {
	if slim, ok := obj.(*wire.Object); ok {
		return slim, nil
	}
	full, ok := obj.(runtime.Object)
	if !ok {
		return nil, fmt.Errorf("unexpected %T in a list of %s", obj, p.kind)
	}
	if p.kind != federation.Namespaces {
		return p.reader.Of(full), nil
	}
	accessor, err := meta.Accessor(full)
	if err != nil {
		return nil, fmt.Errorf("read a namespace: %w", err)
	}
	return wire.Named(accessor), nil
}

// chargeable is slim, of an object that can be charged.
func (p *page) chargeable(obj any) (*wire.Object, error) {
	slim, err := p.slim(obj)
	if err == nil {
		_, err = p.object(slim)
	}
	return slim, err
}

// object is what the book holds of an object.
func (p *page) object(slim *wire.Object) (federation.Object, error) {
	ns, name := p.key(slim)
	charge, record, err := slim.Cost()
	if err != nil {
		return federation.Object{}, fmt.Errorf("charge %s %s/%s: %w", p.kind, ns, name, err)
	}
	now := p.engagement.conn.Now(time.Now())
	return federation.Object{Namespace: ns, Name: name, Created: slim.Created(), Charge: charge.At(now), Record: record}, nil
}

// key is under what the book knows an object. A namespace is known as a
// namespace with one nameless object.
func (p *page) key(slim *wire.Object) (ns, name string) {
	if p.kind == federation.Namespaces {
		return slim.Name, ""
	}
	return slim.Namespace, slim.Name
}
