package manifest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// item is one object's part of a document.
type item struct {
	doc  *document
	path []string // within the document; empty: all of it
	json []byte
	kind schema.GroupVersionKind
}

// place is where the item begins.
func (i item) place() Place {
	if node := find(i.doc.node(), i.path); node != nil && len(i.path) > 0 {
		return Place{i.doc.file, i.doc.at(node.Line)}
	}
	return Place{i.doc.file, i.doc.begin()}
}

// head is what every object and every list has.
type head struct {
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Items      *[]*json.RawMessage `json:"items"`
}

// items lists the objects of a document, those of lists one by one.
func (in *Input) items(d *document) []item {
	return in.flatten(item{doc: d, json: d.json}, schema.GroupVersionKind{})
}

// flatten lists the objects of one part of a document. What says no kind has
// the one of its list.
func (in *Input) flatten(i item, kind schema.GroupVersionKind) []item {
	var h head
	if err := utiljson.Unmarshal(i.json, &h); err != nil {
		in.bad(i.place(), "no object: it has no apiVersion and kind")
		return nil
	}
	version, err := schema.ParseGroupVersion(cmp.Or(h.APIVersion, kind.GroupVersion().String()))
	h.Kind = cmp.Or(h.Kind, kind.Kind)
	switch {
	case err != nil:
		in.bad(i.place(), "apiVersion: %v", err)
		return nil
	case h.Kind == "":
		in.bad(i.place(), "no object: kind is missing")
		return nil
	case version.Version == "":
		in.bad(i.place(), "no object: apiVersion is missing")
		return nil
	}
	i.kind = version.WithKind(h.Kind)
	single, list := strings.CutSuffix(h.Kind, "List")
	if !list || (h.Items == nil && single != "") {
		return []item{i}
	}
	if h.Items == nil {
		return nil
	}
	of := schema.GroupVersionKind{}
	if single != "" {
		of = version.WithKind(single)
	}
	return in.each(i, *h.Items, of)
}

// each lists the objects of a list.
func (in *Input) each(list item, raw []*json.RawMessage, kind schema.GroupVersionKind) []item {
	var all []item
	for n, one := range raw {
		path := append(slices.Clone(list.path), "items", fmt.Sprintf("[%d]", n))
		if one == nil {
			in.bad(item{doc: list.doc, path: path}.place(), "no object: it is null")
			continue
		}
		all = append(all, in.flatten(item{doc: list.doc, path: path, json: *one}, kind)...)
	}
	return all
}

// decode makes an object of an item; nil where that fails.
func (in *Input) decode(i item) *Object {
	if i.kind.Group == "kustomize.config.k8s.io" {
		in.note(i.place(), "%s is for kustomize and no object: it is left out", i.kind.Kind)
		return nil
	}
	if !in.kinds.scheme.Recognizes(i.kind) && in.kinds.scheme.IsGroupRegistered(i.kind.Group) {
		in.bad(i.place(), "%s: Kubernetes has no such kind in %s", i.title(), i.kind.GroupVersion())
		return nil
	}
	value, strict, err := in.kinds.parse(i)
	if err != nil {
		in.blame(i, err)
		return nil
	}
	meta, ok := value.(metav1.Object)
	if !ok {
		in.bad(i.place(), "%s is no object with metadata", i.kind.Kind)
		return nil
	}
	o := &Object{Kind: i.kind, Namespace: meta.GetNamespace(), Names: []string{meta.GetName()}, Value: value, item: i}
	if meta.GetName() == "" {
		if meta.GetGenerateName() == "" {
			in.bad(i.place(), "%s: metadata.name is missing", i.kind.Kind)
			return nil
		}
		o.Names[0] = fmt.Sprintf("%s*%d", meta.GetGenerateName(), in.kinds.generated) // the name of no other object
		in.kinds.generated++
	}
	for _, problem := range strict {
		in.note(i.lineOf(fieldOf(problem)), "%s: %v: it is not counted", o, problem)
	}
	return o
}

// fieldOf is the field that a problem quotes.
func fieldOf(problem error) string {
	_, rest, _ := strings.Cut(problem.Error(), `"`)
	field, _, _ := strings.Cut(rest, `"`)
	return field
}

// parse decodes an item into the type of its kind where that is built in. What
// a server would only take with a warning is no error.
func (k *kinds) parse(i item) (value runtime.Object, strict []error, err error) {
	if !k.scheme.Recognizes(i.kind) {
		unknown := &unstructured.Unstructured{}
		if err := utiljson.Unmarshal(i.json, &unknown.Object); err != nil {
			return nil, nil, err
		}
		unknown.SetGroupVersionKind(i.kind)
		return unknown, nil, metadata(unknown)
	}
	value, _, err = k.decoder.Decode(i.json, &i.kind, nil)
	if problems, ok := runtime.AsStrictDecodingError(err); ok && value != nil {
		strict, err = problems.Errors(), nil
	}
	if err != nil {
		return nil, nil, err
	}
	value.GetObjectKind().SetGroupVersionKind(i.kind)
	return value, strict, nil
}

// metadata checks that an object of any kind has metadata as all have.
func metadata(value *unstructured.Unstructured) error {
	found, ok := value.Object["metadata"]
	if !ok || found == nil {
		return nil
	}
	fields, ok := found.(map[string]any)
	if !ok {
		return fmt.Errorf("metadata is a %T: want an object", found)
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &metav1.ObjectMeta{})
}
