package wire

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/encoding/protowire"
)

// ErrMalformed is what an error is that a message causes.
var ErrMalformed = errors.New("malformed message")

func malformed(what string) error { return fmt.Errorf("%w: %s", ErrMalformed, what) }

// scan goes through the fields of a message.
type scan struct {
	rest []byte
	err  error // why it ended before the message did

	// The field that was found last.
	number  protowire.Number
	typ     protowire.Type
	all     []byte // with its tag
	content []byte // where the type is bytes
	value   uint64 // where it is a number
}

// next finds the next field. It ends where the API's decoder would refuse what
// it finds, and at groups, which nothing that is sent has.
func (s *scan) next() bool {
	if len(s.rest) == 0 || s.err != nil {
		return false
	}
	tag, at := varint(s.rest)
	if at <= 0 || tag>>3 == 0 || tag>>3 > math.MaxInt32 {
		return s.end("no field where one should be")
	}
	s.number, s.typ = protowire.Number(tag>>3), protowire.Type(tag&7)
	s.content, s.value = nil, 0
	size := s.read(s.rest[at:])
	if size < 0 {
		return s.end("a field that does not end, or of no type")
	}
	s.all, s.rest = s.rest[:at+size], s.rest[at+size:]
	return true
}

// read reads the value of the field, and says how many bytes it takes; less than
// 0: it is none.
func (s *scan) read(data []byte) int {
	size := -1
	switch s.typ {
	case protowire.VarintType:
		s.value, size = varint(data)
	case protowire.BytesType:
		length, n := varint(data)
		if n > 0 && length <= uint64(len(data)-n) { //nolint:gosec // what is left is not negative
			size = n + int(length) //nolint:gosec // no longer than what is left
			s.content = data[n:size]
		}
	case protowire.Fixed32Type:
		size = 4
	case protowire.Fixed64Type:
		size = 8
	case protowire.StartGroupType, protowire.EndGroupType:
	}
	if size > len(data) {
		return -1
	}
	return size
}

func (s *scan) end(what string) bool {
	s.err = malformed(what)
	return false
}

// is asks for the type that the field should have.
func (s *scan) is(typ protowire.Type) bool {
	if s.typ != typ {
		return s.end("a field of another type")
	}
	return true
}

// varint reads a number and says how many bytes it takes; at most 0: it does not
// end. Nearly all take one.
func varint(data []byte) (value uint64, size int) {
	if len(data) > 0 && data[0] < 0x80 {
		return uint64(data[0]), 1
	}
	return protowire.ConsumeVarint(data)
}
