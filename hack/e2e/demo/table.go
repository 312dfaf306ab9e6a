package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	"github.com/fleetquota/fleetquota/federation"
	"github.com/fleetquota/fleetquota/federation/v1alpha1"
)

// picture is what the demo shows at one moment.
type picture struct {
	quotas  []v1alpha1.FleetQuota
	members []v1alpha1.FleetMember
	problem string   // why the numbers may be old; empty: they are not
	news    []string // what happened last
	hint    []string // what to try next
}

// window is what there is to show it in. The zero value has room for all and
// no colours.
type window struct {
	columns, rows int // 0: no limit
	colors        bool
}

// The states of an amount, in the words of the command line.
const (
	stateOK         = "ok"
	stateAlmostFull = "almost full" // above 90 %
	stateFull       = "full"
	stateExceeded   = "exceeded"
	stateUnknown    = "unknown"
)

// tone is how a cell is coloured; its text says the same.
type tone string

const (
	plain  tone = ""
	strong tone = "1"
	faint  tone = "2"
	red    tone = "31"
	yellow tone = "33"
)

type cell struct {
	text string
	tone tone
}

// text is the picture in a window: at the top the table, at the bottom the
// hint. Where the window is too narrow the quotas become headings, where it is
// too low the rows that say least are left out.
func (p picture) text(w window) string {
	below := p.below(w)
	room := 0
	if w.rows > 0 {
		room = max(minRows, w.rows-1-height(below, w.columns))
	}
	t := p.wide()
	if w.columns > 0 && t.width() > w.columns {
		t = p.narrow()
	}
	lines := t.fit(room, w)
	return strings.Join(append(lines, below...), "\n") + "\n"
}

// minRows of the table are shown even in the lowest window.
const minRows = 3

// below is everything under the table.
func (p picture) below(w window) []string {
	lines := []string{"", p.memberLine(w)}
	if p.problem != "" {
		lines = append(lines, cell{"! " + p.problem, red}.in(w))
	}
	for _, line := range p.news {
		lines = append(lines, cut(line, w.columns))
	}
	if len(p.hint) > 0 {
		lines = append(lines, "")
	}
	return append(lines, p.hint...)
}

// memberLine says how each member is.
func (p picture) memberLine(w window) string {
	parts := make([]string, 0, len(p.members))
	for i := range p.members {
		m := &p.members[i]
		part := cell{text: m.Name + " " + word(m.Status.Phase)}
		if m.Status.Phase != v1alpha1.Live {
			part.tone = yellow
			if last := m.Status.LastContactTime; last != nil {
				part.text += ", last answer " + last.Local().Format("15:04:05")
			}
		}
		parts = append(parts, part.in(w))
	}
	if len(parts) == 0 {
		return "members: none yet"
	}
	return "members: " + strings.Join(parts, " | ")
}

// table is rows in aligned columns.
type table struct {
	rows []row
	gap  int   // blanks between columns
	min  []int // least widths, so that columns stand still as numbers change
}

// row is a line of the table. A lone cell is a heading.
type row struct {
	cells []cell
	dull  bool // may be left out first
}

// wide is the table with a column for everything.
func (p picture) wide() table {
	names := p.columns()
	t := table{gap: 2, min: []int{0, 0, 0, 7, 6, 5, len(stateAlmostFull)}}
	for range names {
		t.min = append(t.min, 7)
	}
	head := []cell{bold("NAMESPACE"), bold("QUOTA")}
	t.rows = []row{{cells: append(head, heads(names)...)}}
	for i := range p.quotas {
		quota := &p.quotas[i]
		for _, key := range slices.Sorted(maps.Keys(quota.Spec.Hard)) {
			cells, state := amountCells(quota, key)
			for _, name := range names {
				cells = append(cells, memberCell(quota, key, name))
			}
			cells = append([]cell{{text: quota.Namespace}, {text: quota.Name}}, cells...)
			t.rows = append(t.rows, row{cells: cells, dull: state == stateOK})
		}
	}
	return t
}

// narrow is the table with the quotas as headings, and with the mark alone
// where a number is not live: the word is in the line of the members.
func (p picture) narrow() table {
	names := p.columns()
	t := table{gap: 1, rows: []row{{cells: heads(names)}}}
	for i := range p.quotas {
		quota := &p.quotas[i]
		t.rows = append(t.rows, row{cells: []cell{bold(quota.Namespace + "/" + quota.Name)}})
		for _, key := range slices.Sorted(maps.Keys(quota.Spec.Hard)) {
			cells, state := amountCells(quota, key)
			cells[0].text = " " + cells[0].text
			for _, name := range names {
				part := memberCell(quota, key, name)
				if before, _, marked := strings.Cut(part.text, "!"); marked {
					part.text = "!" + strings.TrimSpace(before)
				}
				cells = append(cells, part)
			}
			t.rows = append(t.rows, row{cells: cells, dull: state == stateOK})
		}
	}
	return t
}

// columns names the members that have a column: all that are registered, and
// those that a status still tells of.
func (p picture) columns() []string {
	names := map[string]struct{}{}
	for i := range p.members {
		names[p.members[i].Name] = struct{}{}
	}
	for i := range p.quotas {
		for j := range p.quotas[i].Status.Clusters {
			names[p.quotas[i].Status.Clusters[j].Name] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func heads(members []string) []cell {
	cells := []cell{bold("RESOURCE"), bold("USED"), bold("HARD"), bold("USED%"), bold("STATE")}
	for _, name := range members {
		cells = append(cells, bold(strings.ToUpper(name)))
	}
	return cells
}

func bold(text string) cell { return cell{text, strong} }

// amountCells shows one resource of one quota, and says what state it is in.
func amountCells(quota *v1alpha1.FleetQuota, key corev1.ResourceName) (cells []cell, state string) {
	hard := quota.Spec.Hard[key]
	used, state := stateUnknown, stateOf(quota, key)
	if quantity, known := quota.Status.Used[key]; known {
		used = quantity.String()
	}
	share := "-"
	if percent, ok := federation.Percent(quota.Status.Used, quota.Spec.Hard, key); ok {
		share = strconv.FormatInt(percent, 10) + "%"
	}
	emphasis := map[string]tone{stateExceeded: red, stateFull: yellow, stateAlmostFull: yellow, stateUnknown: yellow}[state]
	return []cell{{text: string(key)}, {used, emphasis}, {text: hard.String()}, {share, emphasis}, {state, emphasis}}, state
}

// stateOf says in words how full a limit is.
func stateOf(quota *v1alpha1.FleetQuota, key corev1.ResourceName) string {
	used, known := quota.Status.Used[key]
	hard := quota.Spec.Hard[key]
	if !known {
		return stateUnknown
	}
	switch order := used.Cmp(hard); {
	case order > 0:
		return stateExceeded
	case order == 0 && !hard.IsZero():
		return stateFull
	case used.AsApproximateFloat64() > almostFull*hard.AsApproximateFloat64():
		return stateAlmostFull
	default:
		return stateOK
	}
}

const almostFull = 0.9 // of the limit

// memberCell is one member's part of one amount, marked where it is not live.
func memberCell(quota *v1alpha1.FleetQuota, key corev1.ResourceName, name string) cell {
	i := slices.IndexFunc(quota.Status.Clusters, func(c v1alpha1.ClusterUsage) bool { return c.Name == name })
	if i < 0 {
		return cell{"-", faint} // not selected
	}
	part := &quota.Status.Clusters[i]
	used, known := part.Used[key]
	switch {
	case !known && part.Phase == v1alpha1.NeverSynced:
		return cell{"!never synced", yellow}
	case !known:
		return cell{"!unknown", yellow}
	case part.Phase == v1alpha1.Live || part.Phase == v1alpha1.Partial && !slices.Contains(part.Unknown, key):
		return cell{text: used.String()}
	default:
		return cell{used.String() + " !" + word(part.Phase), yellow}
	}
}

// word is a phase in lower case.
func word(phase v1alpha1.Phase) string {
	switch phase {
	case v1alpha1.NeverSynced:
		return "never synced"
	case "":
		return "new"
	case v1alpha1.Live, v1alpha1.Stale, v1alpha1.Unreachable, v1alpha1.Partial, v1alpha1.Leaving:
	}
	return strings.ToLower(string(phase))
}

// fit makes lines of the rows and leaves out dull ones, from below, until there
// is room.
func (t table) fit(room int, w window) []string {
	widths, rows, left := t.widths(), slices.Clone(t.rows), 0
	if room > 0 && len(rows) > room {
		room-- // for the line that tells of it
		for i := len(rows) - 1; i > 0 && len(rows) > room; i-- {
			if rows[i].dull {
				rows = slices.Delete(rows, i, i+1)
				left++
			}
		}
		rows = withoutEmpty(rows)
		if cramped := len(rows) - room; cramped > 0 {
			rows = rows[:room]
			left += cramped
		}
	}
	lines := make([]string, 0, len(rows)+1)
	for _, r := range rows {
		lines = append(lines, r.line(widths, t.gap, w))
	}
	if left > 0 {
		lines = append(lines, cut(fmt.Sprintf("... %d more rows: make the window higher", left), w.columns))
	}
	return lines
}

// withoutEmpty leaves out headings that nothing follows.
func withoutEmpty(rows []row) []row {
	var kept []row
	for i, r := range rows {
		heading := len(r.cells) == 1
		if heading && (i == len(rows)-1 || len(rows[i+1].cells) == 1) {
			continue
		}
		kept = append(kept, r)
	}
	return kept
}

// widths are those of the columns.
func (t table) widths() []int {
	widths := slices.Clone(t.min)
	for _, r := range t.rows {
		for i, c := range r.cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			if len(r.cells) > 1 {
				widths[i] = max(widths[i], utf8.RuneCountInString(c.text))
			}
		}
	}
	return widths
}

// width is that of the whole table.
func (t table) width() int {
	sum := -t.gap
	for _, width := range t.widths() {
		sum += width + t.gap
	}
	return sum
}

// line is the row, no longer than the window.
func (r row) line(widths []int, gap int, w window) string {
	var text strings.Builder
	left := w.columns
	for i, c := range r.cells {
		padding := 0
		if i < len(r.cells)-1 {
			padding = widths[i] + gap - utf8.RuneCountInString(c.text)
		}
		if w.columns > 0 {
			c.text = cut(c.text, left)
			left -= utf8.RuneCountInString(c.text)
			padding = min(padding, left)
			left -= padding
		}
		text.WriteString(c.in(w) + strings.Repeat(" ", padding))
		if w.columns > 0 && left == 0 {
			break
		}
	}
	return strings.TrimRight(text.String(), " ")
}

// in is the cell in the colours of the window.
func (c cell) in(w window) string {
	if !w.colors || c.tone == plain || c.text == "" {
		return c.text
	}
	return "\x1b[" + string(c.tone) + "m" + c.text + "\x1b[0m"
}

// cut shortens a text to so many columns; 0 is no limit.
func cut(text string, columns int) string {
	if columns <= 0 || utf8.RuneCountInString(text) <= columns {
		return text
	}
	return string([]rune(text)[:columns-1]) + "…"
}

// height is how many rows lines take in a window, which breaks long ones.
func height(lines []string, columns int) int {
	rows := 0
	for _, line := range lines {
		rows++
		if columns > 0 {
			rows += max(0, visible(line)-1) / columns
		}
	}
	return rows
}

// visible is how many columns a line takes, colours aside.
func visible(line string) int {
	count, escaped := 0, false
	for _, r := range line {
		switch {
		case r == '\x1b':
			escaped = true
		case escaped:
			escaped = r != 'm'
		default:
			count++
		}
	}
	return count
}
