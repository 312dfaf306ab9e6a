package federation_test

import (
	"iter"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

var (
	pods       = schema.GroupResource{Resource: "pods"}
	services   = schema.GroupResource{Resource: "services"}
	claims     = schema.GroupResource{Resource: "persistentvolumeclaims"}
	configMaps = schema.GroupResource{Resource: "configmaps"}

	noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	live = federation.Reach{Phase: v1alpha1.Live}

	// served is the evaluators of a member that serves the kinds above.
	served = evaluator.NewSet("v1.37.2", []schema.GroupResource{pods, services, claims, configMaps})
)

// list builds a list from names and values in turn.
func list(pairs ...string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for pair := range slices.Chunk(pairs, 2) {
		l[corev1.ResourceName(pair[0])] = resource.MustParse(pair[1])
	}
	return l
}

type podOption func(*corev1.Pod)

// pod builds a pod in namespace a.
func pod(name string, options ...podOption) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: name}}
	p.Spec.Containers = []corev1.Container{{Name: "main"}}
	for _, option := range options {
		option(p)
	}
	return p
}

func requests(pairs ...string) podOption {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = list(pairs...) }
}

func priority(class string) podOption {
	return func(p *corev1.Pod) { p.Spec.PriorityClassName = class }
}

// deleted is a pod that stops to cost anything that runs after twice the grace.
func deleted(at time.Time, graceSeconds int64) podOption {
	return func(p *corev1.Pod) {
		p.DeletionTimestamp = &metav1.Time{Time: at}
		p.DeletionGracePeriodSeconds = &graceSeconds
	}
}

// charged is an object as an observer hands it over at a time.
func charged(kind schema.GroupResource, obj interface {
	runtime.Object
	metav1.Object
}, now time.Time,
) federation.Object {
	e, ok := served.For(kind)
	if !ok {
		panic("not served: " + kind.String())
	}
	charge, err := e.Charge(obj, now)
	if err != nil {
		panic(err)
	}
	return federation.Object{Namespace: obj.GetNamespace(), Name: obj.GetName(), Charge: charge}
}

// atNoon is pods as their observer hands them over at noon.
func atNoon(objects ...*corev1.Pod) iter.Seq[federation.Object] {
	return func(yield func(federation.Object) bool) {
		for _, p := range objects {
			if !yield(charged(pods, p, noon)) {
				return
			}
		}
	}
}

func namespaces(names ...string) iter.Seq[federation.Object] {
	return func(yield func(federation.Object) bool) {
		for _, name := range names {
			if !yield(federation.Object{Namespace: name}) {
				return
			}
		}
	}
}

func nothing(func(federation.Object) bool) {}

// ask is a question about namespace a.
func ask(names ...corev1.ResourceName) federation.Question {
	return federation.Question{Namespace: "a", Resources: names}
}

// moves records what a ledger tells.
type moves []federation.Move

func (m *moves) note(move federation.Move) { *m = append(*m, move) }

// take empties the record.
func (m *moves) take() []federation.Move {
	taken := *m
	*m = nil
	return taken
}

// wantUsed checks what a member uses.
func wantUsed(t *testing.T, l *federation.Ledger, q federation.Question, want corev1.ResourceList) {
	t.Helper()
	if got := l.Part(q, "eu").Used; !federation.Equal(got, want) {
		t.Errorf("used %v, want %v", got, want)
	}
}

func metaTime(at time.Time) *metav1.Time { return &metav1.Time{Time: at} }
