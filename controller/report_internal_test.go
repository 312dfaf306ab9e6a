package controller

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

func TestPaceLetsTheFirstWriteThroughAndSpacesTheRest(t *testing.T) {
	t.Parallel()
	const kib = 1024
	start := time.Unix(1e9, 0)
	one, other := types.NamespacedName{Name: "one"}, types.NamespacedName{Name: "other"}
	cases := map[string]struct {
		writes []int // bytes, of one, at the start
		key    types.NamespacedName
		after  time.Duration
		want   time.Duration
	}{
		"the first is free":                           {key: one},
		"the second waits for the interval":           {writes: []int{kib}, key: one, want: time.Second},
		"what has waited already counts":              {writes: []int{kib}, key: one, after: 600 * time.Millisecond, want: 400 * time.Millisecond},
		"another object does not wait":                {writes: []int{kib}, key: other},
		"a large object waits for its own rate":       {writes: []int{256 * kib}, key: one, want: 4 * time.Second},
		"after the wait it is free again":             {writes: []int{256 * kib}, key: one, after: 4 * time.Second},
		"the hub's rate makes another object wait":    {writes: []int{2048 * kib, 1024 * kib}, key: other, want: 500 * time.Millisecond},
		"the hub may be ahead of its rate by 1 s":     {writes: []int{2048 * kib}, key: other},
		"a quiet hour gives no more than that second": {writes: []int{2048 * kib, 2048 * kib}, key: other, want: time.Second},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPace(time.Second, 64*kib, 2048*kib)
			for _, size := range c.writes {
				p.wrote(one, start, size)
			}
			if got := p.wait(c.key, start.Add(c.after)); got != c.want {
				t.Errorf("wait %s, want %s", got, c.want)
			}
		})
	}
}
