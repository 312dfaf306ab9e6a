package synthetic

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// stream is the answer to one watch.
type stream[T any] struct {
	table    *table[T]
	question question
	form     form
	out      http.ResponseWriter
	zip      *zippers // nil: as it is
	buffer   []byte   // what is not sent yet
	began    uint64   // the revision at which it began
	deadline time.Time
}

// watch answers with what happens, after what there is where that is asked for.
func (t *table[T]) watch(w http.ResponseWriter, r *http.Request, q question, f form) {
	s := &stream[T]{table: t, question: q, form: f, out: w}
	lasts := q.timeout
	if lasts == 0 {
		const least = 30 * time.Minute
		lasts = least + rand.N(least) //nolint:gosec // jitter
	}
	s.deadline = time.Now().Add(lasts)
	ctx, cancel := context.WithDeadline(r.Context(), s.deadline)
	defer cancel()
	contentType := f.contentType()
	if f.protobuf {
		contentType += ";stream=watch"
	}
	w.Header().Set("Content-Type", contentType)
	if q.initial && q.bookmarks && zipped(r) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Add("Vary", "Accept-Encoding")
		s.zip = t.kind.zip
	}
	if status, ok := errors.AsType[*apierrors.StatusError](s.run(ctx, r)); ok {
		_ = s.fail(status) //nolint:errcheck // the client is gone
	}
}

// run sends until ctx ends, the client is gone, or something is wrong.
func (s *stream[T]) run(ctx context.Context, r *http.Request) error {
	next, err := s.begin(r)
	if err != nil {
		return err
	}
	if err := s.flush(); err != nil {
		return err
	}
	return s.follow(ctx, next)
}

// begin sends what there is, if that is asked for, and finds the number of the
// event that comes next.
func (s *stream[T]) begin(r *http.Request) (uint64, error) {
	s.out.WriteHeader(http.StatusOK)
	if err := http.NewResponseController(s.out).Flush(); err != nil {
		return 0, err
	}
	q := &s.question
	if !q.initial && q.revision > 0 {
		next, known, err := s.table.history.after(q.revision)
		s.began = s.table.history.revision()
		if errors.Is(err, errTooOld) {
			return 0, apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", q.revision, known))
		}
		return next, err
	}
	if err := s.table.reach(r, q.revision); err != nil {
		return 0, err
	}
	present, next := s.table.history.now()
	s.began = present.revision
	if !q.initial {
		return next, nil
	}
	var failed error
	present.objects.Ascend(func(obj T) bool {
		if s.table.selected(q, obj) {
			failed = s.send(added.String(), s.table.codec.object(obj, s.form))
		}
		return failed == nil
	})
	if failed != nil || !q.bookmarks {
		return next, failed
	}
	return next, s.bookmark(present.revision, map[string]string{metav1.InitialEventsAnnotationKey: "true"})
}

// follow sends what happens.
func (s *stream[T]) follow(ctx context.Context, next uint64) error {
	const atOnce = 100
	events := make([]event[T], 0, atOnce)
	sign := time.NewTimer(s.nextSign())
	defer sign.Stop()
	for {
		batch, more, err := s.table.history.read(next, events[:0])
		if err != nil {
			return err
		}
		next += uint64(len(batch))
		if err := s.tell(batch); err != nil {
			return err
		}
		if len(batch) > 0 {
			continue
		}
		select {
		case <-more:
		case <-ctx.Done():
			return ctx.Err()
		case <-sign.C:
			sign.Reset(s.nextSign())
			if err := s.alive(); err != nil {
				return err
			}
		}
	}
}

// tell sends events, as far as they are asked for, and writes them.
func (s *stream[T]) tell(events []event[T]) error {
	for i := range events {
		e := &events[i]
		if !s.table.selected(&s.question, e.now) {
			continue
		}
		if err := s.send(e.what.String(), s.table.codec.object(e.now, s.form)); err != nil {
			return err
		}
	}
	return s.flush()
}

// alive sends a bookmark where it would say something new.
func (s *stream[T]) alive() error {
	revision := s.table.history.revision()
	if !s.question.bookmarks || revision == s.began {
		return nil
	}
	if err := s.bookmark(revision, nil); err != nil {
		return err
	}
	return s.flush()
}

// nextSign is how long it takes to the next bookmark: there is one in every
// minute, and one shortly before the end.
func (s *stream[T]) nextSign() time.Duration {
	const every, beforeEnd = time.Minute, 2 * time.Second
	left := time.Until(s.deadline)
	if left <= beforeEnd {
		return left + every
	}
	return min(every, left-beforeEnd)
}

// bookmark says how far the watch has come.
func (s *stream[T]) bookmark(revision uint64, annotations map[string]string) error {
	o, err := s.table.blank(revision, s.form, annotations)
	if err != nil {
		return err
	}
	return s.send("BOOKMARK", o)
}

// fail ends the watch with an error.
func (s *stream[T]) fail(status *apierrors.StatusError) error {
	plain := s.form
	plain.metadata = false
	o, err := plain.encode(statusKind(), &status.ErrStatus)
	if err != nil {
		return err
	}
	s.buffer = plain.appendEvent(s.buffer, "ERROR", o)
	return s.flush()
}

// send takes one event, and writes what has gathered when it is much.
func (s *stream[T]) send(what string, o object) error {
	const much = 64 << 10
	s.buffer = s.form.appendEvent(s.buffer, what, o)
	if len(s.buffer) < much {
		return nil
	}
	return s.flush()
}

// flush writes what has gathered. Each time is a gzip of its own, as with
// kube-apiserver, so that a quiet watch holds no writer.
func (s *stream[T]) flush() error {
	const keep = 128 << 10
	if len(s.buffer) == 0 {
		return nil
	}
	if err := s.write(); err != nil {
		return err
	}
	if s.buffer = s.buffer[:0]; cap(s.buffer) > keep {
		s.buffer = nil
	}
	return http.NewResponseController(s.out).Flush()
}

func (s *stream[T]) write() error {
	if s.zip == nil {
		_, err := s.out.Write(s.buffer)
		return err
	}
	zip := s.zip.take(s.out)
	defer s.zip.give(zip)
	if _, err := zip.Write(s.buffer); err != nil {
		return err
	}
	if err := zip.Flush(); err != nil {
		return err
	}
	return zip.Close()
}
