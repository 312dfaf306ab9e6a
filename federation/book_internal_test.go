package federation

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/evaluator"
)

func nothing(func(Object) bool) {}

func TestNothingIsLeftOfBooksThatAreNotNeeded(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	services := schema.GroupResource{Resource: "services"}
	set := evaluator.NewSet("v1.37.2", []schema.GroupResource{pods, services})
	cases := map[string]struct {
		next func(l *Ledger, second *Book)
		want int
	}{
		"a book stays until its successor has counted":    {func(_ *Ledger, b *Book) { b.Replace(pods, nothing) }, 2},
		"a book goes once its successor has counted":      {func(_ *Ledger, b *Book) { b.Replace(pods, nothing); b.Replace(services, nothing) }, 1},
		"a kind that nobody asks for is dropped in both":  {func(_ *Ledger, b *Book) { b.Drop(pods); b.Replace(services, nothing) }, 1},
		"an engagement that came to nothing leaves none":  {func(l *Ledger, _ *Book) { l.Open("eu", set, nil); l.Open("eu", set, nil) }, 2},
		"trouble and half a list are not numbers to keep": {func(l *Ledger, b *Book) { b.Fail(pods, "Forbidden"); b.Set(pods, Object{}); l.Open("eu", set, nil) }, 2},
		"the first book goes though it is not the nearest": {func(l *Ledger, b *Book) {
			b.Replace(pods, nothing)
			third := l.Open("eu", set, nil)
			third.Replace(services, nothing)
			third.Replace(pods, nothing)
		}, 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			ledger := NewLedger(nil)
			first := ledger.Open("eu", set, nil)
			first.Replace(pods, nothing)
			first.Replace(services, nothing)
			first.Close()
			c.next(ledger, ledger.Open("eu", set, nil))
			if got := len(ledger.members["eu"].books); got != c.want {
				t.Errorf("%d books, want %d", got, c.want)
			}
		})
	}
}

func TestNothingIsLeftOfObjectsThatAreGone(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	book := NewLedger(nil).Open("eu", evaluator.NewSet("v1.37.2", []schema.GroupResource{pods}), nil)
	book.Replace(pods, func(yield func(Object) bool) {
		_ = yield(Object{Namespace: "a", Name: "p"}) && yield(Object{Namespace: "b", Name: "p"})
	})
	book.Set(pods, Object{Namespace: "a", Name: "p"})
	book.Delete(pods, "a", "p")
	book.Replace(pods, nothing)
	if len(book.costs.known) > 0 || len(book.costs.shared) > 0 || len(book.kinds[pods].namespaces) > 0 {
		t.Errorf("left: %v, %v", book.costs, book.kinds[pods].namespaces)
	}
}
