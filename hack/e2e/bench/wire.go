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

// wire is the answer to a watch of pods, in protobuf, that repeats for ever. It
// is read as client-go does: the frames, the events in them, the pods in those.
type wire struct {
	*restwatch.Decoder

	size int // bytes of one pass over the events
}

// newWire makes a watch that tells of these pods, as modified, over and over.
func newWire(pods []*corev1.Pod) (*wire, error) {
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
	body := info.StreamSerializer.NewFrameReader(&endless{data: data.Bytes()})
	events := streaming.NewDecoder(body, info.StreamSerializer.Serializer)
	objects := scheme.Codecs.WithoutConversion().DecoderToVersion(info.Serializer, corev1.SchemeGroupVersion)
	return &wire{Decoder: restwatch.NewDecoder(events, objects), size: data.Len()}, nil
}

func protobuf() (runtime.SerializerInfo, error) {
	types := scheme.Codecs.SupportedMediaTypes()
	i := slices.IndexFunc(types, func(t runtime.SerializerInfo) bool { return t.MediaType == runtime.ContentTypeProtobuf })
	if i < 0 {
		return runtime.SerializerInfo{}, errors.New("client-go has no protobuf")
	}
	return types[i], nil
}

// next decodes the pod of the next event.
func (w *wire) next() (*corev1.Pod, error) {
	_, obj, err := w.Decode()
	if err != nil {
		return nil, err
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		return nil, fmt.Errorf("the watch tells of a %T", obj)
	}
	return pod, nil
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
