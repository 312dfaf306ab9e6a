package clusters

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// refused is a Secret that cannot be any member.
type refused struct {
	secret          types.NamespacedName
	reason, message string
}

// refusals bring refused Secrets to the host without keeping the source waiting.
type refusals struct {
	wake chan struct{}

	mu      sync.Mutex // guards waiting
	waiting []refused
}

func newRefusals() *refusals { return &refusals{wake: make(chan struct{}, 1)} }

func (r *refusals) add(one refused) {
	r.mu.Lock()
	r.waiting = append(r.waiting, one)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *refusals) run(ctx context.Context, host Host) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.wake:
		}
		r.mu.Lock()
		waiting := r.waiting
		r.waiting = nil
		r.mu.Unlock()
		for _, one := range waiting {
			host.Refuse(ctx, one.secret, one.reason, one.message)
		}
	}
}
