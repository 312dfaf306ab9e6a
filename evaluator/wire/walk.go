package wire

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ErrMalformed is what an error is that a message causes.
var ErrMalformed = errors.New("malformed message")

func malformed(what string) error { return fmt.Errorf("%w: %s", ErrMalformed, what) }

// walk cuts what decides out of one message. It is used again for the next.
type walk struct {
	cut  []byte        // what is cut out, after a prefix of the caller's
	part [parts][]byte // of the identity, as they stand in the message
	ends bool          // it is the bookmark that ends the initial events
	lone bool          // the object must be decoded by itself
	own  bool          // it is being decoded by itself: cut out what only then is needed
	seen int           // messages looked into
}

// The most that an object may hold. The API server takes 1.5 MB of a client; an
// object is decoded to a thousand times the size of its smallest part.
const (
	mostBytes  = 16 << 20
	mostInside = 20_000
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

// message goes through the fields of a message. Where the API's decoder would
// refuse what it finds, or take something else for it, this does not go on.
func (w *walk) message(data []byte, m *message) error {
	if w.seen++; w.seen > mostInside {
		return malformed("too many parts")
	}
	for len(data) > 0 {
		number, typ, n := protowire.ConsumeTag(data)
		if n < 0 {
			return malformed("no field where one should be")
		}
		size, err := sizeOf(number, typ, data[n:])
		if err != nil {
			return err
		}
		if r := m.rule(number); r != nil {
			if typ != r.typ {
				return malformed("a field of another type")
			}
			if err := w.field(r, data[:n+size], data[n:n+size]); err != nil {
				return err
			}
		}
		data = data[n+size:]
	}
	return nil
}

// sizeOf is the length of a field's value. Nothing that is sent is a group.
func sizeOf(number protowire.Number, typ protowire.Type, data []byte) (int, error) {
	if typ == protowire.StartGroupType || typ == protowire.EndGroupType {
		return 0, malformed("a group")
	}
	size := protowire.ConsumeFieldValue(number, typ, data)
	if size < 0 {
		return 0, malformed("a field that does not end")
	}
	return size, nil
}

// field does with a field what its rule says.
func (w *walk) field(r *rule, all, value []byte) error {
	if r.lone {
		w.lone = true
	}
	if r.part != nothing {
		w.part[r.part], _ = protowire.ConsumeBytes(value)
	}
	if r.own && !w.own {
		return nil
	}
	switch r.how {
	case skip:
	case keep:
		w.cut = append(w.cut, all...)
	case present:
		w.cut = protowire.AppendTag(w.cut, r.number, r.typ)
		w.cut = append(w.cut, 0)
	case nonzero:
		w.cut = protowire.AppendTag(w.cut, r.number, r.typ)
		w.cut = append(w.cut, sign(value))
	case inside:
		content, _ := protowire.ConsumeBytes(value)
		return w.inside(r, content)
	}
	return nil
}

// sign is 0 for a 32-bit number that is, and else 1.
func sign(value []byte) byte {
	if number, _ := protowire.ConsumeVarint(value); uint32(number) == 0 { //nolint:gosec // so does the API's decoder
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
	const room = 4 // for 7 bits each, which is more than mostBytes
	w.cut = protowire.AppendTag(w.cut, r.number, r.typ)
	w.cut = append(w.cut, 0, 0, 0, 0)
	begin := len(w.cut)
	if err := w.message(content, r.within); err != nil {
		return err
	}
	length := len(w.cut) - begin
	for i := range room - 1 {
		w.cut[begin-room+i] = byte(length>>(7*i))&0x7f | 0x80
	}
	w.cut[begin-1] = byte(length >> (7 * (room - 1)))
	return nil
}

// wanted says whether the first field of a message has one of the values that
// are looked for. If it is there more than once, the last counts.
func (w *walk) wanted(r *rule, content []byte) (bool, error) {
	var first, second []byte
	for len(content) > 0 {
		number, typ, n := protowire.ConsumeTag(content)
		if n < 0 {
			return false, malformed("no field where one should be")
		}
		size, err := sizeOf(number, typ, content[n:])
		if err != nil {
			return false, err
		}
		if number <= 2 && typ == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(content[n:])
			if number == 1 {
				first = value
			} else {
				second = value
			}
		} else if number == 1 {
			return false, malformed("a field of another type")
		}
		content = content[n+size:]
	}
	if string(first) == metav1.InitialEventsAnnotationKey {
		w.ends = string(second) == "true"
	}
	return slices.ContainsFunc(r.only, func(value string) bool { return string(first) == value }), nil
}
