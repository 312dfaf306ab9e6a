package figure

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
)

// Output is where a program's figures go, besides the screen.
type Output struct {
	Benchmark string // file that they are added to in the format of Go's benchmarks; empty: none
	Document  string // Markdown file whose table they become; empty: none
}

// Flags defines the flags.
func (o *Output) Flags() {
	flag.StringVar(&o.Benchmark, "benchstat", "", "add the figures to this file too, in the format that benchstat reads")
	flag.StringVar(&o.Document, "document", "", "put the table into this Markdown file too, between its two marks, if all was measured")
}

// Print prints what was measured as one table, with the machine that it was
// measured on and the versions of Kubernetes and of this code.
func (*Output) Print(ctx context.Context, kubernetes string, rows []Row) error {
	fmt.Println(circumstances(ctx, kubernetes))
	fmt.Println()
	return Print(os.Stdout, rows)
}

// Publish puts the same table into the document, if there is one.
func (o *Output) Publish(ctx context.Context, kubernetes string, rows []Row) error {
	if o.Document == "" {
		return nil
	}
	return replace(o.Document, circumstances(ctx, kubernetes), rows)
}

func circumstances(ctx context.Context, kubernetes string) string {
	return Machine(kubernetes) + ", fleetquota " + revision(ctx)
}

// The marks of a document that has a table.
const (
	begins = "<!-- figures: written by make bench -->\n"
	ends   = "<!-- end of figures -->\n"
)

// replace puts the table into a document.
func replace(path, where string, rows []Row) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, found := strings.Cut(string(text), begins)
	_, after, ended := strings.Cut(rest, ends)
	if !found || !ended {
		return fmt.Errorf("put the table into %s: it has no lines %q and %q", path, strings.TrimSpace(begins), strings.TrimSpace(ends))
	}
	return os.WriteFile(path, []byte(before+begins+"\n"+where+".\n\n"+markdown(rows)+"\n"+ends+after), 0o644)
}

// markdown is the rows as a table in Markdown.
func markdown(rows []Row) string {
	var text strings.Builder
	text.WriteString("|  | figure | ours | upstream | ratio | target |\n| --- | --- | ---: | ---: | ---: | --- |\n")
	for _, r := range rows {
		cells := r.cells()
		text.WriteString("| " + strings.Join(cells[:], " | ") + " |\n")
	}
	return text.String()
}
