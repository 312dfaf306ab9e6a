package main

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// The formats of -o. Without one it is a table.
const (
	formatWide = "wide"
	formatJSON = "json"
	formatYAML = "yaml"
	formatCSV  = "csv"
	formatName = "name"
)

// object is an object of our API.
type object interface {
	metav1.Object
	runtime.Object
}

// view shows objects of one kind in one format.
type view[T object] struct {
	*shell

	kind    string
	format  string
	single  bool // asked for by name: an object, not a list of one
	empty   string
	columns []column
	rows    func([]T) []row
	sort    func([]T)
	keep    func(T) bool // what to show

	table   *tablePrinter
	objects printers.ResourcePrinter // for JSON and YAML; else nil
}

// complete makes the printers once the other fields are set.
func (v *view[T]) complete(options printers.PrintOptions) error {
	options.Wide = v.format == formatWide
	v.table = newTablePrinter(v.Out, v.columns, options)
	if v.format != formatJSON && v.format != formatYAML {
		return nil
	}
	var err error
	v.objects, err = genericclioptions.NewJSONYamlPrintFlags().ToPrinter(v.format)
	return err
}

// all shows what a list has found.
func (v *view[T]) all(items []T) error {
	kept := slices.DeleteFunc(slices.Clone(items), func(item T) bool { return !v.keep(item) })
	v.sort(kept)
	switch v.format {
	case formatJSON, formatYAML:
		return v.printList(kept)
	case formatName:
		return v.printNames(kept)
	case formatCSV:
		return printCSV(v.Out, v.columns, v.rows(kept))
	}
	rows := v.rows(kept)
	if len(rows) == 0 {
		_, err := fmt.Fprintln(v.ErrOut, v.empty)
		return err
	}
	return v.table.add(rows)
}

func (v *view[T]) printList(items []T) error {
	if v.single && len(items) == 1 {
		return v.printOne(items[0])
	}
	list := &metav1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.RawExtension{}}
	for _, item := range items {
		list.Items = append(list.Items, runtime.RawExtension{Object: v.plain(item)})
	}
	return v.objects.PrintObj(list, v.Out)
}

func (v *view[T]) printOne(item T) error {
	return v.objects.PrintObj(v.plain(item), v.Out)
}

// plain gives an object the kind that the client has dropped, and drops what
// only servers read.
func (v *view[T]) plain(item T) runtime.Object {
	item.GetObjectKind().SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind(v.kind))
	item.SetManagedFields(nil)
	return item
}

func (v *view[T]) printNames(items []T) error {
	for _, item := range items {
		if _, err := fmt.Fprintf(v.Out, "%s.%s/%s\n", strings.ToLower(v.kind), v1alpha1.GroupName, item.GetName()); err != nil {
			return err
		}
	}
	return nil
}
