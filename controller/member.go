package controller

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/fleetquota/fleetquota/clusters"
	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// engagement is all that runs for one member while it is engaged.
type engagement struct {
	hub   *hub
	conn  *clusters.Connection
	asked v1alpha1.LocalStatusMode // of the Secret
	mode  v1alpha1.LocalStatusMode // in effect

	book      *federation.Book
	turn      *turn  // at the hub's gate
	listed    func() // leaves the gate when the first lists are complete; may be called again
	observers *observers
	local     *local // nil when mode is Never
	shares    *shares
	wake      chan struct{} // holds one: what is asked or served may have changed
	changed   chan struct{} // holds one: the Secret asks for another mode
	doubt     chan struct{} // holds one: the hub's rights in the member may have changed
	judged    time.Time     // when they were last asked for; follow's own

	mu     sync.Mutex // guards all below
	served catalogue
	set    *evaluator.Set
	kinds  map[schema.GroupResource]struct{} // that are asked for
	absent []corev1.ResourceName             // asked for, and no kind that is served counts them; sorted
}

var errModeChanged = errors.New("local status is kept in another way from now on")

// Engage works on one member until ctx ends, and returns when nothing of it is
// left.
func (r *roster) Engage(ctx context.Context, conn *clusters.Connection) error {
	ctx = klog.NewContext(ctx, klog.FromContext(ctx).WithValues("member", conn.Member.Name))
	turn := newTurn(r.hub.gate)
	listed, err := turn.enter(ctx)
	if err != nil {
		return err
	}
	defer listed()
	e, err := newEngagement(ctx, r.hub, conn)
	if err != nil {
		return err
	}
	e.turn, e.listed = turn, listed
	defer e.book.Close()
	r.enter(e)
	defer r.leave(e)
	klog.FromContext(ctx).Info("Engaged member", "version", conn.Version, "rules", e.set.Rules(), "localStatus", e.mode)

	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return e.follow(ctx) })
	group.Go(func() error { return e.expire(ctx) })
	group.Go(func() error { return e.shares.run(ctx) })
	if e.local != nil {
		group.Go(func() error { return e.local.run(ctx) })
	}
	if err := group.Wait(); !errors.Is(err, errModeChanged) {
		return err
	}
	klog.FromContext(ctx).Info("Engaging member anew", "because", errModeChanged.Error())
	return nil
}

// newEngagement finds out what the member serves and what the hub may do there.
func newEngagement(ctx context.Context, h *hub, conn *clusters.Connection) (*engagement, error) {
	e := &engagement{
		hub: h, conn: conn, asked: modeOf(conn.Member, h.LocalStatus),
		wake: make(chan struct{}, 1), changed: make(chan struct{}, 1), doubt: make(chan struct{}, 1), judged: time.Now(),
	}
	served, err := discover(ctx, conn, nil)
	if err != nil {
		return nil, fmt.Errorf("discover what the member serves: %w", clusters.Explain(err))
	}
	if e.mode, err = permitted(ctx, conn, e.asked); err != nil {
		return nil, fmt.Errorf("ask for the right to keep local status: %w", clusters.Explain(err))
	}
	e.served, e.set = served, evaluator.NewSet(conn.Version, served.kinds())
	e.observers = newObservers(e)
	e.shares = newShares(e)
	if e.mode != v1alpha1.LocalNever {
		e.local = newLocal(e)
	}
	e.book = h.ledger.Open(conn.Member.Name, e.set, e.moved)
	if e.local != nil {
		e.book.OnChange(e.costs)
	}
	return e, nil
}

// modeOf is who keeps the status of local quotas, as the Secret says or else
// the hub's options.
func modeOf(member clusters.Member, otherwise v1alpha1.LocalStatusMode) v1alpha1.LocalStatusMode {
	if mode := v1alpha1.LocalStatusMode(member.LocalStatus); validMode(mode) {
		return mode
	}
	return otherwise
}

func (e *engagement) name() string { return e.conn.Member.Name }

// ask tells the engagement that what is asked or served may have changed.
func (e *engagement) ask() { signal(e.wake) }

// relabelled tells the engagement that its Secret or its connection changed.
func (e *engagement) relabelled(member clusters.Member) {
	switch {
	case modeOf(member, e.hub.LocalStatus) != e.asked:
		signal(e.changed)
	case e.mode != e.asked:
		signal(e.doubt)
	}
	e.ask()
}

// rightsChanged says whether the hub has been given the right to keep local
// status that it lacked, or has lost it.
func (e *engagement) rightsChanged(ctx context.Context) bool {
	e.judged = time.Now()
	mode, err := permitted(ctx, e.conn, e.asked)
	return err == nil && mode != e.mode
}

// judgeAgain is how long a missing right is taken for missing without a sign.
const judgeAgain = time.Hour

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// follow keeps one observer for each kind that is asked for, as what is asked
// and what is served change.
func (e *engagement) follow(ctx context.Context) error {
	defer e.observers.stop()
	learnt := time.Now()
	for {
		e.observers.want(ctx, e.demand())
		again := time.NewTimer(time.Until(learnt.Add(e.rediscovery())))
		select {
		case <-ctx.Done():
			again.Stop()
			return nil
		case <-e.changed:
			again.Stop()
			return errModeChanged
		case <-e.doubt:
			if e.rightsChanged(ctx) {
				again.Stop()
				return errModeChanged
			}
		case <-e.wake:
		case <-again.C:
			e.rediscover(ctx)
			learnt = time.Now()
			if e.mode != e.asked && time.Since(e.judged) > judgeAgain && e.rightsChanged(ctx) {
				return errModeChanged
			}
		}
		again.Stop()
	}
}

// rediscovery is how long what is served is relied on: shortly where something
// is asked for that is not served.
func (e *engagement) rediscovery() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.absent) > 0 || e.observers.troubled() {
		return 5 * time.Second
	}
	return time.Minute
}

// rediscover learns what the member serves now.
func (e *engagement) rediscover(ctx context.Context) {
	e.observers.trouble.Store(false)
	e.mu.Lock()
	before := e.served
	e.mu.Unlock()
	served, err := discover(ctx, e.conn, before)
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Discovery has no answer", "err", clusters.Explain(err))
		return
	}
	for kind, version := range e.observers.served() {
		if _, ok := served[kind]; !ok {
			served[kind] = version // its observer says why it cannot be counted
		}
	}
	if maps.Equal(before, served) {
		return
	}
	set := evaluator.NewSet(e.conn.Version, served.kinds())
	e.mu.Lock()
	e.served, e.set = served, set
	e.mu.Unlock()
	e.book.Learn(set)
	klog.FromContext(ctx).V(2).Info("Learnt what is served", "kinds", len(served))
}

// kindsOf is every kind that a resource counts.
func (e *engagement) kindsOf(name corev1.ResourceName) map[schema.GroupResource]struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	kinds := map[schema.GroupResource]struct{}{}
	for _, kind := range e.set.Kinds(name) {
		kinds[kind] = struct{}{}
	}
	return kinds
}

// demand is each kind that some quota needs, with the version to watch.
func (e *engagement) demand() catalogue {
	names := e.hub.quotas.asked(e.hub.roster.labels(e.name()))
	if e.local != nil {
		names = append(names, e.local.asked()...)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	wanted := catalogue{federation.Namespaces: "v1"}
	absent := map[corev1.ResourceName]struct{}{}
	for _, name := range names {
		kinds := e.set.Kinds(name)
		if len(kinds) == 0 {
			absent[name] = struct{}{}
		}
		for _, kind := range kinds {
			wanted[kind] = e.served[kind]
		}
		for _, kind := range e.set.Needs(name) {
			wanted[kind] = "v1" // cluster-scoped: discovery asks for namespaced kinds alone
		}
	}
	missing, kinds := slices.Sorted(maps.Keys(absent)), wanted.set()
	if !slices.Equal(missing, e.absent) || !maps.Equal(kinds, e.kinds) {
		e.hub.roster.queue.Add(e.name()) // its condition Synced says so
	}
	e.absent, e.kinds = missing, kinds
	return wanted
}

// synced says whether everything that is asked for is being counted, and else
// in one word and a sentence what is not.
func (e *engagement) synced() (current bool, reason, message string) {
	e.mu.Lock()
	kinds, absent, set := e.kinds, e.absent, e.set
	e.mu.Unlock()
	rules := "counted by the rules of Kubernetes " + set.Rules()
	if !set.Exact() {
		rules += ", the nearest to the member's version"
	}
	rules += e.localNote()
	current, trouble := e.book.Synced(maps.Keys(kinds))
	switch {
	case len(trouble) > 0:
		var parts []string
		for kind, why := range trouble {
			parts = append(parts, kind.String()+": "+why)
		}
		slices.Sort(parts)
		return false, "NotCounted", "cannot count " + strings.Join(parts, ", ") + "; " + rules
	case !current || kinds == nil: // not yet, or nothing has been asked yet
		return false, federation.ReasonSyncing, "the first lists are not complete yet; " + rules
	case len(absent) > 0:
		return true, "Counted", fmt.Sprintf("not served here and so not counted: %v; %s", absent, rules)
	}
	return true, "Counted", rules
}

// localNote says why the mode in effect is not the one that was asked for;
// empty when it is.
func (e *engagement) localNote() string {
	var note string
	if written := e.conn.Member.LocalStatus; written != "" && !validMode(v1alpha1.LocalStatusMode(written)) {
		note += fmt.Sprintf("; %s: %.20q is not Always, Never or Auto", clusters.AnnotationLocalStatus, written)
	}
	if e.mode != e.asked {
		note += fmt.Sprintf("; local status is %s, not %s: the hub may not update resourcequotas/status in the member", e.mode, e.asked)
	}
	return note
}

// expire applies the charges whose time comes, by the member's clock.
func (e *engagement) expire(ctx context.Context) error {
	const every = time.Second
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			e.book.Expire(e.conn.Now(time.Now()))
		}
	}
}

// moved is told of a change in the ledger. A kind that has become current, or
// cannot, may be the last that the first lists waited for.
func (e *engagement) moved(move federation.Move) {
	if move.Namespace == "" {
		if _, reason, _ := e.synced(); reason != federation.ReasonSyncing {
			e.listed()
		}
	}
	if e.local != nil {
		e.local.moved(move)
	}
}
