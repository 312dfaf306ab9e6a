package wire_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/fleetquota/fleetquota/evaluator/wire"
)

// server answers as an API server does, in the encoding that it speaks.
type server struct {
	t           *testing.T
	contentType string
	list        func() (int, runtime.Object)
	events      []metav1.WatchEvent // of every watch
	streams     bool                // it knows lists that arrive as a stream
	end         chan struct{}

	mu    sync.Mutex // guards asked
	asked []string   // queries
}

func newServer(t *testing.T, contentType string) *server {
	t.Helper()
	return &server{t: t, contentType: contentType, end: make(chan struct{})}
}

func (s *server) info() runtime.SerializerInfo {
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), s.contentType)
	return info
}

func (s *server) encode(obj runtime.Object) []byte {
	data, err := runtime.Encode(scheme.Codecs.EncoderForVersion(s.info().Serializer, corev1.SchemeGroupVersion), obj)
	if err != nil {
		s.t.Error(err)
	}
	return data
}

func (s *server) event(typ watch.EventType, obj runtime.Object) {
	s.events = append(s.events, metav1.WatchEvent{Type: string(typ), Object: runtime.RawExtension{Raw: s.encode(obj)}})
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.URL.RawQuery)
	s.mu.Unlock()
	if accept := r.Header.Get("Accept"); !strings.HasPrefix(accept, runtime.ContentTypeProtobuf) || !strings.Contains(accept, runtime.ContentTypeJSON) {
		s.t.Errorf("it asks for %q", accept)
	}
	w.Header().Set("Content-Type", s.contentType)
	if r.URL.Query().Get("watch") == "" {
		code, obj := s.list()
		w.WriteHeader(code)
		w.Write(s.encode(obj))
		return
	}
	if r.URL.Query().Get("sendInitialEvents") == "true" && !s.streams {
		w.WriteHeader(http.StatusUnprocessableEntity)
		w.Write(s.encode(&apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("ListOptions").GroupKind(), "", nil).ErrStatus))
		return
	}
	frames := s.info().StreamSerializer.NewFrameWriter(w)
	for i := range s.events {
		var event bytes.Buffer
		if err := s.info().StreamSerializer.Encode(&s.events[i], &event); err != nil {
			s.t.Error(err)
		}
		frames.Write(event.Bytes())
	}
	http.NewResponseController(w).Flush()
	<-s.end
}

// client is client-go's, with our serializer.
func (s *server) client() *rest.RESTClient {
	s.t.Helper()
	at := httptest.NewServer(s)
	s.t.Cleanup(at.Close)
	s.t.Cleanup(sync.OnceFunc(func() { close(s.end) }))
	reader := wire.NewCharges(0).Reader(corev1.Resource("pods"), setOf("v1.37.2"))
	client, err := rest.RESTClientFor(&rest.Config{Host: at.URL, APIPath: "/api", ContentConfig: rest.ContentConfig{
		GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: reader.Serializer(scheme.Codecs.WithoutConversion()),
		ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON,
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	return client
}

// story is a store of a reflector that writes down what happens.
type story struct {
	cache.Store

	told chan string
}

func (s story) tell(what string, obj any) error {
	o, ok := obj.(*wire.Object)
	if !ok {
		return fmt.Errorf("it is a %T", obj)
	}
	charge, _, err := o.Cost()
	s.told <- fmt.Sprintf("%s %s/%s at %s costs %d", what, o.Namespace, o.Name, o.Version, len(charge.Amounts))
	return err
}
func (s story) Add(obj any) error    { return s.tell("add", obj) }
func (s story) Update(obj any) error { return s.tell("update", obj) }
func (s story) Delete(obj any) error { return s.tell("delete", obj) }
func (s story) Replace(list []any, version string) error {
	s.told <- fmt.Sprintf("list of %d at %s", len(list), version)
	for _, obj := range list {
		s.tell("with", obj)
	}
	return nil
}

func aPod(name, version string) *corev1.Pod {
	return &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, ResourceVersion: version},
	}
}

// reflects runs client-go's reflector until it has told so much.
func (s *server) reflects(want ...string) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 20*time.Second)
	defer cancel()
	source := cache.NewListWatchFromClient(s.client(), "pods", "", fields.Everything())
	told := story{told: make(chan string, 100)}
	reflector := cache.NewReflectorWithOptions(source, &wire.Object{}, told, cache.ReflectorOptions{})
	var ended sync.WaitGroup
	ended.Go(func() { reflector.ListAndWatchWithContext(ctx) })
	for _, want := range want {
		select {
		case got := <-told.told:
			if got != want {
				s.t.Errorf("the reflector told %q, want %q", got, want)
			}
		case <-ctx.Done():
			s.t.Fatalf("the reflector did not tell %q", want)
		}
	}
	cancel()
	ended.Wait()
}

func TestReflectorsTakeSlimObjects(t *testing.T) {
	for _, contentType := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		t.Run("in "+contentType, func(t *testing.T) {
			end := aPod("", "12")
			end.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
			changes := func(s *server) {
				s.event(watch.Modified, aPod("a", "13"))
				s.event(watch.Bookmark, aPod("", "14"))
				s.event(watch.Deleted, aPod("b", "15"))
			}
			t.Run("from a list that arrives as a stream", func(t *testing.T) {
				s := newServer(t, contentType)
				s.streams = true
				s.event(watch.Added, aPod("a", "10"))
				s.event(watch.Bookmark, end)
				changes(s)
				s.reflects("list of 1 at 12", "with team/a at 10 costs 2", "update team/a at 13 costs 2", "delete team/b at 15 costs 2")
			})
			t.Run("from a list", func(t *testing.T) {
				s := newServer(t, contentType)
				s.list = func() (int, runtime.Object) {
					list := &corev1.PodList{
						TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
						ListMeta: metav1.ListMeta{ResourceVersion: "12"}, Items: []corev1.Pod{*aPod("a", "10"), *aPod("b", "11")},
					}
					return http.StatusOK, list
				}
				changes(s)
				s.reflects("list of 2 at 12", "with team/a at 10 costs 2", "with team/b at 11 costs 2",
					"update team/a at 13 costs 2", "delete team/b at 15 costs 2")
			})
		})
	}
}

func TestErrorsOfTheServerStayWhatTheyAre(t *testing.T) {
	for _, contentType := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		t.Run("in "+contentType, func(t *testing.T) {
			s := newServer(t, contentType)
			s.list = func() (int, runtime.Object) {
				status := apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("no")).ErrStatus
				status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
				return http.StatusForbidden, &status
			}
			expired := apierrors.NewResourceExpired("too old").ErrStatus
			expired.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
			s.event(watch.Error, &expired)
			source := cache.NewListWatchFromClient(s.client(), "pods", "", fields.Everything())
			if _, err := source.ListWithContext(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
				t.Errorf("the list ends with %v", err)
			}
			w, err := source.WatchWithContext(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Stop()
			if event := <-w.ResultChan(); !apierrors.IsResourceExpired(apierrors.FromObject(event.Object)) {
				t.Errorf("the watch tells %v", event)
			}
		})
	}
}

// The pager of client-go puts pages together.
func TestListsComeInPages(t *testing.T) {
	s := newServer(t, runtime.ContentTypeProtobuf)
	rest := int64(1)
	s.list = func() (int, runtime.Object) {
		return http.StatusOK, &corev1.PodList{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"},
			ListMeta: metav1.ListMeta{ResourceVersion: "12", Continue: "more", RemainingItemCount: &rest}, Items: []corev1.Pod{*aPod("a", "10")},
		}
	}
	list, err := cache.NewListWatchFromClient(s.client(), "pods", "", fields.Everything()).ListWithContext(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	of, err := meta.ListAccessor(list)
	if err != nil {
		t.Fatal(err)
	}
	if of.GetResourceVersion() != "12" || of.GetContinue() != "more" || *of.GetRemainingItemCount() != 1 || meta.LenList(list) != 1 {
		t.Errorf("got %v", list)
	}
}

// A member says in its errors whatever it likes; ours quote nothing of it.
func TestErrorsQuoteNothing(t *testing.T) {
	const secret = "token-of-somebody"
	reader := wire.NewCharges(0).Reader(corev1.Resource("pods"), setOf("v1.37.2"))
	decoder := reader.Serializer(scheme.Codecs.WithoutConversion()).DecoderToVersion(protobufInfo().Serializer, corev1.SchemeGroupVersion)
	body := func(kind string, message ...[]byte) []byte {
		return append([]byte("k8s\x00"), append(field(1, field(1, []byte("v1")), field(2, []byte(kind))), field(2, message...)...)...)
	}
	for name, data := range map[string][]byte{
		"another kind": body(secret),
		"a quantity":   body("Pod", field(podSpec, field(specContainers, field(containerNeeds, asking("cpu", secret))))),
		"a wrong type": body("Pod", field(podSpec, field(specDeadline, []byte(secret)))),
		"no end":       append(body("Pod"), 0x92, secret[0]),
	} {
		_, _, err := decoder.Decode(data, nil, nil)
		if err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func protobufInfo() runtime.SerializerInfo {
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	return info
}
