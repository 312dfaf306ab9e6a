package federation_test

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/evaluator/wire"
	"github.com/fleetquota/fleetquota/federation"
)

// fleet is all that the hub keeps of the pods of one member.
type fleet struct {
	tb      testing.TB
	charges *wire.Charges
	reader  *wire.Reader
	ledger  *federation.Ledger
	book    *federation.Book
}

func newFleet(tb testing.TB) *fleet {
	tb.Helper()
	set := evaluator.NewSet("v1.37.2", []schema.GroupResource{corev1.Resource("pods")})
	f := &fleet{tb: tb, charges: wire.NewCharges(0), ledger: federation.NewLedger(nil)}
	f.reader = f.charges.Reader(corev1.Resource("pods"), set)
	f.book = f.ledger.Open("east", set, nil)
	f.book.Replace(corev1.Resource("pods"), func(func(federation.Object) bool) {})
	return f
}

// object reads the i-th pod of a generation off a watch. Ten namespaces hold
// them, and fifty workloads.
func (f *fleet) object(generation, i int) federation.Object {
	f.tb.Helper()
	workload := i % 50
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: fmt.Sprint("team-", i%10), Name: fmt.Sprintf("checkout-%02d-7d9f8b6c5d-%03d-%07d", workload, generation, i),
		ResourceVersion: fmt.Sprint(1_000_000 + i), CreationTimestamp: metav1.Unix(1_700_000_000+int64(i), 0),
	}, Spec: corev1.PodSpec{NodeName: fmt.Sprint("node-", i%97), Containers: []corev1.Container{{
		Name: "app", Image: "registry.example.com/shop/checkout:v1.42.0",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": *resource.NewMilliQuantity(int64(100+workload), resource.DecimalSI)}},
	}}}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	message, err := pod.Marshal()
	if err != nil {
		f.tb.Fatal(err)
	}
	slim, err := f.reader.Read(message)
	if err != nil {
		f.tb.Fatal(err)
	}
	charge, record, err := slim.Cost()
	if err != nil {
		f.tb.Fatal(err)
	}
	return federation.Object{Namespace: slim.Namespace, Name: slim.Name, Created: slim.Created(), Charge: charge, Record: record}
}

// pods are n pods of a generation.
func (f *fleet) pods(generation, n int) func(func(federation.Object) bool) {
	return func(yield func(federation.Object) bool) {
		for i := range n {
			if !yield(f.object(generation, i)) {
				return
			}
		}
	}
}

func (f *fleet) watch(generation, n int) {
	for o := range f.pods(generation, n) {
		f.book.Set(corev1.Resource("pods"), o)
	}
}

func (f *fleet) end(generation, n int) {
	for o := range f.pods(generation, n) {
		f.book.Delete(corev1.Resource("pods"), o.Namespace, o.Name)
	}
}

// heap is the bytes that are reachable, those of the fleet among them.
func (f *fleet) heap() float64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC() // what a first one finalizes, or keeps in pools, goes with a second
	runtime.ReadMemStats(&stats)
	runtime.KeepAlive(f)
	return float64(stats.HeapAlloc)
}

// Everything that is kept of pods counts: their names, the ledger, what is
// remembered of charges, and whatever of a message hangs on to them.
func TestMemoryPerPod(t *testing.T) {
	const most = 200
	sizes := []int{10_000, 50_000, 200_000}
	if testing.Short() {
		sizes = []int{5_000, 10_000, 20_000}
	}
	f := newFleet(t)
	empty := f.heap()
	at, last := 0, empty
	for _, n := range sizes {
		for i := at; i < n; i++ {
			f.book.Set(corev1.Resource("pods"), f.object(0, i))
		}
		now := f.heap()
		whole, more := (now-empty)/float64(n), (now-last)/float64(n-at)
		t.Logf("%d pods take %.0f bytes each; the last %d of them %.0f", n, whole, n-at, more)
		if whole > most || more > most {
			t.Errorf("%d pods take %.0f bytes each, and the last %d of them %.0f, want at most %d", n, whole, n-at, more, most)
		}
		at, last = n, now
	}
}

func TestReplacementsLeaveNothingBehind(t *testing.T) {
	const n, rounds = 10_000, 10
	for name, replace := range map[string]func(f *fleet, generation int){
		"by lists":   func(f *fleet, generation int) { f.book.Replace(corev1.Resource("pods"), f.pods(generation, n)) },
		"by a watch": func(f *fleet, generation int) { f.watch(generation, n); f.end(generation-1, n) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFleet(t)
			empty := f.heap()
			f.watch(0, n)
			first := f.heap() - empty
			for generation := range rounds {
				replace(f, generation+1)
			}
			if last := f.heap() - empty; last > 1.2*first+100_000 {
				t.Errorf("%d pods took %.0f bytes; after they were replaced %d times %.0f", n, first, rounds, last)
			}
			f.end(rounds, n)
			if left := f.heap() - empty; left > 100_000 {
				t.Errorf("all pods are gone, and %.0f bytes of %.0f are left", left, first)
			}
		})
	}
}

// A namespace that was large gives its room back while one pod stays.
func TestANamespaceThatWasLargeIsSmallAgain(t *testing.T) {
	const n = 50_000
	f := newFleet(t)
	empty := f.heap()
	f.watch(0, n)
	f.watch(1, 10)
	f.end(0, n)
	if left := f.heap() - empty; left > 100_000 {
		t.Errorf("10 of %d pods are left, with %.0f bytes", n, left)
	}
}
