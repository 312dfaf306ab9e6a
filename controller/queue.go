package controller

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
)

// fieldManager names the hub in the managed fields of what it writes.
const fieldManager = "fleetquota-hub"

// newQueue makes a queue that retries each key after 50 ms to 1 min, and all of
// them together 10 times a second, so that one cause that fails them all is no
// flood. Keys that wait are one piece of work however often they are added.
func newQueue[K comparable](name string) workqueue.TypedRateLimitingInterface[K] {
	const first, last = 50 * time.Millisecond, time.Minute
	const perSecond, burst = 10, 20
	limiter := workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[K](first, last),
		&workqueue.TypedBucketRateLimiter[K]{Limiter: rate.NewLimiter(perSecond, burst)},
	)
	return workqueue.NewTypedRateLimitingQueueWithConfig(limiter, workqueue.TypedRateLimitingQueueConfig[K]{Name: name})
}

// work takes keys from a queue until ctx ends, and returns when all work has
// ended. Work that fails is logged here, once, and tried again.
func work[K comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[K], workers int, do func(context.Context, K) error) {
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for next(ctx, queue, do) {
			}
		})
	}
	<-ctx.Done()
	queue.ShutDown()
	group.Wait()
}

func next[K comparable](ctx context.Context, queue workqueue.TypedRateLimitingInterface[K], do func(context.Context, K) error) bool {
	key, down := queue.Get()
	if down {
		return false
	}
	defer queue.Done(key)
	err := try(ctx, key, do)
	switch {
	case ctx.Err() != nil:
	case apierrors.IsConflict(err): // somebody wrote in between, or the cache is behind
		klog.FromContext(ctx).V(4).Info("Will try again on the version of now", "key", key, "err", err)
		queue.AddRateLimited(key)
	case err != nil:
		klog.FromContext(ctx).Error(err, "Will try again", "key", key)
		queue.AddRateLimited(key)
	default:
		queue.Forget(key)
	}
	return true
}

// try does a piece of work. One that panics has failed, and nothing else has:
// no single object ends the hub.
func try[K comparable](ctx context.Context, key K, do func(context.Context, K) error) (err error) {
	defer func() {
		if reason := recover(); reason != nil {
			err = fmt.Errorf("panic: %v\n%s", reason, debug.Stack())
		}
	}()
	return do(ctx, key)
}
