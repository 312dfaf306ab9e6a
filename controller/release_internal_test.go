package controller

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/fleetquota/fleetquota/evaluator"
	"github.com/fleetquota/fleetquota/federation"
)

func TestWhatEveryQuotaControllerMustNotice(t *testing.T) {
	t.Parallel()
	cost := func(names ...corev1.ResourceName) *federation.Cost {
		c := &federation.Cost{}
		for _, name := range names {
			c.Amounts = append(c.Amounts, evaluator.Amount{Name: name, Quantity: resource.MustParse("1")})
		}
		return c
	}
	running, finished := cost("count/pods", "limits.cpu", "pods"), cost("count/pods")
	created := time.Unix(1e9, 0)
	cases := map[string]struct {
		change federation.Change
		want   bool
	}{
		"an object is gone":            {federation.Change{Was: finished}, true},
		"a pod has finished":           {federation.Change{Created: created, Was: running, Is: finished}, true},
		"a pod is past its grace":      {federation.Change{Was: running, Is: finished}, false},
		"a pod was resized":            {federation.Change{Created: created, Was: running, Is: cost("count/pods", "pods")}, false},
		"a service has another type":   {federation.Change{Created: created, Was: cost("services", "services.nodeports"), Is: cost("services")}, false},
		"an object is new":             {federation.Change{Created: created, Is: running}, false},
		"a finished pod was changed":   {federation.Change{Created: created, Was: finished, Is: finished}, false},
		"a pod of another run is back": {federation.Change{Created: created, Was: finished, Is: running}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := ended(tc.change); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
