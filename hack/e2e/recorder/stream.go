package recorder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
)

// stream is the versions of one object, or of all pods, at one server.
type stream struct {
	of       string
	api      dynamic.ResourceInterface
	selector string // of fields
	note     func(change) error
	gap      func(Gap)
	looked   func(Moment)                                           // nil: nobody looks
	restart  func(after uint64, now *unstructured.UnstructuredList) // of pods, whose history is not read after a gap

	mu   sync.Mutex // guards last
	last uint64     // what was seen
}

func (s *stream) seen() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *stream) saw(version uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = max(s.last, version)
}

func (s *stream) list(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	o.FieldSelector = s.selector
	return s.api.List(ctx, o)
}

func (s *stream) begin(ctx context.Context) error {
	now, err := s.list(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range now.Items {
		if err := s.take(change{at: time.Now(), object: &now.Items[i]}); err != nil {
			return err
		}
	}
	s.saw(number(now.GetResourceVersion()))
	return nil
}

// take notes a version, unless it was seen before.
func (s *stream) take(c change) error {
	if err := s.note(c); err != nil {
		return fmt.Errorf("understand %s: %w", s.of, err)
	}
	s.saw(versionOf(c.object))
	return nil
}

// look asks for the newest version again and again, until ctx ends. It is a
// consistent read: the version of the answer is no older than the question.
func (s *stream) look(ctx context.Context) {
	const every, patience = 25 * time.Millisecond, 5 * time.Second
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		within, cancel := context.WithTimeout(ctx, patience)
		at := time.Now()
		if now, err := s.list(within, metav1.ListOptions{}); err == nil {
			s.looked(Moment{At: at, Version: number(now.GetResourceVersion())})
		}
		cancel()
	}
}

// follow watches until ctx ends, and takes up what breaks.
func (s *stream) follow(ctx context.Context) {
	const rest = 100 * time.Millisecond
	for ctx.Err() == nil {
		err := s.watch(ctx)
		if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
			err = s.heal(ctx)
		}
		if err == nil {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(rest):
		}
	}
}

func (s *stream) watch(ctx context.Context) error {
	stream, err := s.api.Watch(ctx, metav1.ListOptions{
		FieldSelector: s.selector, ResourceVersion: strconv.FormatUint(s.seen(), 10), AllowWatchBookmarks: true,
	})
	if err != nil {
		return err
	}
	defer stream.Stop()
	for event := range stream.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		object, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			return fmt.Errorf("watch %s: %T", s.of, event.Object)
		}
		if event.Type == watch.Bookmark {
			s.saw(versionOf(object))
			continue
		}
		if err := s.take(change{at: time.Now(), object: object, gone: event.Type == watch.Deleted}); err != nil {
			return err
		}
	}
	return errEnded
}

var errEnded = errors.New("the server has ended the watch")

// heal takes up a watch of which the server does not know the last version any
// more. What was missed is read from history, the newest version first: the
// version of before an object's last change is that of one revision earlier.
func (s *stream) heal(ctx context.Context) error {
	last := s.seen()
	now, err := s.list(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	gap := Gap{Of: s.of, From: last, To: number(now.GetResourceVersion())}
	if s.restart != nil {
		s.restart(last, now)
	} else {
		var missed []*unstructured.Unstructured
		missed, gap.Err = s.missed(ctx, last, now)
		if ctx.Err() != nil || isAway(gap.Err) {
			return gap.Err // not yet
		}
		for _, object := range slices.Backward(missed) {
			if err := s.take(change{at: time.Now(), object: object}); err != nil {
				return err
			}
		}
		gap.Filled = len(missed)
	}
	s.saw(gap.To)
	s.gap(gap)
	return nil
}

// isAway says whether a server may answer later.
func isAway(err error) bool {
	return err != nil && apierrors.ReasonForError(err) == metav1.StatusReasonUnknown && !errors.Is(err, errLost)
}

var errLost = errors.New("it was deleted meanwhile")

// missed is what was missed of one object, the newest first.
func (s *stream) missed(ctx context.Context, last uint64, now *unstructured.UnstructuredList) ([]*unstructured.Unstructured, error) {
	var missed []*unstructured.Unstructured
	for {
		switch {
		case len(now.Items) == 0 && (len(missed) > 0 || last > 0):
			return missed, errLost
		case len(now.Items) == 0:
			return missed, nil
		case versionOf(&now.Items[0]) <= last:
			return missed, nil
		}
		newest := &now.Items[0]
		missed = append(missed, newest)
		var err error
		now, err = s.list(ctx, metav1.ListOptions{
			ResourceVersion: strconv.FormatUint(versionOf(newest)-1, 10), ResourceVersionMatch: metav1.ResourceVersionMatchExact,
		})
		if err != nil {
			return missed, err
		}
	}
}
