package wire

import (
	"bytes"
	"errors"
	"reflect"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Serializer is what client-go's REST client reads answers with: every object of
// the kind becomes an [Object], a list of them a [List], and a status stays a
// status. What is not protobuf is decoded by the full serializer, which must not
// convert, and then charged; it takes as much memory as always.
func (r *Reader) Serializer(full runtime.NegotiatedSerializer) runtime.NegotiatedSerializer {
	return serializer{NegotiatedSerializer: full, reader: r}
}

type serializer struct {
	runtime.NegotiatedSerializer

	reader *Reader
}

// SupportedMediaTypes are those of the full serializer.
func (s serializer) SupportedMediaTypes() []runtime.SerializerInfo {
	types := slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes())
	for i := range types {
		if stream := types[i].StreamSerializer; stream != nil && types[i].MediaType == runtime.ContentTypeProtobuf {
			copied := *stream
			copied.Serializer = events{stream.Serializer}
			types[i].StreamSerializer = &copied
		}
	}
	return types
}

// DecoderToVersion is a decoder of the reader's objects.
func (s serializer) DecoderToVersion(d runtime.Decoder, version runtime.GroupVersioner) runtime.Decoder {
	return decoder{full: s.NegotiatedSerializer.DecoderToVersion(d, version), reader: s.reader}
}

// events decodes the events of a watch in protobuf. The object in an event is
// part of the bytes that the event is read from: it must be decoded before these
// are used again, as client-go does.
type events struct{ runtime.Serializer }

// Decode reads one event.
func (e events) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	event, ok := into.(*metav1.WatchEvent)
	if !ok {
		return e.Serializer.Decode(data, defaults, into)
	}
	const typ, object, raw = 1, 2, 1
	s := scan{rest: data}
	for s.next() {
		switch {
		case s.number > object || !s.is(protowire.BytesType):
		case s.number == typ:
			event.Type = eventType(s.content)
		default:
			o := scan{rest: s.content}
			for o.next() {
				if o.number == raw && o.is(protowire.BytesType) {
					event.Object.Raw = o.content
				}
			}
			if o.err != nil {
				return nil, nil, o.err
			}
		}
	}
	return event, defaults, s.err
}

// eventType is the text of an event's type, which is one of few.
func eventType(text []byte) string {
	for _, known := range []string{"ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR"} {
		if string(text) == known {
			return known
		}
	}
	return "unknown"
}

// decoder decodes one body, or the objects of one watch.
type decoder struct {
	full   runtime.Decoder
	reader *Reader
}

var errUnexpected = errors.New("the answer is of an unexpected kind")

// Decode reads one object, list or status.
func (d decoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	message, binary := bytes.CutPrefix(data, []byte("k8s\x00"))
	if into != nil || !binary {
		return d.decodeFull(data, defaults, into)
	}
	env, err := open(message)
	if err != nil {
		return nil, nil, err
	}
	kind := &d.reader.table.kind
	version, _ := kind.ToAPIVersionAndKind()
	switch {
	case env.encoded:
		return nil, nil, malformed("an encoding that is not known")
	case string(env.version) == "v1" && string(env.kind) == "Status":
		return d.full.Decode(data, defaults, nil)
	case string(env.version) != version:
	case string(env.kind) == kind.Kind:
		o, err := d.reader.Read(env.raw)
		if err != nil {
			return nil, kind, err
		}
		return o, kind, nil
	case string(env.kind) == kind.Kind+"List":
		list, err := d.reader.List(env.raw)
		if err != nil {
			return nil, kind, err
		}
		return list, kind, nil
	}
	return nil, nil, errUnexpected
}

// envelope is what protobuf bodies come in: runtime.Unknown.
type envelope struct {
	version, kind, raw []byte
	encoded            bool
}

func open(data []byte) (envelope, error) {
	const typeMeta, raw, encoding = 1, 2, 3
	var env envelope
	s := scan{rest: data}
	for s.next() {
		switch {
		case s.number > encoding || !s.is(protowire.BytesType):
		case s.number == raw:
			env.raw = s.content
		case s.number == encoding:
			env.encoded = len(s.content) > 0
		case s.number == typeMeta:
			if err := env.name(s.content); err != nil {
				return env, err
			}
		}
	}
	return env, s.err
}

// name notes what is in the envelope.
func (e *envelope) name(data []byte) error {
	const version, kind = 1, 2
	s := scan{rest: data}
	for s.next() {
		switch {
		case s.number > kind || !s.is(protowire.BytesType):
		case s.number == version:
			e.version = s.content
		default:
			e.kind = s.content
		}
	}
	return s.err
}

// decodeFull reads what is not protobuf.
func (d decoder) decodeFull(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, kind, err := d.full.Decode(data, defaults, into)
	if err != nil || into != nil {
		return obj, kind, err
	}
	switch typed := obj.(type) {
	case *metav1.Status:
		return typed, kind, nil
	case decodable:
		if charged := d.charge(typed); charged != nil {
			return charged, kind, nil
		}
	}
	return nil, kind, errUnexpected
}

// charge charges a decoded object or all in a decoded list; nil: it is of
// another kind.
func (d decoder) charge(obj runtime.Object) runtime.Object {
	ours := reflect.TypeOf(d.reader.table.make())
	if reflect.TypeOf(obj) == ours {
		return d.reader.Of(obj)
	}
	from, err := meta.ListAccessor(obj)
	if err != nil {
		return nil
	}
	list := &List{ListMeta: metav1.ListMeta{
		ResourceVersion: from.GetResourceVersion(), Continue: from.GetContinue(), RemainingItemCount: from.GetRemainingItemCount(),
	}}
	err = meta.EachListItem(obj, func(item runtime.Object) error {
		if reflect.TypeOf(item) != ours {
			return errUnexpected
		}
		list.Items = append(list.Items, d.reader.Of(item))
		return nil
	})
	if err != nil {
		return nil
	}
	return list
}
