package synthetic

import (
	"encoding/binary"
	"mime"
	"net/http"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// form is how an answer is written.
type form struct {
	protobuf bool // else JSON
	metadata bool // PartialObjectMetadata in place of the objects
}

const forms = 4

// number is different for each form, from 0 on.
func (f form) number() int {
	n := 0
	if f.protobuf {
		n++
	}
	if f.metadata {
		n += 2
	}
	return n
}

// negotiate takes the first of the wanted forms that there is. as is the kind
// that metadata alone would have.
func negotiate(r *http.Request, as string) (f form, ok bool) {
	header := r.Header.Get("Accept")
	if header == "" {
		return form{}, true
	}
	for clause := range strings.SplitSeq(header, ",") {
		media, params, err := mime.ParseMediaType(clause)
		if err != nil {
			continue
		}
		wanted := schema.GroupVersionKind{Group: params["g"], Version: params["v"], Kind: params["as"]}
		f.metadata = as != "" && wanted == metav1.SchemeGroupVersion.WithKind(as)
		if !f.metadata && !wanted.Empty() {
			continue
		}
		switch media {
		case runtime.ContentTypeProtobuf:
			f.protobuf = true
			return f, true
		case runtime.ContentTypeJSON, "application/*", "*/*":
			return f, true
		}
	}
	return form{}, false
}

// contentType names the form.
func (f form) contentType() string {
	if f.protobuf {
		return runtime.ContentTypeProtobuf
	}
	return runtime.ContentTypeJSON
}

// kindOf is the kind that objects of a kind have in this form.
func (f form) kindOf(kind schema.GroupVersionKind) schema.GroupVersionKind {
	if f.metadata {
		return metav1.SchemeGroupVersion.WithKind("PartialObjectMetadata")
	}
	return kind
}

// The bytes of Kubernetes' protobuf that do not depend on an object.
const (
	magic   = "k8s\x00"
	trailer = "\x1a\x00\x22\x00" // no content encoding and no content type
)

func appendVarint(dst []byte, n int) []byte { return binary.AppendUvarint(dst, uint64(n)) }

func varintSize(n int) int {
	size := 1
	for ; n >= 1<<7; n >>= 7 {
		size++
	}
	return size
}

// appendField appends a field of bytes.
func appendField(dst []byte, field byte, value string) []byte {
	const wireBytes = 2
	dst = append(dst, field<<3|wireBytes)
	return append(appendVarint(dst, len(value)), value...)
}

// fieldSize is the size of a field of bytes with a number below 16.
func fieldSize(length int) int { return 1 + varintSize(length) + length }

// appendEnvelope begins an object of a kind that has so many bytes. They and
// the trailer follow.
func appendEnvelope(dst []byte, kind schema.GroupVersionKind, length int) []byte {
	version, name := kind.ToAPIVersionAndKind()
	dst = append(dst, magic...)
	dst = append(dst, 0x0a)
	dst = appendVarint(dst, fieldSize(len(version))+fieldSize(len(name)))
	dst = appendField(appendField(dst, 1, version), 2, name)
	dst = append(dst, 0x12)
	return appendVarint(dst, length)
}

func envelopeSize(kind schema.GroupVersionKind, length int) int {
	version, name := kind.ToAPIVersionAndKind()
	return len(magic) + fieldSize(fieldSize(len(version))+fieldSize(len(name))) + fieldSize(length) + len(trailer)
}

// object is the bytes of one object, without its kind.
type object struct {
	kind  schema.GroupVersionKind
	size  int
	write func(dst []byte) []byte
}

// appendObject appends an object with its kind.
func (f form) appendObject(dst []byte, o object) []byte {
	if f.protobuf {
		dst = appendEnvelope(dst, o.kind, o.size)
		return append(o.write(dst), trailer...)
	}
	dst = appendKind(dst, o.kind)
	at := len(dst)
	dst = o.write(dst)
	dst[at] = ',' // in place of the brace
	return dst
}

func appendKind(dst []byte, kind schema.GroupVersionKind) []byte {
	version, name := kind.ToAPIVersionAndKind()
	dst = append(append(dst, `{"kind":"`...), name...)
	return append(append(append(dst, `","apiVersion":"`...), version...), '"')
}

// appendEvent appends a watch event in its frame.
func (f form) appendEvent(dst []byte, what string, o object) []byte {
	if !f.protobuf {
		dst = append(append(append(dst, `{"type":"`...), what...), `","object":`...)
		return append(f.appendObject(dst, o), '}', '\n')
	}
	raw := envelopeSize(o.kind, o.size)
	size := fieldSize(len(what)) + fieldSize(fieldSize(raw))
	dst = binary.BigEndian.AppendUint32(dst, uint32(size))
	dst = appendField(dst, 1, what)
	dst = append(dst, 0x12)
	dst = appendVarint(dst, fieldSize(raw))
	dst = append(dst, 0x0a)
	dst = appendVarint(dst, raw)
	return f.appendObject(dst, o)
}

// listing is a list but for its objects.
type listing struct {
	kind     schema.GroupVersionKind // of the list
	revision uint64
	cont     string // continue; empty: this is the end
	remain   int64  // behind this chunk; -1: not said
}

// metaSize is the size of the ListMeta in protobuf.
func (l *listing) meta() []byte {
	meta := appendField(nil, 1, "")
	meta = appendField(meta, 2, strconv.FormatUint(l.revision, 10))
	meta = appendField(meta, 3, l.cont)
	if l.remain >= 0 {
		meta = appendVarint(append(meta, 4<<3), int(l.remain))
	}
	return meta
}

// head begins a list whose objects have so many bytes in all, in protobuf with
// their tags.
func (f form) head(l *listing, size int) []byte {
	if f.protobuf {
		meta := string(l.meta())
		return appendField(appendEnvelope(nil, l.kind, fieldSize(len(meta))+size), 1, meta)
	}
	dst := appendKind(nil, l.kind)
	dst = append(append(dst, `,"metadata":{"resourceVersion":"`...), strconv.FormatUint(l.revision, 10)...)
	dst = append(dst, '"')
	if l.cont != "" {
		dst = append(append(append(dst, `,"continue":"`...), l.cont...), '"')
	}
	if l.remain >= 0 {
		dst = strconv.AppendInt(append(dst, `,"remainingItemCount":`...), l.remain, 10)
	}
	return append(dst, `},"items":[`...)
}

// appendItem appends an object to a list.
func (f form) appendItem(dst []byte, o object, first bool) []byte { //nolint:revive // it is a fact, no control
	if f.protobuf {
		dst = append(dst, 0x12)
		return o.write(appendVarint(dst, o.size))
	}
	if !first {
		dst = append(dst, ',')
	}
	if f.metadata { // a list of other things than itself names them
		return f.appendObject(dst, o)
	}
	return o.write(dst)
}

// tail ends a list.
func (f form) tail() string {
	if f.protobuf {
		return trailer
	}
	return "]}\n"
}
