package scene

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// Create creates objects in a namespace; cluster-scoped ones with an empty
// namespace. Their resources are named after their kinds in the usual way.
func (c *Cluster) Create(ctx context.Context, namespace string, objects ...runtime.Object) error {
	for _, object := range objects {
		if err := c.create(ctx, namespace, object); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) create(ctx context.Context, namespace string, object runtime.Object) error {
	kind := object.GetObjectKind().GroupVersionKind()
	if kind.Empty() {
		kinds, _, err := clientgoscheme.Scheme.ObjectKinds(object)
		if err != nil {
			return err
		}
		kind = kinds[0]
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return err
	}
	u := &unstructured.Unstructured{Object: fields}
	u.SetGroupVersionKind(kind)
	resource, _ := meta.UnsafeGuessKindToResource(kind)
	if _, err := c.Dynamic.Resource(resource).Namespace(namespace).Create(ctx, u, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create %s %s at %s: %w", kind.Kind, u.GetName(), c.Name(), err)
	}
	return nil
}

// CreateNamespace makes a namespace unless it exists.
func (c *Cluster) CreateNamespace(ctx context.Context, name string) error {
	err := c.Create(ctx, "", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// Delete deletes one object at once, whatever finalizers it has: the
// controllers that would remove them do not run.
func (c *Cluster) Delete(ctx context.Context, resource schema.GroupVersionResource, namespace, name string) error {
	now := int64(0)
	background := metav1.DeletePropagationBackground
	api := c.Dynamic.Resource(resource).Namespace(namespace)
	if err := api.Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now, PropagationPolicy: &background}); err != nil {
		return err
	}
	_, err := api.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
