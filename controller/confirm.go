package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/fleetquota/fleetquota/clusters"
)

// list is the last list of a kind in a namespace with which the ledger agreed
// object by object. All quotas of the namespace share it.
type list struct {
	turn    sync.Mutex // held while a list is made; guards all below
	next    time.Time  // no list before: what they cost is never more than a twentieth of the time
	failed  int        // times in a row
	began   time.Time  // the ledger holds all that was stored before; zero: it has not agreed yet
	version string     // of the list, at its resourceVersion
}

// listOf finds or makes the list of a kind in a namespace.
func (r *releases) listOf(namespace string, kind schema.GroupResource) *list {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lists[namespace] == nil {
		r.lists[namespace] = map[schema.GroupResource]*list{}
	}
	found := r.lists[namespace][kind]
	if found == nil {
		found = &list{}
		r.lists[namespace][kind] = found
	}
	return found
}

// renew makes the list again, if it is time for that. Lists that fail are ever
// farther apart, up to a minute.
func (l *list) renew(ask func() (version string, same bool, err error)) error {
	const atLeast, share, atMost, mostFailed = 200 * time.Millisecond, 20, time.Minute, 10
	began := time.Now()
	if began.Before(l.next) {
		return nil
	}
	version, same, err := ask()
	wait := max(atLeast, share*time.Since(began))
	if err != nil {
		l.next = time.Now().Add(max(wait, min(atMost, atLeast<<l.failed)))
		l.failed = min(l.failed+1, mostFailed)
		return err
	}
	l.next, l.failed = time.Now().Add(wait), 0
	if same {
		l.began, l.version = began, version
	}
	return nil
}

// confirm finds out from the member itself up to when the ledger holds all that
// was stored of some resources of a quota, tells the release, and says when to
// ask again. A kind that cannot be listed keeps only its own resources back.
func (e *engagement) confirm(ctx context.Context, k *keeper, names []corev1.ResourceName) (next time.Time, err error) {
	var errs []error
	for _, name := range names {
		again, err := e.confirmOne(ctx, k, name)
		if next.IsZero() || again.Before(next) {
			next = again
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	return next, errors.Join(errs...)
}

func (e *engagement) confirmOne(ctx context.Context, k *keeper, name corev1.ResourceName) (next time.Time, err error) {
	var began time.Time
	versions := map[schema.GroupResource]string{}
	for kind := range e.kindsOf(name) {
		l := e.local.releases.listOf(k.key.Namespace, kind)
		l.turn.Lock()
		err := l.renew(func() (string, bool, error) { return e.agrees(ctx, k.key.Namespace, kind) })
		since, version, again := l.began, l.version, l.next
		l.turn.Unlock()
		if again.After(next) {
			next = again
		}
		switch {
		case err != nil:
			return next, fmt.Errorf("list %s: %w", kind, clusters.Explain(err))
		case since.IsZero():
			return next, nil
		case began.IsZero() || since.Before(began):
			began = since
		}
		versions[kind] = version
	}
	k.release.Confirmed(name, began, versions)
	return next, nil
}

// agrees lists a kind in a namespace as it is now, and says of which version
// that is, and whether the book has the same objects with the same costs.
func (e *engagement) agrees(ctx context.Context, namespace string, kind schema.GroupResource) (version string, same bool, err error) {
	e.mu.Lock()
	served := e.served[kind]
	e.mu.Unlock()
	reader := e.reader(kind)
	source, _, err := e.lister(reader, kind.WithVersion(served), namespace)
	if err != nil {
		return "", false, err
	}
	answer, err := cache.ToListerWatcherWithContext(source).ListWithContext(ctx, metav1.ListOptions{})
	if err != nil {
		return "", false, err
	}
	objects, err := (&page{engagement: e, kind: kind, reader: reader}).charged(answer)
	if err != nil {
		return "", false, err
	}
	version, err = meta.NewAccessor().ResourceVersion(answer)
	return version, e.book.Agrees(kind, namespace, objects), err
}
