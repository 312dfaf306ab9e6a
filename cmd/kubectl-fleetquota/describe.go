package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

func newDescribe(s *shell) *cobra.Command {
	return &cobra.Command{
		Use:   "describe NAMESPACE/NAME",
		Short: "Show one global quota in full: each resource, member, condition and event",
		Long: `Shows one global quota in full: each resource, what each member uses of it, the
conditions, and the events. With -n the namespace can be left out of the name.
Of a large fleet it shows the members that are not live or use most.

A number with "last known" is not current: the member does not answer, or the
resource cannot be counted there now. PLANNED is what a member shall have and
does not have yet; kubectl fleetquota why says what it waits for.`,
		Example: `  kubectl fleetquota describe team-a/compute
  kubectl fleetquota describe compute -n team-a`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: s.completeQuotaPaths,
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.describe(cmd.Context(), args[0])
		},
	}
}

func (s *shell) describe(ctx context.Context, arg string) error {
	namespace, name, err := s.quotaName(arg)
	if err != nil {
		return err
	}
	hub, err := s.hub()
	if err != nil {
		return err
	}
	found, err := oneQuota(ctx, hub, namespace, name)
	if err != nil {
		return err
	}
	quota := found.items[0]
	d := &description{}
	s.describeHead(d, quota)
	describeResources(d, quota)
	s.describeMembers(d, quota)
	describeConditions(d, quota)
	events, err := s.events(ctx, quota)
	s.describeEvents(d, events, err)
	_, err = fmt.Fprint(s.Out, d.text.String())
	return err
}

// quotaName reads NAMESPACE/NAME, or NAME in the namespace of the flags.
func (s *shell) quotaName(arg string) (namespace, name string, err error) {
	namespace, name, both := strings.Cut(arg, "/")
	if !both {
		name = arg
		namespace, err = s.namespace()
		return namespace, name, err
	}
	if flag := *s.flags.Namespace; flag != "" && flag != namespace {
		return "", "", fmt.Errorf("%s is not in the namespace %s of -n: leave one of them out", arg, flag)
	}
	if namespace == "" || name == "" || strings.Contains(name, "/") {
		return "", "", fmt.Errorf("%q is no global quota: use NAMESPACE/NAME", arg)
	}
	return namespace, name, nil
}

func (s *shell) describeHead(d *description, quota *v1alpha1.FleetQuota) {
	d.fields(
		[]string{"Name:", quota.Name},
		[]string{"Namespace:", quota.Namespace},
		[]string{"Labels:", orNone(labels.FormatLabels(quota.Labels))},
		[]string{"Mode:", modeInWords(quota.Spec.Distribution)},
		[]string{"Scopes:", scopes(&quota.Spec)},
		[]string{"Members:", selector(quota.Spec.ClusterSelector)},
		[]string{"Stale policy:", orNone(string(quota.Spec.StalePolicy))},
		[]string{"Clusters live:", clustersLive(quota.Status.Summary)},
		[]string{"Age:", age(s.now(), quota.CreationTimestamp)},
	)
	if quota.Status.ObservedGeneration < quota.Generation {
		d.line("The hub has not taken up the latest spec yet: what follows is of generation %d of %d.",
			quota.Status.ObservedGeneration, quota.Generation)
	}
}

func modeInWords(distribution *v1alpha1.Distribution) string {
	switch {
	case distribution == nil:
		return "observe only"
	case distribution.Paused:
		return string(distribution.Mode) + " (paused: shares are planned, none is written)"
	default:
		return string(distribution.Mode)
	}
}

func scopes(spec *v1alpha1.FleetQuotaSpec) string {
	var all []string
	for _, scope := range spec.Scopes {
		all = append(all, string(scope))
	}
	if spec.ScopeSelector != nil {
		for _, e := range spec.ScopeSelector.MatchExpressions {
			text := string(e.ScopeName) + " " + string(e.Operator)
			if len(e.Values) > 0 {
				text += " (" + strings.Join(e.Values, ", ") + ")"
			}
			all = append(all, text)
		}
	}
	return orNone(strings.Join(all, ", "))
}

func selector(s *metav1.LabelSelector) string {
	if s == nil {
		return "all"
	}
	return orNone(metav1.FormatLabelSelector(s))
}

func clustersLive(summary *v1alpha1.Summary) string {
	if summary == nil {
		return unknown
	}
	return fmt.Sprintf("%d of %d", summary.Live, summary.Members)
}

func describeResources(d *description, quota *v1alpha1.FleetQuota) {
	all := amounts(quota)
	if len(all) == 0 {
		d.line("No resource is limited.")
		return
	}
	rows := make([][]string, 0, len(all))
	var notes []string
	for _, a := range all {
		granted := valueIn(quota.Status.Granted, a.resource)
		rows = append(rows, []string{string(a.resource), a.usedText(), a.hard.String(), a.percent(), a.state(), granted})
		if len(a.missing) > 0 && a.used != nil {
			notes = append(notes, fmt.Sprintf("%s: used is without %s, whose use is unknown.", a.resource, few(a.missing)))
		}
	}
	d.table("", []string{"Resource", "Used", "Hard", "Used%", "State", "Granted"}, rows)
	for _, note := range notes {
		d.line("%s", note)
	}
}

// describeMembers has a row per member and resource: a row per member would
// be too wide, and what one looks for is one number.
func (s *shell) describeMembers(d *description, quota *v1alpha1.FleetQuota) {
	rows, more := worstMembers(quota, func(member *v1alpha1.ClusterUsage) [][]string {
		return s.memberRows(member, amounts(quota))
	})
	d.table("Members", []string{"Member", "Phase", "Last observed", "Reason", "Resource", "Used", "Granted", "Planned"}, rows)
	for _, line := range more {
		d.line("%s", line)
	}
}

func (s *shell) memberRows(member *v1alpha1.ClusterUsage, all []amount) [][]string {
	observed := "live"
	if member.LastObservedTime != nil {
		observed = age(s.now(), *member.LastObservedTime) + " ago"
	} else if member.Phase == v1alpha1.NeverSynced {
		observed = "never"
	}
	head := []string{member.Name, string(member.Phase), observed, orNone(member.Reason)}
	if len(all) == 0 {
		return [][]string{append(head, none, none, none, none)}
	}
	rows := make([][]string, 0, len(all))
	for _, a := range all {
		rows = append(rows, append(slices.Clone(head),
			string(a.resource), memberUse(member, a.resource), valueIn(member.Granted, a.resource), valueIn(member.Planned, a.resource)))
		head = []string{"", "", "", ""}
	}
	return rows
}

// valueIn is one resource of a list, if that has it.
func valueIn(list corev1.ResourceList, resource corev1.ResourceName) string {
	if q, ok := list[resource]; ok {
		return q.String()
	}
	return none
}

// memberUse is what a member uses of one resource, and whether that is current.
func memberUse(member *v1alpha1.ClusterUsage, resource corev1.ResourceName) string {
	used, known := member.Used[resource]
	switch {
	case !known:
		return unknown
	case isLast(member, resource):
		return used.String() + " (last known)"
	default:
		return used.String()
	}
}

func describeConditions(d *description, quota *v1alpha1.FleetQuota) {
	var rows [][]string
	for _, c := range quota.Status.Conditions {
		rows = append(rows, []string{c.Type, string(c.Status), orNone(c.Reason), c.Message})
	}
	d.table("Conditions", []string{"Type", "Status", "Reason", "Message"}, rows)
}

// events are those about the quota, the latest last.
func (s *shell) events(ctx context.Context, quota *v1alpha1.FleetQuota) ([]eventsv1.Event, error) {
	core, err := s.hubCore()
	if err != nil {
		return nil, err
	}
	list, err := core.EventsV1().Events(quota.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("regarding.uid", string(quota.UID)).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	slices.SortStableFunc(list.Items, func(a, b eventsv1.Event) int {
		aTime, _ := lastSeen(&a)
		bTime, _ := lastSeen(&b)
		return aTime.Compare(bTime.Time)
	})
	return list.Items, nil
}

// describeEvents ends the description. That events cannot be read, takes
// nothing from the rest.
func (s *shell) describeEvents(d *description, events []eventsv1.Event, err error) {
	if err != nil {
		d.line("Events:  %s (%v)", unknown, errors.Unwrap(err))
		return
	}
	var rows [][]string
	for i := range events {
		event := &events[i]
		at, count := lastSeen(event)
		when := age(s.now(), at)
		if count > 1 {
			when += fmt.Sprintf(" (x%d)", count)
		}
		rows = append(rows, []string{event.Type, event.Reason, when, cmp.Or(event.ReportingController, event.DeprecatedSource.Component), event.Note})
	}
	d.table("Events", []string{"Type", "Reason", "Age", "From", "Message"}, rows)
}

// lastSeen is when an event was last seen, and how often.
func lastSeen(event *eventsv1.Event) (metav1.Time, int32) {
	switch {
	case event.Series != nil:
		return metav1.Time{Time: event.Series.LastObservedTime.Time}, event.Series.Count
	case !event.DeprecatedLastTimestamp.IsZero():
		return event.DeprecatedLastTimestamp, event.DeprecatedCount
	case !event.EventTime.IsZero():
		return metav1.Time{Time: event.EventTime.Time}, 1
	default:
		return event.CreationTimestamp, 1
	}
}

// description is text in the manner of kubectl describe.
type description struct {
	text strings.Builder
}

// line adds a line of text.
func (d *description) line(format string, args ...any) {
	d.text.WriteString(printers.EscapeTerminal(fmt.Sprintf(format, args...)) + "\n")
}

// fields adds names and values in two columns.
func (d *description) fields(pairs ...[]string) {
	d.rows("", pairs)
}

// table adds a table under its title; with no rows the title says so.
func (d *description) table(title string, head []string, rows [][]string) {
	indent := ""
	if title != "" {
		indent = "  "
		if len(rows) == 0 {
			d.line("%s:  %s", title, none)
			return
		}
		d.line("%s:", title)
	}
	rule := make([]string, 0, len(head))
	for _, name := range head {
		rule = append(rule, strings.Repeat("-", len(name)))
	}
	d.rows(indent, append([][]string{head, rule}, rows...))
}

// rows adds aligned columns; no line ends in blanks.
func (d *description) rows(indent string, rows [][]string) {
	var text strings.Builder
	aligned := printers.GetNewTabWriter(&text)
	for _, cells := range rows {
		clean := make([]string, 0, len(cells))
		for _, cell := range cells {
			clean = append(clean, printers.EscapeTerminal(strings.Join(strings.Fields(cell), " ")))
		}
		fmt.Fprintln(aligned, indent+strings.Join(clean, "\t"))
	}
	_ = aligned.Flush() // into memory
	for line := range strings.Lines(text.String()) {
		d.text.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
}
