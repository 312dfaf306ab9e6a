package main

import "strings"

// The bounds. The API server needs one on everything that a validation rule
// may walk over.
const (
	quantityLength  = 32  // characters of a quantity
	quantityEntries = 64  // entries of a map of quantities
	selectorEntries = 64  // entries of a selector, and values of one entry
	selectorLength  = 317 // characters of a label key: prefix, slash, name
)

// schema is one JSON schema, as YAML has it.
type schema map[string]any

// bound adds the missing bounds to s and to all schemas below it.
func (s schema) bound() {
	switch {
	case s.isQuantity():
		s.keep("maxLength", quantityLength)
		s["pattern"] = shortExponent(s["pattern"])
	case s.child("additionalProperties").isQuantity():
		s.keep("maxProperties", quantityEntries)
	case s.isSelector():
		s.boundSelector()
	}
	for _, child := range s.children() {
		child.bound()
	}
}

// shortExponent is the pattern of a quantity with an exponent of at most two
// digits. Whoever reads 1e-999999999 needs hours for it, and all memory.
func shortExponent(pattern any) any {
	const long, short = `([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+)))`, `([eE](\+|-)?[0-9]{1,2})`
	text, ok := pattern.(string)
	if !ok {
		return pattern
	}
	return strings.Replace(text, long, short, 1)
}

// boundSelector bounds every list, map and string of a selector, since it is a
// type of Kubernetes and carries no markers of ours.
func (s schema) boundSelector() {
	switch s["type"] {
	case "array":
		s.keep("maxItems", selectorEntries)
	case "string":
		s.keep("maxLength", selectorLength)
	case "object":
		if s.child("additionalProperties") != nil {
			s.keep("maxProperties", selectorEntries)
		}
	}
	for _, child := range s.children() {
		child.boundSelector()
	}
}

// isQuantity tells a resource.Quantity from a plain IntOrString: only the
// former has a pattern.
func (s schema) isQuantity() bool {
	return s.has("pattern") && s.has("x-kubernetes-int-or-string")
}

// isSelector recognises label selectors and scope selectors.
func (s schema) isSelector() bool {
	return s.child("properties").child("matchExpressions") != nil
}

// children are the schemas directly below s.
func (s schema) children() []schema {
	var children []schema
	for name := range s.child("properties") {
		children = append(children, s.child("properties").child(name))
	}
	for _, name := range []string{"additionalProperties", "items"} {
		if child := s.child(name); child != nil {
			children = append(children, child)
		}
	}
	return children
}

func (s schema) child(key string) schema { return object(s[key]) }

// object is value as a schema; nil when it is absent or something else, such as
// the boolean that additionalProperties may be.
func object(value any) schema {
	if properties, ok := value.(map[string]any); ok {
		return properties
	}
	return nil
}

// keep sets a bound unless there is one.
func (s schema) keep(bound string, value int) {
	if !s.has(bound) {
		s[bound] = value
	}
}

func (s schema) has(key string) bool {
	_, ok := s[key]
	return ok
}
