package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// rulesAnnotation says of a printed quota by the rules of which version the
// files are counted in it, where that matters.
const rulesAnnotation = v1alpha1.GroupName + "/counted-as"

// The columns of what is left.
const (
	columnLeft = "LEFT"
	columnFits = "FITS"
)

// show prints the answer: tables and a conclusion, or the quota as it would be.
func (a *against) show(conclusions []conclusion) error {
	if a.output == formatJSON || a.output == formatYAML {
		if err := a.showObjects(); err != nil {
			return err
		}
		return printConclusions(a.ErrOut, conclusions)
	}
	if err := a.showFits(); err != nil {
		return err
	}
	fmt.Fprintln(a.Out)
	if err := a.showMembers(); err != nil {
		return err
	}
	return printConclusions(a.Out, conclusions)
}

// showFits prints a row per resource, and where the versions of the members
// differ, for each of those.
func (a *against) showFits() error {
	columns := []column{
		{name: columnResource},
		{name: "WOULD USE"},
		{name: columnUsed},
		{name: "HARD"},
		{name: columnLeft},
		{name: "USED%", wide: true},
		{name: columnFits},
	}
	if len(a.loads) > 1 {
		columns = append(columns, column{name: "MEMBERS"})
	}
	var rows []row
	for i := range a.loads {
		for _, f := range a.fits(&a.loads[i]) {
			cells := []string{string(f.resource), text(f.would), f.usedText(), f.hard.String(), text(f.left()), f.after().percent(), string(f.verdict())}
			if len(a.loads) > 1 {
				cells = append(cells, fmt.Sprintf("%s (%s)", few(a.loads[i].members), a.loads[i].rules))
			}
			rows = append(rows, row{cells: cells})
		}
	}
	if len(rows) == 0 {
		_, err := fmt.Fprintf(a.Out, "%s limits nothing.\n", keyOf(a.global))
		return err
	}
	return newTablePrinter(a.Out, columns, a.tableOptions()).add(rows)
}

func (a *against) tableOptions() printers.PrintOptions {
	return printers.PrintOptions{Wide: a.output == formatWide}
}

// after is the amount as it would be.
func (f *fit) after() amount {
	after := amount{resource: f.resource, hard: f.hard}
	if left := f.left(); left != nil {
		used := f.hard.DeepCopy()
		used.Sub(*left)
		after.used = &used
	}
	return after
}

// text prints a quantity that may not be known.
func text(q *resource.Quantity) string {
	if q == nil {
		return unknown
	}
	return q.String()
}

// showMembers prints what each member uses, and what is left of its grant where
// it has one.
func (a *against) showMembers() error {
	members := a.global.Status.Clusters
	if len(members) == 0 {
		return nil
	}
	columns := []column{{name: "MEMBER"}, {name: "VERSION"}, {name: "PHASE"}, {name: columnResource}, {name: columnUsed}}
	granted := slices.ContainsFunc(members, func(m v1alpha1.ClusterUsage) bool { return len(m.Granted) > 0 })
	if granted {
		columns = append(columns, column{name: "GRANTED"}, column{name: columnLeft}, column{name: columnFits})
	}
	rows, more := worstMembers(a.global, func(member *v1alpha1.ClusterUsage) []row { return a.memberRows(member, granted) })
	if err := newTablePrinter(a.Out, columns, a.tableOptions()).add(rows); err != nil {
		return err
	}
	for _, line := range more {
		fmt.Fprintln(a.Out, line)
	}
	_, err := fmt.Fprintln(a.Out)
	return err
}

// memberRows are a member's rows, one per resource; with grants, also what they
// leave.
func (a *against) memberRows(member *v1alpha1.ClusterUsage, grants bool) []row { //nolint:revive // the columns are those of all members
	l := a.loadOf(member.Name)
	limited := l.grants(member)
	var rows []row
	for _, f := range a.fits(l) {
		cells := []string{
			member.Name, cmp.Or(a.versions[member.Name], unknown), a.phase(member), string(f.resource), memberUse(member, f.resource),
		}
		if grants {
			i := slices.IndexFunc(limited, func(g fit) bool { return g.resource == f.resource })
			if i < 0 {
				cells = append(cells, none, none, none)
			} else {
				cells = append(cells, limited[i].hard.String(), text(limited[i].left()), string(limited[i].verdict()))
			}
		}
		rows = append(rows, row{cells: cells})
	}
	return rows
}

// loadOf is what the files use in a member.
func (a *against) loadOf(member string) *load {
	i := slices.IndexFunc(a.loads, func(l load) bool { return slices.Contains(l.members, member) })
	return &a.loads[max(i, 0)]
}

// phase is a member's phase, and since when its numbers are not current.
func (a *against) phase(member *v1alpha1.ClusterUsage) string {
	if member.LastObservedTime == nil {
		return string(member.Phase)
	}
	return fmt.Sprintf("%s (%s ago)", member.Phase, age(a.now(), *member.LastObservedTime))
}

// printConclusions prints a line for each conclusion.
func printConclusions(out io.Writer, conclusions []conclusion) error {
	for i := range conclusions {
		if _, err := fmt.Fprintln(out, conclusions[i].text(len(conclusions) > 1)); err != nil {
			return err
		}
	}
	return nil
}

// text is the conclusion in words, with the members where it is not of all.
func (x *conclusion) text(partly bool) string { //nolint:revive // one of several conclusions names its members
	words := map[verdict]string{fits: "fits", fitsNot: "does not fit", cannotTell: "cannot tell"}[x.verdict]
	if partly {
		words += " in " + few(x.members)
	}
	switch {
	case x.reason == "":
		return words
	case x.verdict == fits:
		return words + ", " + x.reason
	}
	return words + ": " + x.reason
}

// showObjects prints the quota as it would be; a list of it where the versions
// of the members make a difference.
func (a *against) showObjects() error {
	printer, err := genericclioptions.NewJSONYamlPrintFlags().ToPrinter(strings.ToLower(a.output))
	if err != nil {
		return err
	}
	if len(a.loads) == 1 {
		return printer.PrintObj(a.filled(&a.loads[0]), a.Out)
	}
	list := &metav1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}}
	for i := range a.loads {
		quota := a.filled(&a.loads[i])
		metav1.SetMetaDataAnnotation(&quota.ObjectMeta, rulesAnnotation, a.loads[i].rules)
		list.Items = append(list.Items, runtime.RawExtension{Object: quota})
	}
	return printer.PrintObj(list, a.Out)
}

// filled is the quota as the hub would report it, were what the files use in a
// member of its own. What is not known is absent, as in any status.
func (a *against) filled(l *load) *v1alpha1.FleetQuota {
	quota := a.global.DeepCopy()
	quota.SetGroupVersionKind(v1alpha1.SchemeGroupVersion.WithKind("FleetQuota"))
	quota.ManagedFields = nil
	usage := federation.Usage{}
	if whyNotCounted(quota) == "" {
		usage.Used = quota.Status.DeepCopy().Used
	}
	for name, total := range usage.Used {
		would, known := l.would[name]
		if !known {
			delete(usage.Used, name)
			continue
		}
		total.Add(would)
		usage.Used[name] = total
	}
	after := federation.Report(quota, usage, federation.Enforcement{}, a.time)
	status := &quota.Status
	status.Hard, status.Used = after.Hard, after.Used
	if status.Summary != nil {
		status.Summary.Highest, status.Summary.CPU = after.Summary.Highest, after.Summary.CPU
		status.Summary.Memory, status.Summary.Pods = after.Summary.Memory, after.Summary.Pods
	}
	if within := meta.FindStatusCondition(after.Conditions, v1alpha1.ConditionWithinHard); within != nil {
		meta.SetStatusCondition(&status.Conditions, *within)
	}
	status.Clusters = append(status.Clusters, v1alpha1.ClusterUsage{Name: theFiles, Phase: v1alpha1.Live, Used: l.would})
	return quota
}
