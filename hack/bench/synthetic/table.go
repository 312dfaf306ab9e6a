package synthetic

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// table serves the objects of one kind of one member.
type table[T any] struct {
	kind    kind
	history *history[T]
	codec   codec[T]
}

// codec knows what the objects of a table are.
type codec[T any] interface {
	key(T) (namespace, name string)
	object(T, form) object
	find(namespace, name string) T // what finds the object in the order of keys
}

// forget drops the history. The caller holds the lock.
func (t *table[T]) forget() { t.history.forget() }

// serve answers GET: one object, a list, or a watch.
func (t *table[T]) serve(w http.ResponseWriter, r *http.Request, q question) {
	if q.name != "" {
		t.get(w, r, q)
		return
	}
	f, ok := negotiate(r, "PartialObjectMetadataList")
	watched, watching := negotiate(r, "PartialObjectMetadata")
	q, err := parse(r.URL.Query(), q)
	if err == nil && q.watch {
		f, ok = watched, watching
	}
	switch {
	case !ok:
		form{}.fail(w, notAcceptable())
	case err != nil:
		f.refuse(w, err)
	case q.watch:
		t.watch(w, r, q, f)
	default:
		t.list(w, r, q, f)
	}
}

// refuse sends what an error is to a client.
func (f form) refuse(w http.ResponseWriter, err error) {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	if !ok {
		status = apierrors.NewInternalError(err)
	}
	f.fail(w, status.ErrStatus)
}

func notAcceptable() metav1.Status {
	const media = "application/json, application/yaml, application/vnd.kubernetes.protobuf, " +
		"application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
	return metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable,
		Message: "406: Not Acceptable\n\nAvailable representations: " + media, Details: &metav1.StatusDetails{},
	}
}

// get answers with one object.
func (t *table[T]) get(w http.ResponseWriter, r *http.Request, q question) {
	f, ok := negotiate(r, "PartialObjectMetadata")
	if !ok {
		form{}.fail(w, notAcceptable())
		return
	}
	present, _ := t.history.now()
	found, ok := present.objects.Get(t.codec.find(q.namespace, q.name))
	if !ok {
		f.refuse(w, apierrors.NewNotFound(t.kind.GroupResource(), q.name))
		return
	}
	o := t.codec.object(found, f)
	body := f.appendObject(nil, o)
	if !f.protobuf {
		body = append(body, '\n')
	}
	send(w, r, f.contentType(), len(body), func(write func([]byte)) { write(body) })
}

// selected says whether an object is asked for.
func (t *table[T]) selected(q *question, obj T) bool {
	if q.namespace == "" && q.name == "" {
		return true
	}
	namespace, name := t.codec.key(obj)
	return (q.namespace == "" || q.namespace == namespace) && (q.name == "" || q.name == name)
}

// list answers with the objects at one revision, all or a part.
func (t *table[T]) list(w http.ResponseWriter, r *http.Request, q question, f form) {
	s, err := t.snapshot(r, &q)
	if err != nil {
		f.refuse(w, err)
		return
	}
	l, objects, err := t.page(s, &q)
	if err != nil {
		f.refuse(w, err)
		return
	}
	l.kind = f.listKind(t.kind)
	size := 0
	for _, obj := range objects {
		if n := t.codec.object(obj, f).size; f.protobuf {
			size += fieldSize(n)
		} else {
			size += n + 1
		}
	}
	head := f.head(&l, size)
	send(w, r, f.contentType(), len(head)+size+len(f.tail()), func(write func([]byte)) {
		t.writeList(f, head, objects, write)
	})
}

// writeList writes a list piece by piece.
func (t *table[T]) writeList(f form, head []byte, objects []T, write func([]byte)) {
	const piece = 64 << 10
	buffer := append(make([]byte, 0, piece+piece/4), head...)
	for i, obj := range objects {
		buffer = f.appendItem(buffer, t.codec.object(obj, f), i == 0)
		if len(buffer) > piece {
			write(buffer)
			buffer = buffer[:0]
		}
	}
	write(append(buffer, f.tail()...))
}

// snapshot finds the objects at the revision that is asked for.
func (t *table[T]) snapshot(r *http.Request, q *question) (snapshot[T], error) {
	var s snapshot[T]
	wanted := q.revision
	if q.token != nil {
		wanted = uint64(max(q.token.Revision, 0))
	}
	if err := t.reach(r, wanted); err != nil {
		return s, err
	}
	if !q.exact && (q.token == nil || q.token.Revision < 0) {
		s, _ = t.history.now()
		return s, nil
	}
	s, err := t.history.at(wanted)
	switch {
	case err == nil:
		return s, nil
	case q.token == nil:
		return s, apierrors.NewResourceExpired("The resourceVersion for the provided list is too old.")
	}
	return s, expiredToken(q.token)
}

// expiredToken refuses to continue, and offers a token that can.
func expiredToken(t *token) error {
	err := apierrors.NewResourceExpired("The provided continue parameter is too old to display a consistent list result. " +
		"You can start a new list without the continue parameter, or use the continue token in this response to retrieve the " +
		"remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, " +
		"modified, or deleted between the time the first chunk was returned and now may show up in the list.")
	text, failed := token{Version: tokenVersion, Revision: -1, Start: t.Start}.encode()
	if failed != nil {
		return failed
	}
	err.ErrStatus.Continue = text
	return err
}

// reach waits for a revision that is still to come, as long as a watch cache
// does.
func (t *table[T]) reach(r *http.Request, revision uint64) error {
	const patience = 3 * time.Second
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		_, more, err := t.history.read(^uint64(0), nil)
		present := t.history.revision()
		if err != nil || present >= revision {
			return err
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return r.Context().Err()
		case <-limit.C:
			late := apierrors.NewTimeoutError(fmt.Sprintf("Too large resource version: %d, current: %d", revision, present), 1)
			late.ErrStatus.Details.Causes = []metav1.StatusCause{{
				Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
			}}
			return late
		}
	}
}

// page is the part of a snapshot that is asked for.
func (t *table[T]) page(s snapshot[T], q *question) (listing, []T, error) {
	l := listing{revision: s.revision, remain: -1}
	begin := ""
	if q.token != nil {
		begin = q.token.Start
		if q.namespace != "" {
			begin = q.namespace + "/" + begin
		}
	}
	var objects []T
	s.objects.Ascend(func(obj T) bool {
		if t.selected(q, obj) && (begin == "" || t.path(obj) >= begin) {
			objects = append(objects, obj)
		}
		return true
	})
	if q.limit == 0 || q.anyOf || int64(len(objects)) <= q.limit {
		return l, objects, nil
	}
	if q.name == "" {
		l.remain = int64(len(objects)) - q.limit
	}
	objects = objects[:q.limit]
	start := t.path(objects[q.limit-1]) + "\x00"
	if q.namespace != "" {
		start = strings.TrimPrefix(start, q.namespace+"/")
	}
	var err error
	l.cont, err = token{Version: tokenVersion, Revision: int64(s.revision), Start: start}.encode()
	return l, objects, err
}

// path is an object's key below that of its kind.
func (t *table[T]) path(obj T) string {
	namespace, name := t.codec.key(obj)
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}

// blank is an object that has nothing but a version: a bookmark.
func (t *table[T]) blank(revision uint64, f form, annotations map[string]string) (object, error) {
	obj := t.kind.example.DeepCopyObject()
	accessor, ok := obj.(metav1.Object)
	if !ok {
		return object{}, fmt.Errorf("%T has no metadata", obj)
	}
	accessor.SetResourceVersion(fmt.Sprint(revision))
	accessor.SetAnnotations(annotations)
	return f.encode(t.kind.kind(), obj)
}
