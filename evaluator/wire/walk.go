package wire

import (
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// walk cuts what decides out of one message. It is used again for the next.
type walk struct {
	cut  []byte        // what is cut out, after a prefix of the caller's
	part [parts][]byte // of the identity, as they stand in the message
	ends bool          // it is the bookmark that ends the initial events
	lone bool          // the object must be decoded by itself
	own  bool          // it is being decoded by itself: cut out what only then is needed
	size int           // bytes that the API's decoder would take for the messages looked into
}

// The most that an object may hold, and take when it is decoded. An API server
// stores 1.5 MB, of which no part is so small that the object takes more; others
// can make parts of two bytes that take a thousand.
const (
	mostBytes   = 16 << 20
	mostDecoded = 128 << 20
)

// object cuts what decides out of an object's message. What was cut out before
// is lost.
func (w *walk) object(data []byte, m *message, prefix string, own bool) error {
	*w = walk{cut: append(w.cut[:0], prefix...), own: own}
	if len(data) > mostBytes {
		return malformed("too large")
	}
	return w.message(data, m)
}

// message goes through the fields of a message.
func (w *walk) message(data []byte, m *message) error {
	s := scan{rest: data}
	for s.next() {
		r := m.rule(s.number)
		if r == nil || !s.is(r.typ) {
			continue
		}
		if err := w.field(r, &s); err != nil {
			return err
		}
	}
	return s.err
}

// field does with a field what its rule says.
func (w *walk) field(r *rule, s *scan) error {
	if r.lone {
		w.lone = true
	}
	if r.part != nothing {
		w.part[r.part] = s.content
	}
	if r.own && !w.own {
		return nil
	}
	switch r.how {
	case skip:
	case keep:
		w.cut = append(w.cut, s.all...)
	case present:
		w.cut = append(protowire.AppendTag(w.cut, r.number, r.typ), 0)
	case nonzero:
		w.cut = append(protowire.AppendTag(w.cut, r.number, r.typ), sign(s.value))
	case inside:
		return w.inside(r, s.content)
	}
	return nil
}

// sign is 0 for a 32-bit number that is, and else 1.
func sign(value uint64) byte {
	if uint32(value) == 0 { //nolint:gosec // so does the API's decoder
		return 0
	}
	return 1
}

// inside looks into a field. How long what is cut out of it will be is not known
// before, so its length is written afterwards and always takes as much room.
func (w *walk) inside(r *rule, content []byte) error {
	if len(r.only) > 0 {
		if wanted, err := w.wanted(r, content); !wanted || err != nil {
			return err
		}
	}
	if w.size += r.size; w.size > mostDecoded {
		return malformed("too many parts")
	}
	const room = 4 // for 7 bits each, which is more than mostBytes
	w.cut = append(protowire.AppendTag(w.cut, r.number, r.typ), make([]byte, room)...)
	begin := len(w.cut)
	if err := w.message(content, r.within); err != nil {
		return err
	}
	length := len(w.cut) - begin
	for i := range room - 1 {
		w.cut[begin-room+i] = byte(length>>(7*i)) | 0x80 //nolint:gosec // seven bits of it
	}
	w.cut[begin-1] = byte(length >> (7 * (room - 1))) //nolint:gosec // the rest of it
	return nil
}

// wanted says whether the first field of a message has one of the values that
// are looked for. If it is there more than once, the last counts.
func (w *walk) wanted(r *rule, content []byte) (bool, error) {
	var first, second []byte
	s := scan{rest: content}
	for s.next() {
		switch {
		case s.number == 1 && s.is(protowire.BytesType):
			first = s.content
		case s.number == 2:
			second = s.content
		}
	}
	if string(first) == metav1.InitialEventsAnnotationKey {
		w.ends = string(second) == "true"
	}
	return slices.ContainsFunc(r.only, func(value string) bool { return string(first) == value }), s.err
}
