package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fleetquota/fleetquota/federation"
)

func TestRoomIsTheLargestChargeOfLate(t *testing.T) {
	pods := func(count string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourcePods: resource.MustParse(count)}
	}
	key := types.NamespacedName{Namespace: "a", Name: "compute"}
	noon := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	var r rooms
	check := func(after time.Duration, want corev1.ResourceList) {
		t.Helper()
		if got := r.of(key, noon.Add(after)); !federation.Equal(got, want) {
			t.Errorf("after %s: %v, want %v", after, got, want)
		}
	}
	check(0, nil)
	r.grew(key, nil, pods("3"), noon) // a first count is no charge
	check(0, nil)
	r.grew(key, pods("3"), pods("8"), noon)
	r.grew(key, pods("8"), pods("2"), noon)
	r.grew(key, pods("2"), pods("4"), noon)
	check(0, pods("5"))
	check(roomSpan, pods("5"))
	r.grew(key, pods("4"), pods("6"), noon.Add(roomSpan))
	check(roomSpan, pods("5"))
	check(2*roomSpan, pods("2"))
	check(4*roomSpan, nil)
	r.grew(key, pods("1"), pods("2"), noon.Add(4*roomSpan))
	r.forget(key)
	check(4*roomSpan, nil)
}
