package federation_test

import (
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

func TestALateWriteThroughAClosedBookChangesNothing(t *testing.T) {
	late := map[string]func(*federation.Book){
		"Set":          func(b *federation.Book) { b.Set(pods, charged(pods, pod("late"), noon)) },
		"Delete":       func(b *federation.Book) { b.Delete(pods, "a", "p") },
		"Replace":      func(b *federation.Book) { b.Replace(pods, nothing) },
		"Fail":         func(b *federation.Book) { b.Fail(pods, "Forbidden") },
		"Fail anew":    func(b *federation.Book) { b.Fail(services, "Forbidden") },
		"Drop":         func(b *federation.Book) { b.Drop(pods) },
		"Expire":       func(b *federation.Book) { b.Expire(noon.Add(time.Hour)) },
		"Learn":        func(b *federation.Book) { b.Learn(evaluator.NewSet("v1.37.2", nil)) },
		"Close":        func(b *federation.Book) { b.Close() },
		"Synced, Next": func(b *federation.Book) { b.Synced(func(func(schema.GroupResource) bool) {}); b.Next() },
	}
	for name, write := range late {
		t.Run(name, func(t *testing.T) {
			var told moves
			ledger := federation.NewLedger(told.note)
			ledger.Mark("eu", live)
			book := ledger.Open("eu", served, nil)
			book.Replace(pods, atNoon(pod("p", deleted(noon, 5))))
			book.Close()
			for _, reconnected := range []bool{false, true} {
				if reconnected {
					ledger.Open("eu", served, nil)
				}
				want := ledger.Part(ask("pods", "services"), "eu")
				told.take()
				write(book)
				if diff := cmp.Diff(want, ledger.Part(ask("pods", "services"), "eu")); diff != "" {
					t.Errorf("changed (-before +after):\n%s", diff)
				}
				if got := told.take(); len(got) > 0 {
					t.Errorf("told of %v", got)
				}
			}
		})
	}
}

func TestNumbersOfAnEngagementStayUntilTheNextHasCountedTheKind(t *testing.T) {
	ledger := federation.NewLedger(nil)
	ledger.Mark("eu", live)
	first := ledger.Open("eu", served, nil)
	first.Replace(pods, atNoon(pod("p"), pod("q")))
	first.Replace(services, nothing)
	first.Close()

	second := ledger.Open("eu", served, nil)
	second.Set(pods, charged(pods, pod("only"), noon)) // before its first list: not in use
	part := ledger.Part(ask("pods", "services"), "eu")
	if part.Phase != v1alpha1.Stale || part.Reason != federation.ReasonReconnecting || len(part.Unknown) > 0 {
		t.Errorf("before the first list: %+v", part)
	}
	wantUsed(t, ledger, ask("pods", "services"), list("pods", "2", "services", "0"))

	second.Replace(pods, atNoon(pod("only")))
	wantUsed(t, ledger, ask("pods", "services"), list("pods", "1", "services", "0"))
	if got := ledger.Part(ask("pods"), "eu"); got.Phase != v1alpha1.Live {
		t.Errorf("pods alone are counted, but %+v", got)
	}
	if got := ledger.Part(ask("pods", "services"), "eu"); got.Phase != v1alpha1.Stale {
		t.Errorf("services are not counted yet, but %+v", got)
	}

	second.Replace(services, nothing)
	if got := ledger.Part(ask("pods", "services"), "eu"); got.Phase != v1alpha1.Live {
		t.Errorf("all is counted, but %+v", got)
	}
}

func TestAKindThatFailsInTheNextEngagementDoesNotHoldBackTheMember(t *testing.T) {
	ledger := federation.NewLedger(nil)
	ledger.Mark("eu", live)
	ledger.Open("eu", served, nil).Replace(services, nothing)
	book := ledger.Open("eu", served, nil) // the one before is closed by this
	book.Replace(pods, atNoon(pod("p")))
	book.Fail(services, "Forbidden")
	want := federation.Part{
		Member: "eu", Phase: v1alpha1.Partial, Used: list("pods", "1", "services", "0"),
		Unknown: []corev1.ResourceName{"services"}, Reason: "Forbidden",
	}
	if diff := cmp.Diff(want, ledger.Part(ask("pods", "services"), "eu")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestErase(t *testing.T) {
	var told moves
	ledger := federation.NewLedger(told.note)
	ledger.Mark("eu", live)
	book := ledger.Open("eu", served, nil)
	book.Replace(pods, atNoon(pod("p")))
	told.take()

	ledger.Erase("eu")
	ledger.Erase("eu")
	if diff := cmp.Diff([]federation.Move{{Member: "eu"}}, told.take()); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
	want := federation.Part{Member: "eu", Phase: v1alpha1.NeverSynced, Used: list(), Unknown: []corev1.ResourceName{"pods"}}
	book.Replace(pods, atNoon(pod("late")))
	if diff := cmp.Diff(want, ledger.Part(ask("pods"), "eu")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}

	next := ledger.Open("eu", served, nil) // a new member of the name
	next.Replace(pods, atNoon(pod("p"), pod("q")))
	book.Drop(pods)
	book.Close()
	wantUsed(t, ledger, ask("pods"), list("pods", "2"))
}

func TestMoves(t *testing.T) {
	p := func(options ...podOption) federation.Object { return charged(pods, pod("p", options...), noon) }
	inA := []federation.Move{{Member: "eu", Namespace: "a", Kind: pods}}
	deletion := []federation.Move{{Member: "eu", Namespace: "a", Kind: pods, Deleted: true}}
	ofKind := []federation.Move{{Member: "eu", Kind: pods}}
	ofAll := []federation.Move{{Member: "eu"}}
	cases := map[string]struct {
		do   func(*federation.Ledger, *federation.Book)
		want []federation.Move
	}{
		"a new object is told as an addition": {
			func(_ *federation.Ledger, b *federation.Book) { b.Set(pods, charged(pods, pod("new"), noon)) },
			[]federation.Move{{Member: "eu", Namespace: "a", Kind: pods, Added: true}},
		},
		"a new namespace costs nothing and is no addition": {
			func(_ *federation.Ledger, b *federation.Book) {
				b.Set(federation.Namespaces, federation.Object{Namespace: "b"})
			},
			[]federation.Move{{Member: "eu", Namespace: "b", Kind: federation.Namespaces}},
		},
		"a changed charge": {
			func(_ *federation.Ledger, b *federation.Book) { b.Set(pods, p(requests("cpu", "2"))) }, inA,
		},
		"a changed class": {
			func(_ *federation.Ledger, b *federation.Book) { b.Set(pods, p(requests("cpu", "1"), priority("high"))) }, inA,
		},
		"the same charge is not told": {
			func(_ *federation.Ledger, b *federation.Book) { b.Set(pods, p(requests("cpu", "1"))) }, nil,
		},
		"the same charge in other words is not told": {
			func(_ *federation.Ledger, b *federation.Book) { b.Set(pods, p(requests("cpu", "1000m"))) }, nil,
		},
		"a time that an object was given is not told": {
			func(_ *federation.Ledger, b *federation.Book) {
				b.Set(pods, p(requests("cpu", "1"), deleted(noon, 30)))
			}, nil,
		},
		"a deletion":                  {func(_ *federation.Ledger, b *federation.Book) { b.Delete(pods, "a", "p") }, deletion},
		"nothing deleted is not told": {func(_ *federation.Ledger, b *federation.Book) { b.Delete(pods, "a", "x") }, nil},
		"a kind unheard of is not told": {
			func(_ *federation.Ledger, b *federation.Book) { b.Delete(services, "a", "x") }, nil,
		},
		"a list that adds is no addition: admission may have charged before": {
			func(_ *federation.Ledger, b *federation.Book) {
				b.Replace(pods, atNoon(pod("p", requests("cpu", "1")), pod("q")))
			}, inA,
		},
		"the same list is not told": {
			func(_ *federation.Ledger, b *federation.Book) {
				b.Replace(pods, atNoon(pod("p", requests("cpu", "1"))))
			}, nil,
		},
		"a first list is told for its whole kind": {
			func(_ *federation.Ledger, b *federation.Book) { b.Replace(services, nothing) },
			[]federation.Move{{Member: "eu", Kind: services}},
		},
		"an object before the first list is not in use": {
			func(_ *federation.Ledger, b *federation.Book) {
				b.Set(configMaps, federation.Object{Namespace: "a", Name: "c"})
				b.Delete(configMaps, "a", "c")
			}, nil,
		},
		"trouble, once, and its end": {
			func(_ *federation.Ledger, b *federation.Book) {
				b.Fail(pods, "Forbidden")
				b.Fail(pods, "Forbidden")
				b.Fail(pods, "")
			},
			append(ofKind, ofKind...),
		},
		"a list after trouble": {
			func(_ *federation.Ledger, b *federation.Book) {
				b.Fail(pods, "Forbidden")
				b.Replace(pods, atNoon(pod("p", requests("cpu", "1"))))
			},
			append(ofKind, ofKind...),
		},
		"other evaluators":            {func(_ *federation.Ledger, b *federation.Book) { b.Learn(served) }, ofAll},
		"a kind that nobody asks for": {func(_ *federation.Ledger, b *federation.Book) { b.Drop(pods) }, ofKind},
		"the end, once":               {func(_ *federation.Ledger, b *federation.Book) { b.Close(); b.Close() }, ofAll},
		"a live member that answers again is not told": {
			func(l *federation.Ledger, _ *federation.Book) {
				l.Mark("eu", federation.Reach{Phase: v1alpha1.Live, LastContact: noon})
			}, nil,
		},
		"a silent member, once": {
			func(l *federation.Ledger, _ *federation.Book) {
				l.Mark("eu", federation.Reach{Phase: v1alpha1.Stale, LastContact: noon})
				l.Mark("eu", federation.Reach{Phase: v1alpha1.Stale, LastContact: noon.Local()})
			},
			ofAll,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var told, toldBook moves
			ledger := federation.NewLedger(told.note)
			ledger.Mark("eu", live)
			book := ledger.Open("eu", served, toldBook.note)
			book.Replace(pods, atNoon(pod("p", requests("cpu", "1"))))
			book.Replace(federation.Namespaces, namespaces("a"))
			told.take()
			toldBook.take()
			c.do(ledger, book)
			got := told.take()
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("ledger told (-want +got):\n%s", diff)
			}
			ofBook := toldBook.take()
			if name != "a silent member, once" && !cmp.Equal(got, ofBook) {
				t.Errorf("the book told %v, the ledger %v", ofBook, got)
			}
		})
	}
}

func TestExpire(t *testing.T) {
	const grace = 30
	until := noon.Add(2 * grace * time.Second) // the deletion timestamp includes the grace, and quota adds it again
	stuck := pod("p", requests("cpu", "1"), deleted(noon.Add(grace*time.Second), grace))
	running, finished := list("cpu", "1", "pods", "1", "count/pods", "1"), list("cpu", "0", "pods", "0", "count/pods", "1")
	q := ask("cpu", "pods", "count/pods")
	var told moves
	open := func() (*federation.Ledger, *federation.Book) {
		ledger := federation.NewLedger(told.note)
		book := ledger.Open("eu", served, nil)
		book.Replace(pods, atNoon(stuck))
		told.take()
		return ledger, book
	}

	t.Run("the charge changes after its time and not before", func(t *testing.T) {
		ledger, book := open()
		if next := book.Expire(until); !next.After(until) || next.After(until.Add(time.Millisecond)) {
			t.Errorf("next is %v: there is nothing to do until just after %v", next, until)
		}
		wantUsed(t, ledger, q, running)
		if next := book.Expire(book.Next()); !next.IsZero() {
			t.Errorf("next is %v, but nothing waits", next)
		}
		wantUsed(t, ledger, q, finished)
		if diff := cmp.Diff([]federation.Move{{Member: "eu", Namespace: "a", Kind: pods}}, told.take()); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
	})
	t.Run("an object that is charged again waits for its new time", func(t *testing.T) {
		ledger, book := open()
		book.Set(pods, charged(pods, pod("p", requests("cpu", "1"), deleted(until, grace)), noon))
		book.Expire(until.Add(time.Second))
		wantUsed(t, ledger, q, running)
		book.Set(pods, charged(pods, pod("p", requests("cpu", "1")), noon)) // made again under its name
		if next := book.Next(); !next.IsZero() {
			t.Errorf("next is %v, but nothing waits", next)
		}
	})
	t.Run("an object that is gone waits for nothing", func(t *testing.T) {
		for name, remove := range map[string]func(*federation.Book){
			"deleted":  func(b *federation.Book) { b.Delete(pods, "a", "p") },
			"unlisted": func(b *federation.Book) { b.Replace(pods, nothing) },
			"dropped":  func(b *federation.Book) { b.Drop(pods) },
			"closed":   func(b *federation.Book) { b.Close() },
		} {
			_, book := open()
			remove(book)
			if next := book.Next(); !next.IsZero() {
				t.Errorf("%s: next is %v, but nothing waits", name, next)
			}
			told.take()
			if book.Expire(until.Add(time.Hour)); len(told.take()) > 0 {
				t.Errorf("%s: told of an object that is gone", name)
			}
		}
	})
	t.Run("the soonest is next", func(t *testing.T) {
		ledger, book := open()
		for i := range 20 {
			seconds := int64((i*7)%20 + 1)
			book.Set(pods, charged(pods, pod(fmt.Sprint(i), deleted(noon, seconds)), noon))
		}
		for left := 20; left > 0; left-- {
			if got := book.Next(); got.Truncate(time.Second) != noon.Add(time.Duration(21-left)*time.Second) {
				t.Fatalf("next is %v with %d left", got, left)
			}
			book.Expire(book.Next())
		}
		wantUsed(t, ledger, ask("pods", "count/pods"), list("pods", "1", "count/pods", "21"))
	})
}

func TestSynced(t *testing.T) {
	book := federation.NewLedger(nil).Open("eu", served, nil)
	both := func(yield func(schema.GroupResource) bool) { _ = yield(pods) && yield(services) }
	check := func(when string, want bool, trouble map[schema.GroupResource]string) {
		t.Helper()
		current, got := book.Synced(iter.Seq[schema.GroupResource](both))
		if current != want || !cmp.Equal(got, trouble) {
			t.Errorf("%s: %v, %v; want %v, %v", when, current, got, want, trouble)
		}
	}
	none := map[schema.GroupResource]string{}
	check("at first", false, none)
	book.Replace(pods, nothing)
	check("with one list", false, none)
	book.Replace(services, nothing)
	check("with all lists", true, none)
	book.Fail(pods, "Forbidden")
	check("in trouble", false, map[schema.GroupResource]string{pods: "Forbidden"})
	book.Fail(pods, "")
	check("after trouble", true, none)
	book.Drop(pods)
	check("after a drop", false, none)
}

func TestConcurrentUse(t *testing.T) {
	ledger := federation.NewLedger(func(federation.Move) {})
	q := ask("cpu", "pods", "services")
	var all sync.WaitGroup
	for _, name := range []string{"eu", "us"} {
		all.Go(func() {
			for range 20 {
				book := ledger.Open(name, served, nil)
				var observers sync.WaitGroup
				observers.Go(func() {
					book.Replace(pods, atNoon(pod("p"), pod("q", deleted(noon, 1))))
					for i := range 50 {
						book.Set(pods, charged(pods, pod(fmt.Sprint(i%5), requests("cpu", fmt.Sprint(i))), noon))
						book.Delete(pods, "a", fmt.Sprint((i+2)%5))
					}
				})
				observers.Go(func() {
					book.Fail(services, "Forbidden")
					book.Replace(services, nothing)
					book.Expire(noon.Add(time.Minute))
					book.Learn(served)
				})
				observers.Wait()
				book.Close()
			}
		})
		all.Go(func() {
			for i := range 500 {
				ledger.Usage(q, []string{"eu", "us"})
				ledger.Mark(name, federation.Reach{Phase: []v1alpha1.Phase{v1alpha1.Live, v1alpha1.Stale}[i%2]})
			}
		})
	}
	all.Wait()
	ledger.Mark("eu", live)
	if part := ledger.Part(q, "eu"); part.Phase != v1alpha1.Stale || len(part.Unknown) > 0 {
		t.Errorf("%+v", part)
	}
}

func TestKeepForgetsWhatNobodyAsksFor(t *testing.T) {
	ledger := federation.NewLedger(nil)
	ledger.Mark("eu", live)
	before := ledger.Open("eu", served, nil)
	for _, kind := range []schema.GroupResource{pods, services, configMaps} {
		before.Replace(kind, slices.Values([]federation.Object{}))
	}
	before.Close()
	now := ledger.Open("eu", served, nil)
	now.Replace(configMaps, slices.Values([]federation.Object{}))

	now.Keep(map[schema.GroupResource]struct{}{pods: {}})

	got := ledger.Part(ask("pods", "services", "configmaps"), "eu")
	if want := (names{"configmaps", "services"}); !cmp.Equal(got.Unknown, want) {
		t.Errorf("unknown %v, want %v: the pods of the engagement before are still asked for", got.Unknown, want)
	}
}
