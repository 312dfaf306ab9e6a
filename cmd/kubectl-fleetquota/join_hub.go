package main

import (
	"context"
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
)

// The Secret that registers a member.
const (
	memberLabel   = "fleetquota.io/member"
	memberValue   = "true"
	kubeconfigKey = "kubeconfig"
)

// store writes the member's credentials to the hub and says what that changed.
// Labels of the Secret that nobody names stay: quotas select members by them.
func (o *joinOptions) store(ctx context.Context, c *connections, token string, dryRun []string) (string, error) {
	data, err := kubeconfig(o.name, o.endpoint, token)
	if err != nil {
		return "", err
	}
	secrets := c.hubCore.CoreV1().Secrets(o.hubNamespace)
	secret, err := secrets.Get(ctx, o.name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		secret = o.newSecret()
		secret.Data = map[string][]byte{kubeconfigKey: data}
		_, err = secrets.Create(ctx, secret, metav1.CreateOptions{FieldManager: fieldManager, DryRun: dryRun})
		return "created", o.storeError(err)
	case err != nil:
		return "", o.storeError(err)
	case secret.Labels[memberLabel] != memberValue:
		return "", fmt.Errorf("the hub has a Secret %s/%s that registers no member: choose another --name", o.hubNamespace, o.name)
	}
	maps.Copy(secret.Labels, o.newSecret().Labels)
	if secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	secret.Data[kubeconfigKey] = data
	_, err = secrets.Update(ctx, secret, metav1.UpdateOptions{FieldManager: fieldManager, DryRun: dryRun})
	return "configured", o.storeError(err)
}

func (o *joinOptions) storeError(err error) error {
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err):
		return fmt.Errorf("the hub has no namespace %s: is this the right context? install the hub with kubectl apply -k deploy/hub", o.hubNamespace)
	case apierrors.IsConflict(err):
		return fmt.Errorf("the Secret %s/%s has just been changed at the hub: run the command again", o.hubNamespace, o.name)
	default:
		return fmt.Errorf("store the credentials in the Secret %s/%s at the hub: %w", o.hubNamespace, o.name, err)
	}
}

// newSecret is the Secret without its contents.
func (o *joinOptions) newSecret() *corev1.Secret {
	labels := maps.Clone(o.labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[memberLabel] = memberValue
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: o.name, Namespace: o.hubNamespace, Labels: labels},
		Type:       corev1.SecretTypeOpaque,
	}
}

// printObjects prints the objects of both sides, with a placeholder for the
// token: as YAML with the side above each, as JSON in one list.
func (o *joinOptions) printObjects(objects []memberObject) error {
	data, err := kubeconfig(o.name, o.endpoint, tokenPlaceholder)
	if err != nil {
		return err
	}
	secret := o.newSecret()
	secret.StringData = map[string]string{kubeconfigKey: string(data)}
	stored, err := plainObject(secret)
	if err != nil {
		return err
	}
	if o.output == formatJSON {
		list := &metav1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
		for _, object := range append(objects, memberObject{stored}) {
			list.Items = append(list.Items, runtime.RawExtension{Object: object.Unstructured})
		}
		return o.printObject(list)
	}
	for _, object := range objects {
		if err := errors.Join(o.heading("in member "+o.name), o.printObject(object.Unstructured)); err != nil {
			return err
		}
	}
	return errors.Join(o.heading("at the hub"), o.printObject(stored))
}

func (o *joinOptions) heading(where string) error {
	_, err := fmt.Fprintf(o.Out, "---\n# %s\n", where)
	return err
}

func (o *joinOptions) printObject(object runtime.Object) error {
	printer, err := genericclioptions.NewJSONYamlPrintFlags().ToPrinter(o.output)
	if err != nil {
		return err
	}
	return printer.PrintObj(object, o.Out)
}
