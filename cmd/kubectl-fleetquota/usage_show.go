package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// show prints the quotas, or without any all amounts.
func (o *usageOptions) show(t *tally, answers []filled) error {
	switch {
	case o.output == formatJSON || o.output == formatYAML:
		return o.showObjects(t, answers)
	case len(o.quotaFiles) > 0:
		return o.showQuotas(answers)
	}
	return o.showAmounts(t)
}

// showAmounts prints a row per amount.
func (o *usageOptions) showAmounts(t *tally) error {
	columns := []column{{name: columnNamespace}, {name: columnResource}, {name: columnUsed}, {name: "OBJECTS", wide: true}}
	var rows []row
	for _, u := range t.all() {
		for _, name := range slices.Sorted(maps.Keys(u.used)) {
			used := u.used[name]
			rows = append(rows, row{cells: []string{u.namespace, string(name), used.String(), strconv.Itoa(u.objects[name])}})
		}
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintln(o.ErrOut, "Nothing that quota counts is in the files.")
		return err
	}
	return newTablePrinter(o.Out, columns, printers.PrintOptions{Wide: o.output == formatWide}).add(rows)
}

// showQuotas prints each quota as kubectl describe does.
func (o *usageOptions) showQuotas(answers []filled) error {
	d := &description{}
	for i := range answers {
		a := &answers[i]
		if i > 0 {
			d.line("")
		}
		d.fields(
			[]string{"Name:", a.Names[0]},
			[]string{"Namespace:", a.Namespace},
			[]string{"Kind:", a.Kind.Kind},
			[]string{"Scopes:", a.scopes()},
		)
		d.table("", o.amountHead(), o.amountRows(a))
	}
	_, err := fmt.Fprint(o.Out, d.text.String())
	return err
}

func (o *usageOptions) amountHead() []string {
	head := []string{"Resource", "Used", "Hard", "Used%", "State"}
	if o.output == formatWide {
		head = append(head, "Left")
	}
	return head
}

func (o *usageOptions) amountRows(a *filled) [][]string {
	rows := make([][]string, 0, len(a.amounts))
	for _, x := range a.amounts {
		cells := []string{string(x.resource), x.usedText(), x.hard.String(), x.percent(), x.state()}
		if o.output == formatWide {
			cells = append(cells, x.left())
		}
		rows = append(rows, cells)
	}
	return rows
}

// left is how much of the limit is free; negative where it is exceeded.
func (a amount) left() string {
	if a.used == nil {
		return unknown
	}
	left := a.hard.DeepCopy()
	left.Sub(*a.used)
	return left.String()
}

// scopes are the quota's scopes in words.
func (l *limits) scopes() string {
	if l.global != nil {
		return scopes(&l.global.Spec)
	}
	return scopes(&v1alpha1.FleetQuotaSpec{Scopes: l.local.Spec.Scopes, ScopeSelector: l.local.Spec.ScopeSelector})
}

// showObjects prints API objects: the quotas, or one ResourceQuota for each
// namespace that limits nothing.
func (o *usageOptions) showObjects(t *tally, answers []filled) error {
	printer, err := genericclioptions.NewJSONYamlPrintFlags().ToPrinter(strings.ToLower(o.output))
	if err != nil {
		return err
	}
	if len(answers) == 1 {
		return printer.PrintObj(answers[0].status, o.Out)
	}
	list := &metav1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: []runtime.RawExtension{}}
	for i := range answers {
		list.Items = append(list.Items, runtime.RawExtension{Object: answers[i].status})
	}
	if len(o.quotaFiles) > 0 {
		return printer.PrintObj(list, o.Out)
	}
	for _, u := range t.all() {
		list.Items = append(list.Items, runtime.RawExtension{Object: &corev1.ResourceQuota{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ResourceQuota"},
			ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, Name: "usage"},
			Status:     corev1.ResourceQuotaStatus{Used: u.used},
		}})
	}
	return printer.PrintObj(list, o.Out)
}
