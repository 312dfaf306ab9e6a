package main

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
	"github.com/fleetquota/fleetquota/federation/v1alpha1/client"
)

// allResources stands for every resource that a quota limits.
const allResources = "all"

// The orders of --sort-by.
const (
	sortByName = "name"
	sortByUsed = "used"
	sortByHard = "hard"
)

// getOptions are the flags of get.
type getOptions struct {
	*shell

	allNamespaces bool
	selector      string
	resources     []string // empty: one row per quota; else one row per resource
	sortBy        string   // default name
	over          string   // a percentage; empty: everything
	exitCode      bool
	output        string
	watch         bool
	noHeaders     bool

	name  string   // empty: all of them
	limit *big.Rat // over, parsed; nil: everything
}

func newGet(s *shell) *cobra.Command {
	o := &getOptions{shell: s}
	cmd := &cobra.Command{
		Use:   "get [NAME]",
		Short: "Show global quotas and how much of them is used",
		Long: `Shows global quotas: by default one row per quota with the resource that is
used most, with --resource one row per resource.

USED% of a resource is a whole number rounded away from 100: 99.6 % is shown as
99%, 100.2 % as 101%, so that 100% means exactly full. STATE is ok, almost full
(more than 90 %), full (100 %), exceeded (more), or unknown. What the hub does
not know is shown as unknown, never as 0; where it does not know the numbers of
some members, STATE is not ok either.

The exit code is 0, or 1 after an error. With --exit-code it is 2 when something
is above --over, and 1 when that cannot be said because a number is not known.`,
		Example: `  # All global quotas, the fullest first
  kubectl fleetquota get -A --sort-by used

  # CPU and pods of one, as they change
  kubectl fleetquota get compute -n team-a --resource requests.cpu,pods -w

  # Fail a pipeline when more than 80 % of anything is used
  kubectl fleetquota get -A --over 80 --exit-code`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: s.completeQuotas,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.name = args[0]
			}
			if err := o.complete(); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.addFlags(cmd)
	return cmd
}

func (o *getOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "the quotas of all namespaces")
	f.StringVarP(&o.selector, "selector", "l", "", "label selector of quotas")
	f.StringSliceVar(&o.resources, "resource", nil, "one row for each of these resources (requests.cpu,pods,...), or for all")
	f.StringVar(&o.sortBy, "sort-by", sortByName, "name; used: largest USED% first; hard: largest limit first (with --resource)")
	f.StringVar(&o.over, "over", "", "only what is used above so many percent of its limit")
	f.BoolVar(&o.exitCode, "exit-code", false, "exit with 2 when something is above --over")
	f.StringVarP(&o.output, "output", "o", "", "wide, json, yaml, csv (a row per resource) or name")
	f.BoolVarP(&o.watch, "watch", "w", false, "after that, print what changes")
	f.BoolVar(&o.noHeaders, "no-headers", false, "print no column heads")
	completeWords(cmd, "output", formatWide, formatJSON, formatYAML, formatCSV, formatName)
	completeWords(cmd, "sort-by", sortByName, sortByUsed, sortByHard)
}

// complete checks the flags and fills in what follows from them.
func (o *getOptions) complete() error {
	if err := oneOf("output", o.output, "", formatWide, formatJSON, formatYAML, formatCSV, formatName); err != nil {
		return err
	}
	if err := oneOf("sort-by", o.sortBy, sortByName, sortByUsed, sortByHard); err != nil {
		return err
	}
	for _, check := range []func() error{o.checkSelection, o.checkWatch} {
		if err := check(); err != nil {
			return err
		}
	}
	if o.over == "" {
		return nil
	}
	limit, ok := new(big.Rat).SetString(strings.TrimSuffix(o.over, "%"))
	if !ok || limit.Sign() < 0 {
		return fmt.Errorf("--over %q is not a percentage: use a number such as 80", o.over)
	}
	o.limit = limit
	return nil
}

// checkSelection refuses flags that do not go together in one answer.
func (o *getOptions) checkSelection() error {
	switch {
	case o.sortBy == sortByHard && len(o.resources) == 0 && o.output != formatCSV:
		return errors.New("--sort-by hard compares the limits of resources: name them with --resource")
	case o.name != "" && o.allNamespaces:
		return errors.New("a quota has its name in one namespace: use -n NAMESPACE instead of -A")
	case o.name != "" && o.selector != "":
		return errors.New("use a name or a selector, not both")
	case o.exitCode && o.over == "":
		return errors.New("--exit-code needs --over PERCENT")
	}
	return nil
}

// checkWatch refuses what needs an end, in an answer that has none.
func (o *getOptions) checkWatch() error {
	switch {
	case o.exitCode && o.watch:
		return errors.New("--exit-code does not go with --watch: a watch does not end")
	case o.watch && o.output == formatCSV:
		return errors.New("--watch does not go with -o csv")
	}
	return nil
}

func (o *getOptions) run(ctx context.Context) error {
	hub, err := o.hub()
	if err != nil {
		return err
	}
	namespace, err := o.scope()
	if err != nil {
		return err
	}
	show, err := o.view(namespace)
	if err != nil {
		return err
	}
	quotas := o.source(hub, namespace)
	if o.watch {
		return follow(ctx, quotas, show)
	}
	found, err := quotas.list(ctx)
	if err != nil {
		return err
	}
	if err := show.all(found.items); err != nil {
		return err
	}
	return o.verdict(found.items)
}

// scope is the namespace to look in, empty for all.
func (o *getOptions) scope() (string, error) {
	if o.allNamespaces {
		return "", nil
	}
	return o.namespace()
}

// source lists and watches the quotas that the flags select.
func (o *getOptions) source(hub *client.Client, namespace string) source[*v1alpha1.FleetQuota] {
	options := metav1.ListOptions{LabelSelector: o.selector}
	if o.name != "" {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", o.name).String()
	}
	list := func(ctx context.Context) (listing[*v1alpha1.FleetQuota], error) {
		if o.name != "" {
			return oneQuota(ctx, hub, namespace, o.name)
		}
		list, err := hub.Quotas(namespace).List(ctx, options)
		if err != nil {
			return listing[*v1alpha1.FleetQuota]{}, hubError("list global quotas", err)
		}
		return listing[*v1alpha1.FleetQuota]{items: pointers(list.Items), version: list.ResourceVersion}, nil
	}
	return source[*v1alpha1.FleetQuota]{
		list: list,
		watch: func(ctx context.Context, version string) (watch.Interface, error) {
			from := options
			from.ResourceVersion = version
			watcher, err := hub.Quotas(namespace).Watch(ctx, from)
			return watcher, hubError("watch global quotas", err)
		},
	}
}

func oneQuota(ctx context.Context, hub *client.Client, namespace, name string) (listing[*v1alpha1.FleetQuota], error) {
	quota, err := hub.Quotas(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		err = hubError(fmt.Sprintf("read global quota %s/%s", namespace, name), err)
		if apierrors.IsNotFound(err) {
			err = fmt.Errorf("%w: kubectl fleetquota get -A lists those there are", err)
		}
		return listing[*v1alpha1.FleetQuota]{}, err
	}
	return listing[*v1alpha1.FleetQuota]{items: []*v1alpha1.FleetQuota{quota}, version: quota.ResourceVersion}, nil
}

// view is how the flags want quotas shown.
func (o *getOptions) view(namespace string) (*view[*v1alpha1.FleetQuota], error) {
	v := &view[*v1alpha1.FleetQuota]{
		shell: o.shell, format: o.output, kind: "FleetQuota", single: o.name != "",
		empty: "No global quotas found in namespace " + namespace + ".",
		keep:  o.keeps, sort: o.sort,
	}
	if namespace == "" {
		v.empty = "No global quotas found."
	}
	if o.limit != nil {
		v.empty = "Nothing is known to be above " + o.limit.RatString() + " %."
	}
	switch {
	case o.output == formatCSV:
		v.columns, v.rows = csvColumns(), o.csvRows
	case len(o.resources) > 0:
		v.columns, v.rows = o.resourceColumns(), o.resourceRows
	default:
		v.columns, v.rows = o.quotaColumns(), o.quotaRows
	}
	return v, v.complete(printers.PrintOptions{NoHeaders: o.noHeaders})
}

// keeps says whether a quota is to be shown.
func (o *getOptions) keeps(quota *v1alpha1.FleetQuota) bool {
	return o.limit == nil || slices.ContainsFunc(chosen(amounts(quota), o.resources), o.aboveLimit)
}

func (o *getOptions) aboveLimit(a amount) bool { return a.above(o.limit) }

// verdict is the exit code that the quotas deserve, as an error.
func (o *getOptions) verdict(quotas []*v1alpha1.FleetQuota) error {
	if !o.exitCode {
		return nil
	}
	var unsure []string
	for _, quota := range quotas {
		for _, a := range chosen(amounts(quota), o.resources) {
			if a.above(o.limit) {
				return errAbove
			}
			if a.used == nil || len(a.missing) > 0 {
				unsure = append(unsure, fmt.Sprintf("%s of %s/%s", a.resource, quota.Namespace, quota.Name))
			}
		}
	}
	if len(unsure) > 0 {
		return fmt.Errorf("cannot say that nothing is above %s: not all use is known for %s", o.over, few(unsure))
	}
	return nil
}

// oneOf checks the value of a flag.
func oneOf(flag, value string, allowed ...string) error {
	if slices.Contains(allowed, value) {
		return nil
	}
	words := slices.DeleteFunc(slices.Clone(allowed), func(word string) bool { return word == "" })
	return fmt.Errorf("--%s %q is unknown: use %s", flag, value, strings.Join(words, ", "))
}

func pointers[T any](items []T) []*T {
	all := make([]*T, 0, len(items))
	for i := range items {
		all = append(all, &items[i])
	}
	return all
}
