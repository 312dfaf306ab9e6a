package wire

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"
)

// message is fields by their numbers.
type message struct {
	rules []rule // number -> what becomes of the field
}

// rule is a field as it stands in a message.
type rule struct {
	field

	number protowire.Number
	typ    protowire.Type
	within *message // where it is looked into
	size   int      // bytes that it takes when it is decoded
}

// compile finds the numbers of fields in the API type. A name that the type does
// not have is a mistake in the tables, which every test of them finds.
func compile[T any](f fields) *message {
	return compileType(reflect.TypeFor[T](), f)
}

func compileType(t reflect.Type, f fields) *message {
	known := fieldsOf(t)
	compiled := &message{}
	for name, use := range f {
		found, ok := known[name]
		if !ok {
			panic(fmt.Sprintf("wire: %v has no field %q", t, name))
		}
		r := rule{field: use, number: found.number, typ: found.typ, size: int(found.of.Size())}
		if use.how == inside {
			r.within = compileType(found.of, use.of)
		}
		for len(compiled.rules) <= int(found.number) {
			compiled.rules = append(compiled.rules, rule{})
		}
		compiled.rules[found.number] = r
	}
	return compiled
}

// tagged is what the API type says of a field.
type tagged struct {
	number protowire.Number
	typ    protowire.Type
	of     reflect.Type // of an element
}

// fieldsOf lists the fields of a message by name. An entry of a map is one too.
func fieldsOf(t reflect.Type) map[string]tagged {
	if t.Kind() == reflect.Map {
		return map[string]tagged{
			entryKey:   {number: 1, typ: protowire.BytesType, of: t.Key()},
			entryValue: {number: 2, typ: protowire.BytesType, of: t.Elem()},
		}
	}
	all := map[string]tagged{}
	for f := range t.Fields() {
		tag := strings.Split(f.Tag.Get("protobuf"), ",")
		number, err := strconv.ParseInt(tag[min(1, len(tag)-1)], 10, 32)
		if err != nil {
			continue // TypeMeta is not sent
		}
		of := f.Type
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		typ := protowire.BytesType
		if of.Kind() == reflect.Bool || of.Kind() == reflect.Int32 || of.Kind() == reflect.Int64 {
			typ = protowire.VarintType // some tags say otherwise of numbers
		}
		for _, part := range tag {
			if name, ok := strings.CutPrefix(part, "name="); ok {
				all[name] = tagged{number: protowire.Number(number), typ: typ, of: of}
			}
		}
	}
	return all
}

// rule finds what becomes of a field; nil: it is skipped.
func (m *message) rule(number protowire.Number) *rule {
	if int(number) >= len(m.rules) || m.rules[number].number == 0 {
		return nil
	}
	return &m.rules[number]
}
