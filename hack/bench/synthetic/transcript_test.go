package synthetic_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// transcript asks one API server and writes down what it answers, but for what
// no two servers have in common: versions, identities and times.
type transcript struct {
	t      *testing.T
	config *rest.Config
	client *http.Client
	codecs serializer.CodecFactory
	lines  []string
}

func newTranscript(t *testing.T, config *rest.Config) *transcript {
	t.Helper()
	config = rest.CopyConfig(config)
	config.DisableCompression = true // it is asked for where it is wanted
	config.QPS = -1
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	s := runtime.NewScheme()
	for _, err := range []error{scheme.AddToScheme(s), metav1.AddMetaToScheme(s)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return &transcript{t: t, config: config, client: client, codecs: serializer.NewCodecFactory(s)}
}

var number = regexp.MustCompile(`\d+`)

func (s *transcript) note(format string, args ...any) {
	s.lines = append(s.lines, fmt.Sprintf(format, args...))
}

// form is how an answer is asked for.
type form struct {
	name   string
	accept string
	gzip   bool
}

const (
	asJSON     = "application/json"
	asProtobuf = "application/vnd.kubernetes.protobuf"
	partial    = ";g=meta.k8s.io;v=v1;as=PartialObjectMetadata"
)

func listForms() []form {
	return []form{
		{"JSON", asJSON, false},
		{"protobuf", asProtobuf + "," + asJSON, false},
		{"JSON metadata", asJSON + partial + "List", false},
		{"protobuf metadata", asProtobuf + partial + "List," + asJSON, false},
		{"JSON gzip", asJSON, true},
		{"protobuf gzip", asProtobuf, true},
	}
}

func watchForms() []form {
	return []form{
		{"JSON", asJSON, false},
		{"protobuf", asProtobuf + "," + asJSON, false},
		{"JSON metadata", asJSON + partial, false},
		{"protobuf metadata", asProtobuf + partial, false},
		{"JSON gzip", asJSON, true},
		{"protobuf gzip", asProtobuf + ";stream=watch," + asProtobuf, true},
	}
}

// ask sends a GET. The body is to be closed.
func (s *transcript) ask(ctx context.Context, path string, query url.Values, f form) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.config.Host+path+"?"+query.Encode(), http.NoBody)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Accept", f.accept)
	if f.gzip {
		r.Header.Set("Accept-Encoding", "gzip")
	}
	answer, err := s.client.Do(r)
	if err != nil {
		s.t.Fatalf("ask for %s?%s: %v", path, query.Encode(), err)
	}
	s.note("%s?%s as %s", path, number.ReplaceAllString(query.Encode(), "N"), f.name)
	s.note("  %d %s %q vary %q", answer.StatusCode, answer.Header.Get("Content-Type"), answer.Header.Get("Content-Encoding"), answer.Header.Get("Vary"))
	if after := answer.Header.Get("Retry-After"); after != "" {
		s.note("  retry after %s", after)
	}
	return answer
}

// body is what an answer holds.
func body(answer *http.Response) (io.Reader, error) {
	if answer.Header.Get("Content-Encoding") == "gzip" {
		return gzip.NewReader(answer.Body)
	}
	return answer.Body, nil
}

// get asks for an object or a list and writes it down.
func (s *transcript) get(path string, query url.Values, f form) runtime.Object {
	s.t.Helper()
	answer := s.ask(s.t.Context(), path, query, f)
	defer answer.Body.Close()
	reader, err := body(answer)
	if err != nil {
		s.t.Fatal(err)
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		s.t.Fatal(err)
	}
	obj, err := s.decode(text)
	if err != nil {
		s.note("  text %.100q", text)
		return nil
	}
	s.write(obj)
	return obj
}

func (s *transcript) decode(text []byte) (runtime.Object, error) {
	return runtime.Decode(s.codecs.UniversalDeserializer(), text)
}

// write writes an object down.
func (s *transcript) write(obj runtime.Object) {
	s.t.Helper()
	kind := obj.GetObjectKind().GroupVersionKind()
	if status, ok := obj.(*metav1.Status); ok {
		s.note("  %s %s", kind, describe(status))
		return
	}
	if list, err := meta.ListAccessor(obj); err == nil {
		remain := "-"
		if n := list.GetRemainingItemCount(); n != nil {
			remain = fmt.Sprint(*n)
		}
		s.note("  %s versioned %v continue %v remain %s", kind, list.GetResourceVersion() != "", list.GetContinue() != "", remain)
		_ = meta.EachListItem(obj, func(item runtime.Object) error {
			s.note("  - %s", summary(item))
			return nil
		})
		return
	}
	s.note("  %s %s", kind, summary(obj))
}

func describe(status *metav1.Status) string {
	text := fmt.Sprintf("%s %d %s %q continue %v", status.Status, status.Code, status.Reason, number.ReplaceAllString(status.Message, "N"), status.Continue != "")
	if d := status.Details; d != nil {
		text += fmt.Sprintf(" details %s %s %s causes %v retry %d", d.Name, d.Group, d.Kind, d.Causes, d.RetryAfterSeconds)
	}
	return text
}

// summary is what of an object is the same at all servers.
func summary(obj runtime.Object) string {
	accessor, err := meta.Accessor(obj)
	if err != nil {
		return fmt.Sprintf("%T", obj)
	}
	text := fmt.Sprintf("%T %s %s/%s version %v uid %d", obj, obj.GetObjectKind().GroupVersionKind().Kind, accessor.GetNamespace(), accessor.GetName(),
		accessor.GetResourceVersion() != "", len(accessor.GetUID()))
	if bookmark := accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey]; bookmark != "" {
		text += " end of initial events " + bookmark
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(obj)
	if err != nil {
		return text
	}
	if status, ok := fields["status"].(map[string]any); ok && status["phase"] == string(corev1.PodSucceeded) {
		text += " finished"
	}
	if accessor.GetDeletionTimestamp() != nil {
		text += " leaving"
	}
	return text
}

// event is one event of a watch.
type event struct {
	what string
	obj  runtime.Object
}

// watch asks for events, and gives each to a function until that has enough or
// the watch ends. It says which.
func (s *transcript) watch(path string, query url.Values, f form, each func(event) (enough bool)) {
	s.t.Helper()
	query.Set("watch", "true")
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	answer := s.ask(ctx, path, query, f)
	defer answer.Body.Close()
	reader, err := body(answer)
	if err != nil {
		s.note("  no gzip: %v", err)
		return
	}
	if answer.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(reader)
		if obj, err := s.decode(text); err == nil {
			s.write(obj)
		}
		return
	}
	next := jsonEvents(reader)
	if strings.HasPrefix(answer.Header.Get("Content-Type"), asProtobuf) {
		next = protobufEvents(reader)
	}
	for {
		e, err := next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				s.note("  broken: %v", err)
				return
			}
			s.note("  the end")
			return
		}
		obj, err := s.decode(e.Object.Raw)
		if err != nil {
			s.t.Fatalf("event %s: %v", e.Type, err)
		}
		if status, ok := obj.(*metav1.Status); ok {
			s.note("  %s %s", e.Type, describe(status))
		} else {
			s.note("  %s %s", e.Type, summary(obj))
			s.onceIfBookmark(e.Type)
		}
		if each(event{e.Type, obj}) {
			s.note("  enough")
			return
		}
	}
}

// onceIfBookmark keeps one of several bookmarks: kube-apiserver sends one or two
// before the end, as its clock happens to stand.
func (s *transcript) onceIfBookmark(what string) {
	last := len(s.lines) - 1
	if what == "BOOKMARK" && s.lines[last] == s.lines[last-1] {
		s.lines = s.lines[:last]
	}
}

func jsonEvents(r io.Reader) func() (metav1.WatchEvent, error) {
	decoder := json.NewDecoder(r)
	return func() (e metav1.WatchEvent, err error) {
		err = decoder.Decode(&e)
		return e, err
	}
}

func protobufEvents(r io.Reader) func() (metav1.WatchEvent, error) {
	return func() (e metav1.WatchEvent, err error) {
		var length [4]byte
		if _, err := io.ReadFull(r, length[:]); err != nil {
			return e, err
		}
		var frame bytes.Buffer
		if _, err := io.CopyN(&frame, r, int64(binary.BigEndian.Uint32(length[:]))); err != nil {
			return e, err
		}
		return e, e.Unmarshal(frame.Bytes())
	}
}

// never has not enough.
func never(event) bool { return false }

// complete has enough when all initial events are there.
func complete(e event) bool {
	accessor, err := meta.Accessor(e.obj)
	return err == nil && accessor.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
}

// after has enough after so many events.
func after(n int) func(event) bool {
	return func(event) bool {
		n--
		return n == 0
	}
}

// with makes a query of names and values.
func with(pairs ...string) url.Values {
	query := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	return query
}
