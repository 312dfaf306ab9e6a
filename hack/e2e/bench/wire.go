package main

import (
	stdbytes "bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	restwatch "k8s.io/client-go/rest/watch"
)

// watched is the answer to a watch, in protobuf, that repeats for ever. It is read
// as client-go does: the frames, the events in them, the objects in those.
type watched[T runtime.Object] struct {
	*restwatch.Decoder

	size int // bytes of one pass over the events
}

// newWatched makes a watch that tells of these pods, as modified, over and over,
// to a client with the given serializer.
func newWatched[T runtime.Object](pods []*corev1.Pod, serializer runtime.NegotiatedSerializer) (*watched[T], error) {
	data, err := events(pods)
	if err != nil {
		return nil, err
	}
	negotiator := runtime.NewClientNegotiator(serializer, corev1.SchemeGroupVersion)
	objects, stream, framer, err := negotiator.StreamDecoder(runtime.ContentTypeProtobuf, nil)
	if err != nil {
		return nil, err
	}
	body := framer.NewFrameReader(&endless{data: data})
	return &watched[T]{Decoder: restwatch.NewDecoder(streaming.NewDecoder(body, stream), objects), size: len(data)}, nil
}

// events is the body of a watch that tells of these pods.
func events(pods []*corev1.Pod) ([]byte, error) {
	info, err := protobuf()
	if err != nil {
		return nil, err
	}
	encoder := scheme.Codecs.EncoderForVersion(info.Serializer, corev1.SchemeGroupVersion)
	var data stdbytes.Buffer
	frames := info.StreamSerializer.NewFrameWriter(&data)
	for _, pod := range pods {
		raw, err := runtime.Encode(encoder, pod)
		if err != nil {
			return nil, fmt.Errorf("encode a pod: %w", err)
		}
		event := &metav1.WatchEvent{Type: string(watch.Modified), Object: runtime.RawExtension{Raw: raw}}
		if err := info.StreamSerializer.Encode(event, frames); err != nil {
			return nil, fmt.Errorf("encode a watch event: %w", err)
		}
	}
	return data.Bytes(), nil
}

// full is the serializer of client-go's own clients.
func full() runtime.NegotiatedSerializer { return scheme.Codecs.WithoutConversion() }

func protobuf() (runtime.SerializerInfo, error) {
	types := scheme.Codecs.SupportedMediaTypes()
	i := slices.IndexFunc(types, func(t runtime.SerializerInfo) bool { return t.MediaType == runtime.ContentTypeProtobuf })
	if i < 0 {
		return runtime.SerializerInfo{}, errors.New("client-go has no protobuf")
	}
	return types[i], nil
}

// next decodes the object of the next event.
func (w *watched[T]) next() (T, error) {
	var none T
	_, obj, err := w.Decode()
	if err != nil {
		return none, err
	}
	typed, ok := obj.(T)
	if !ok {
		return none, fmt.Errorf("the watch tells of a %T", obj)
	}
	return typed, nil
}

// endless reads the same data again and again.
type endless struct {
	data []byte
	at   int
}

// Read is for io.Reader.
func (e *endless) Read(p []byte) (int, error) {
	n := copy(p, e.data[e.at:])
	e.at = (e.at + n) % len(e.data)
	return n, nil
}

// Close is for io.Closer.
func (e *endless) Close() error { return nil }

var _ io.ReadCloser = (*endless)(nil)
