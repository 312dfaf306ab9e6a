package federation_test

import (
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation"
)

// crowd is so many pods of a hundred workloads in one namespace.
func crowd(size int) func(func(federation.Object) bool) {
	var charges []evaluator.Charge
	for i := range 100 {
		charges = append(charges, charged(pods, pod("p", requests("cpu", fmt.Sprintf("%dm", 100+i), "memory", "1Gi")), noon).Charge)
	}
	return func(yield func(federation.Object) bool) {
		for i := range size {
			name := fmt.Sprintf("workload-%02d-5d4f8c7b9-%05d", i%len(charges), i)
			if !yield(federation.Object{Namespace: "a", Name: name, Charge: charges[i%len(charges)]}) {
				return
			}
		}
	}
}

func crowded(size int) (*federation.Ledger, *federation.Book) {
	ledger := federation.NewLedger(nil)
	ledger.Mark("eu", live)
	book := ledger.Open("eu", served, nil)
	book.Replace(pods, crowd(size))
	return ledger, book
}

// benchmarkChange is one pod of a namespace that costs something else each
// time. It must not depend on the size.
func benchmarkChange(b *testing.B, size int) {
	b.Helper()
	_, book := crowded(size)
	var changes []federation.Object
	for _, cpu := range []string{"1", "2", "3"} {
		changes = append(changes, charged(pods, pod("changing", requests("cpu", cpu, "memory", "2Gi")), noon))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		book.Set(pods, changes[i%len(changes)])
	}
}

func BenchmarkChange100(b *testing.B)   { benchmarkChange(b, 100) }
func BenchmarkChange50000(b *testing.B) { benchmarkChange(b, 50_000) }

// BenchmarkUsage is one quota of six resources over a hundred members with
// 1,000 pods each.
func BenchmarkUsage(b *testing.B) {
	ledger := federation.NewLedger(nil)
	var members []string
	for i := range 100 {
		name := fmt.Sprintf("member-%03d", i)
		members = append(members, name)
		ledger.Mark(name, live)
		ledger.Open(name, served, nil).Replace(pods, crowd(1000))
	}
	q := ask(corev1.ResourceRequestsCPU, corev1.ResourceRequestsMemory, corev1.ResourceLimitsCPU,
		corev1.ResourceLimitsMemory, corev1.ResourcePods, "count/pods")
	b.ReportAllocs()
	for b.Loop() {
		if usage := ledger.Usage(q, members); len(usage.Parts[0].Unknown) > 0 {
			b.Fatal(usage.Parts[0])
		}
	}
}

// BenchmarkReplace50000 is a list that is the same as before.
func BenchmarkReplace50000(b *testing.B) {
	_, book := crowded(50_000)
	b.ReportAllocs()
	for b.Loop() {
		book.Replace(pods, crowd(50_000))
	}
}

// BenchmarkMemory is what the ledger holds per pod, its name included.
func BenchmarkMemory(b *testing.B) {
	const size = 200_000
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		ledger, book := crowded(size)
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(ledger)
		runtime.KeepAlive(book)
	}
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/size, "bytes/object")
}
