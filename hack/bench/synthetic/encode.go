package synthetic

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// encode makes the bytes of an object in a form.
func (f form) encode(kind schema.GroupVersionKind, obj runtime.Object) (object, error) {
	if f.metadata {
		accessor, err := meta.Accessor(obj)
		if err != nil {
			return object{}, err
		}
		obj = meta.AsPartialObjectMetadata(accessor)
	}
	raw, err := f.bytes(obj)
	if err != nil {
		return object{}, fmt.Errorf("encode a %s: %w", kind.Kind, err)
	}
	return object{kind: f.kindOf(kind), size: len(raw), write: func(dst []byte) []byte { return append(dst, raw...) }}, nil
}

// bytes is an object without its kind.
func (f form) bytes(obj runtime.Object) ([]byte, error) {
	if f.protobuf {
		return obj.(interface{ Marshal() ([]byte, error) }).Marshal() //nolint:errcheck,forcetypeassert // all of Kubernetes' types can
	}
	bare := obj.DeepCopyObject()
	bare.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	raw, err := json.Marshal(bare)
	return bytes.TrimSpace(raw), err
}

// answer sends one object.
func (f form) answer(w http.ResponseWriter, code int, kind schema.GroupVersionKind, obj runtime.Object) {
	o, err := f.encode(kind, obj)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	body := f.appendObject(nil, o)
	if !f.protobuf {
		body = append(body, '\n')
	}
	w.Header().Set("Content-Type", f.contentType())
	w.WriteHeader(code)
	_, _ = w.Write(body) //nolint:errcheck,gosec // the client is gone; no browser reads this
}

// statusKind is the kind of all errors.
func statusKind() schema.GroupVersionKind {
	return schema.GroupVersionKind{Version: "v1", Kind: "Status"}
}

// fail sends an error.
func (f form) fail(w http.ResponseWriter, status metav1.Status) {
	f.metadata = false
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", fmt.Sprint(status.Details.RetryAfterSeconds))
	}
	f.answer(w, int(status.Code), statusKind(), &status)
}
