package controller

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/url"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/fleetquota/fleetquota/clusters"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// dead is a client of a server where nothing listens.
type dead struct{ asked chan struct{} }

var errRefused = &url.Error{Op: "Get", URL: "https://127.0.0.1:1", Err: syscall.ECONNREFUSED}

func (d dead) List(context.Context, metav1.ListOptions) (*corev1.ResourceQuotaList, error) {
	return nil, errRefused
}

func (d dead) Watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	select {
	case d.asked <- struct{}{}:
	default:
	}
	return nil, errRefused
}

func TestAnInformerOfADeadMemberEndsAtOnce(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	client := dead{asked: make(chan struct{})}
	i := newInformer(listWatch(client), &corev1.ResourceQuota{}, 0)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		i.RunWithContext(ctx)
	}()
	for range 2 {
		<-client.asked
	}
	cancel()
	select {
	case <-ended:
	case <-time.After(500 * time.Millisecond):
		t.Error("it sleeps on after it was told to end")
	}
}

func TestOnlyErrorsThatInformersSleepOnAreHidden(t *testing.T) {
	t.Parallel()
	other := errors.New("other")
	if got := clusters.Hasty(other); !errors.Is(got, other) {
		t.Errorf("%v is hidden", got)
	}
	if got := clusters.Hasty(errRefused); errors.Is(got, syscall.ECONNREFUSED) {
		t.Error("a refused connection is not hidden")
	}
	if clusters.Hasty(nil) != nil {
		t.Error("no error is one")
	}
}

// quotasOf is a client of a server that holds these quotas and tells no more.
type quotasOf struct{ items []corev1.ResourceQuota }

func (q quotasOf) List(context.Context, metav1.ListOptions) (*corev1.ResourceQuotaList, error) {
	return &corev1.ResourceQuotaList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: q.items}, nil
}

func (q quotasOf) Watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	if o.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil) // then it lists
	}
	return watch.NewFake(), nil
}

// Whatever a tenant of a member writes, nothing of it is compared as it is: that
// would take hours, while the member's other quotas wait.
func TestQuotasAreBoundedWhenTheyAreRead(t *testing.T) {
	t.Parallel()
	absurd := func() corev1.ResourceList { return corev1.ResourceList{"pods": resource.MustParse("1e999999999")} }
	quota := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "q"}}
	quota.Spec.Hard, quota.Status.Hard, quota.Status.Used = absurd(), absurd(), absurd()
	i := newInformer(listWatch(quotasOf{[]corev1.ResourceQuota{quota}}), &corev1.ResourceQuota{}, 0)
	go i.RunWithContext(t.Context())
	for !i.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	now := i.get(types.NamespacedName{Namespace: "a", Name: "q"})
	for _, list := range []corev1.ResourceList{now.Spec.Hard, now.Status.Hard, now.Status.Used} {
		if pods := list["pods"]; pods.CmpInt64(math.MaxInt64) != 0 {
			t.Errorf("%s is not bounded", pods.String())
		}
	}

	global := &v1alpha1.FleetQuota{Spec: v1alpha1.FleetQuotaSpec{
		Hard:         absurd(),
		Distribution: &v1alpha1.Distribution{Members: []v1alpha1.MemberShare{{Hard: absurd(), Min: absurd(), Max: absurd()}}},
	}, Status: v1alpha1.FleetQuotaStatus{
		Hard: absurd(), Used: absurd(), Granted: absurd(),
		Clusters: []v1alpha1.ClusterUsage{{Used: absurd(), Granted: absurd()}},
	}}
	bound(global)
	text, err := json.Marshal(global)
	if err != nil || bytes.Contains(text, []byte("1e9")) {
		t.Errorf("%v, not all of it is bounded: %s", err, text)
	}
	bound(&v1alpha1.FleetMember{})
}
