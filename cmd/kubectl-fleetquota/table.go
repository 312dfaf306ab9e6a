package main

import (
	"encoding/csv"
	"io"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/printers"
)

// none is printed for what is known to be absent.
const none = "<none>"

// column is one column of a table.
type column struct {
	name   string
	wide   bool // only with -o wide
	moving bool // changes by itself as time goes by: no reason to print a row again
}

// row is one row of a table. The key says what it is about.
type row struct {
	key   string
	cells []string
}

// tablePrinter prints tables as kubectl does: one head, and columns that stay
// where they are from one print to the next.
type tablePrinter struct {
	columns []column
	printer printers.ResourcePrinter
	out     interface {
		io.Writer
		Flush() error
	}
}

func newTablePrinter(out io.Writer, columns []column, options printers.PrintOptions) *tablePrinter {
	return &tablePrinter{
		columns: columns,
		printer: printers.NewTablePrinter(options),
		out:     printers.GetNewTabWriter(out),
	}
}

// add prints more rows; of none, not even the head.
func (p *tablePrinter) add(rows []row) error {
	table := &metav1.Table{}
	for _, c := range p.columns {
		definition := metav1.TableColumnDefinition{Name: c.name, Type: "string"}
		if c.wide {
			definition.Priority = 1
		}
		table.ColumnDefinitions = append(table.ColumnDefinitions, definition)
	}
	for _, r := range rows {
		cells := make([]any, 0, len(r.cells))
		for _, cell := range r.cells {
			cells = append(cells, cell)
		}
		table.Rows = append(table.Rows, metav1.TableRow{Cells: cells})
	}
	if err := p.printer.PrintObj(table, p.out); err != nil {
		return err
	}
	return p.out.Flush()
}

// printCSV prints all columns and rows as comma-separated values.
func printCSV(out io.Writer, columns []column, rows []row) error {
	writer := csv.NewWriter(out)
	head := make([]string, 0, len(columns))
	for _, c := range columns {
		head = append(head, c.name)
	}
	if err := writer.Write(head); err != nil {
		return err
	}
	for _, r := range rows {
		if err := writer.Write(r.cells); err != nil {
			return err
		}
	}
	writer.Flush()
	return writer.Error()
}

// printed remembers what was last printed under each key.
type printed map[string]string

// changed keeps the rows that differ from what was last printed, other than by
// the passing of time, and remembers them.
func (p printed) changed(columns []column, rows []row) []row {
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool {
		text := fingerprint(columns, r)
		if last, known := p[r.key]; known && last == text {
			return true
		}
		p[r.key] = text
		return false
	})
}

func fingerprint(columns []column, r row) string {
	var text strings.Builder
	for i, cell := range r.cells {
		if !columns[i].moving {
			text.WriteString(cell)
			text.WriteByte(0)
		}
	}
	return text.String()
}

// orNone prints what is absent as such.
func orNone(s string) string {
	if s == "" {
		return none
	}
	return s
}

// orUnknown prints what is not known as such.
func orUnknown(s string) string {
	if s == "" {
		return unknown
	}
	return s
}

// age prints how long ago something was.
func age(now time.Time, since metav1.Time) string {
	if since.IsZero() {
		return unknown
	}
	return duration.HumanDuration(now.Sub(since.Time))
}

// conditionStatus is the status of one condition, unknown where nobody has set it.
func conditionStatus(conditions []metav1.Condition, name string) string {
	for _, c := range conditions {
		if c.Type == name {
			return string(c.Status)
		}
	}
	return unknown
}
