package clusters

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"
)

// Serve runs one engagement per member that the source names until ctx ends, and
// returns when nothing of any is left. The error is that of the source, or of
// the options; the end of ctx is none.
func Serve(ctx context.Context, source Source, host Host, o Options) error {
	o, err := o.complete()
	if err != nil {
		return fmt.Errorf("check the options of members: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	f := newFleet(ctx, source, host, &o)
	f.group.Go(func() { f.refusals.run(ctx, host) })
	err = source.Run(ctx, f)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("find members: %w", err)
	} else {
		err = nil
		<-ctx.Done()
	}
	cancel()
	f.close()
	f.group.Wait()
	return err
}

// fleet starts the members that it is told of.
type fleet struct {
	group    sync.WaitGroup // of all goroutines
	refusals *refusals
	begin    func(name string) *member // makes a member that does not run yet
	start    func(m *member)
	listed   func(shown []<-chan struct{}) // waits until all are shown

	mu      sync.Mutex // guards the rest
	closed  bool
	members map[string]*member
}

func newFleet(ctx context.Context, source Source, host Host, o *Options) *fleet {
	f := &fleet{refusals: newRefusals(), members: map[string]*member{}}
	owners := newClaims()
	reread := rereadFrom(source)
	f.begin = func(name string) *member {
		m := &member{
			name: name, host: host, options: o, claims: owners, reread: reread,
			limiter: flowcontrol.NewTokenBucketRateLimiter(queriesPerSecond, queryBurst),
			wake:    make(chan struct{}, 1),
			shown:   make(chan struct{}),
		}
		m.claim = claim{name: name, nudge: m.nudge}
		return m
	}
	f.start = func(m *member) { f.group.Go(func() { m.run(ctx, f.retire) }) }
	f.listed = func(shown []<-chan struct{}) {
		f.group.Go(func() {
			for _, each := range shown {
				select {
				case <-each:
				case <-ctx.Done():
					return
				}
			}
			o.Listed(ctx)
		})
	}
	return f
}

// rereadFrom asks the source to look again, if it can.
func rereadFrom(source Source) func(ctx context.Context, secret types.NamespacedName) {
	again, ok := source.(Rereader)
	return func(ctx context.Context, secret types.NamespacedName) {
		if !ok || secret == (types.NamespacedName{}) {
			return
		}
		if err := again.Reread(ctx, secret); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Credentials were not accepted and their Secret could not be read again",
				"secret", klog.KRef(secret.Namespace, secret.Name))
		}
	}
}

// Offer implements [Sink].
func (f *fleet) Offer(o Offer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	m, known := f.members[o.Member.Name]
	if !known {
		m = f.begin(o.Member.Name)
		f.members[m.name] = m
	}
	m.offered(o)
	if !known {
		f.start(m)
	}
}

// Withdraw implements [Sink].
func (f *fleet) Withdraw(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if m, known := f.members[name]; known {
		m.withdraw()
	}
}

// Refuse implements [Sink].
func (f *fleet) Refuse(secret types.NamespacedName, reason, message string) {
	f.refusals.add(refused{secret, reason, message})
}

// Listed implements [Sink].
func (f *fleet) Listed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return
	}
	var shown []<-chan struct{}
	for _, m := range f.members {
		shown = append(shown, m.shown)
	}
	f.listed(shown)
}

// retire forgets a member that is gone, unless it has been offered again.
func (f *fleet) retire(m *member) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.inbox != nil && !m.withdrawn {
		return false
	}
	delete(f.members, m.name)
	return true
}

// close lets no member begin.
func (f *fleet) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
}
