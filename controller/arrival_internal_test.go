package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/fleetquota/fleetquota/clusters"
	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/evaluator/wire"
	"github.com/fleetquota/fleetquota/federation"
)

// initialEventsEnd is the bookmark that ends a list that arrives as a stream, at
// version 7.
func initialEventsEnd() runtime.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "7", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
}

func bookmark(version string) runtime.Object {
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
}

// podPage is a page of pods of a member that is listed at a gate, and the ledger
// that it writes.
func podPage(g *gate) (*page, *federation.Ledger) {
	pods := corev1.Resource("pods")
	set := evaluator.NewSet("v1.37.2", []schema.GroupResource{pods})
	ledger := federation.NewLedger(nil)
	e := &engagement{
		hub: &hub{charges: wire.NewCharges(0)}, set: set, book: ledger.Open("eu", set, nil),
		conn: &clusters.Connection{}, turn: newTurn(g),
	}
	return &page{engagement: e, kind: pods, reader: e.reader(pods)}, ledger
}

func named(name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, ResourceVersion: "3"}}
}

// counted is how many pods the ledger knows.
func counted(l *federation.Ledger) int64 {
	used := l.Part(federation.Question{Namespace: "team", Resources: []corev1.ResourceName{"count/pods"}}, "eu").Used
	count := used["count/pods"]
	return count.Value()
}

func TestAListThatIsAStreamIsCounted(t *testing.T) {
	t.Parallel()
	many := func(w *watch.FakeWatcher) {
		for i := range 3*blockSize + 1 {
			w.Add(named(fmt.Sprint("p", i)))
		}
	}
	for claim, c := range map[string]struct {
		events func(w *watch.FakeWatcher)
		want   int64
	}{
		"an empty one":                      {func(*watch.FakeWatcher) {}, 0},
		"one of many":                       {many, 3*blockSize + 1},
		"a bookmark on the way ends it not": {func(w *watch.FakeWatcher) { w.Action(watch.Bookmark, bookmark("5")); w.Add(named("a")) }, 1},
		"what changes on the way is one":    {func(w *watch.FakeWatcher) { w.Add(named("a")); w.Modify(named("a")) }, 1},
		"what is deleted on the way is gone": {func(w *watch.FakeWatcher) {
			w.Add(named("a"))
			w.Add(named("b"))
			w.Delete(named("a"))
		}, 1},
		"what is made again is there": {func(w *watch.FakeWatcher) {
			w.Add(named("a"))
			w.Delete(named("a"))
			w.Add(named("a"))
		}, 1},
	} {
		t.Run(claim, func(t *testing.T) {
			t.Parallel()
			page, ledger := podPage(newGate(1))
			w := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 4 * blockSize})
			c.events(w)
			w.Action(watch.Bookmark, initialEventsEnd())
			w.Add(named("later"))
			rest, err := page.receive(w)
			if err != nil {
				t.Fatal(err)
			}
			if first := <-rest.ResultChan(); first.Type != watch.Bookmark {
				t.Fatalf("the reflector gets %v first, want the bookmark", first.Type)
			}
			if err := page.Replace(nil, "7"); err != nil {
				t.Fatal(err)
			}
			if got := counted(ledger); got != c.want {
				t.Errorf("%d pods, want %d", got, c.want)
			}
			if next := <-rest.ResultChan(); next.Type != watch.Added {
				t.Errorf("the reflector gets %v next, want the pod that came later", next.Type)
			}
		})
	}
}

// What a stream brought that ended too early is nothing, and an error reaches
// the reflector as it is.
func TestAStreamThatBreaksOffCountsNothing(t *testing.T) {
	t.Parallel()
	page, ledger := podPage(newGate(1))
	broken := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 9})
	broken.Add(named("a"))
	broken.Stop()
	if _, err := page.receive(broken); !errors.Is(err, errBrokeOff) {
		t.Errorf("got %v, want that it broke off", err)
	}

	expired := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 9})
	status := apierrors.NewResourceExpired("").Status()
	expired.Add(named("a"))
	expired.Error(&status)
	rest, err := page.receive(expired)
	if err != nil {
		t.Fatal(err)
	}
	if first := <-rest.ResultChan(); first.Type != watch.Error || !apierrors.IsResourceExpired(apierrors.FromObject(first.Object)) {
		t.Errorf("the reflector gets %v, want the error", first)
	}
	if err := page.Replace([]any{named("b"), named("c")}, "9"); err != nil { // it lists after that
		t.Fatal(err)
	}
	if got := counted(ledger); got != 2 {
		t.Errorf("%d pods, want the two of the list", got)
	}
}

// streams is a server whose streams are these, one after the other.
type streams struct{ watches []*watch.FakeWatcher }

func (s *streams) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return nil, errors.New("nobody may ask for the whole list")
}

func (s *streams) WatchWithContext(context.Context, metav1.ListOptions) (watch.Interface, error) {
	next := s.watches[0]
	s.watches = s.watches[1:]
	return next, nil
}

func TestAReflectorCountsAndGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		page, ledger := podPage(newGate(1))
		broken := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 9})
		broken.Add(named("a"))
		broken.Stop()
		whole := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 9})
		whole.Add(named("b"))
		whole.Add(named("c"))
		whole.Action(watch.Bookmark, initialEventsEnd())
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		source := page.source(&streams{[]*watch.FakeWatcher{broken, whole}})
		group.Go(func() { _ = cache.NewReflector(source, nil, page, 0).ListAndWatchWithContext(ctx) })
		time.Sleep(time.Minute)
		if got := counted(ledger); got != 2 {
			t.Errorf("%d pods, want the two of the list that was whole", got)
		}
		if got := page.engagement.turn.gate.crowd.Load(); got != 0 {
			t.Errorf("%d are at the gate after the list", got)
		}
		whole.Add(named("d"))
		whole.Delete(named("b"))
		whole.Add(named("e"))
		synctest.Wait()
		if got := counted(ledger); got != 3 {
			t.Errorf("%d pods, want three after the changes", got)
		}
		cancel()
		group.Wait()
	})
}

func TestAListThatNeverEndsDelaysNoOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const limit = 3
		gate := newGate(limit)
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		list := func(w *watch.FakeWatcher) *federation.Ledger {
			page, ledger := podPage(gate)
			source := page.source(&streams{[]*watch.FakeWatcher{w}})
			group.Go(func() { _ = cache.NewReflector(source, nil, page, 0).ListAndWatchWithContext(ctx) })
			return ledger
		}
		var stuck []*watch.FakeWatcher
		for range limit {
			w := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 1})
			w.Add(named("a")) // and no more
			list(w)
			stuck = append(stuck, w)
		}
		whole := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 2})
		whole.Add(named("b"))
		whole.Action(watch.Bookmark, initialEventsEnd())
		ledger := list(whole)
		time.Sleep(spread + keepSilent)
		synctest.Wait()
		if got := counted(ledger); got != 1 {
			t.Errorf("%d pods, want the one of the list that is complete", got)
		}
		cancel()
		for _, w := range stuck {
			w.Stop() // as a request does whose context has ended
		}
		group.Wait()
	})
}
