package scenario

import (
	"testing"
	"time"

	"github.com/fleetquota/fleetquota/hack/e2e/scene"
)

func TestTheBusiestFleetQuotaIsToldFromItsFirstWriteToItsLast(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	write := func(namespace string, after time.Duration) scene.Write {
		return scene.Write{Namespace: namespace, At: noon.Add(after)}
	}
	for name, c := range map[string]struct {
		writes []scene.Write
		want   float64
	}{
		"none":          {nil, 0},
		"one":           {[]scene.Write{write("a", 0)}, 0},
		"one a second":  {[]scene.Write{write("a", 0), write("a", time.Second), write("a", 2*time.Second)}, 1},
		"two of a pair": {[]scene.Write{write("a", 0), write("b", 0), write("a", 2*time.Second), write("b", 4*time.Second)}, 0.5},
	} {
		t.Run(name, func(t *testing.T) {
			if got := busiest(c.writes); got != c.want {
				t.Errorf("got %v a second, want %v", got, c.want)
			}
		})
	}
}
