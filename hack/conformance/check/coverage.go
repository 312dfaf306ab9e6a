package check

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Coverage is how many statements of upstream's evaluators have run, by file.
type Coverage map[string]Part

// Part is the statements of one file.
type Part struct {
	Run, All int
}

// Percent is the part that has run.
func (p Part) Percent() float64 {
	if p.All == 0 {
		return 0
	}
	return 100 * float64(p.Run) / float64(p.All)
}

// Total is the statements of all files.
func (c Coverage) Total() Part {
	var total Part
	for _, part := range c {
		total.Run += part.Run
		total.All += part.All
	}
	return total
}

// String is a line per file, and one for all.
func (c Coverage) String() string {
	var text strings.Builder
	for _, file := range slices.Sorted(maps.Keys(c)) {
		fmt.Fprintf(&text, "%-32s %5.1f %% of %d statements\n", file, c[file].Percent(), c[file].All)
	}
	total := c.Total()
	fmt.Fprintf(&text, "%-32s %5.1f %% of %d statements\n", "all", total.Percent(), total.All)
	return text.String()
}

// ReadCoverage reads what programs have covered whose coverage was written to a
// folder, and leaves the details beside it.
func ReadCoverage(ctx context.Context, folder string) (Coverage, error) {
	profile := filepath.Join(folder, "profile.txt")
	command := exec.CommandContext(ctx, "go", "tool", "covdata", "textfmt", "-i="+folder, "-o="+profile)
	if output, err := command.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("read coverage: %w\n%s", err, output)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		return nil, err
	}
	return parseCoverage(string(text))
}

// parseCoverage reads a coverage profile: after a first line, "file:block
// statements count" for each block.
func parseCoverage(profile string) (Coverage, error) {
	type block struct{ file, place string }
	statements, ran := map[block]int{}, map[block]bool{}
	for line := range strings.Lines(profile) {
		fields := strings.Fields(line)
		if len(fields) != 3 || path.Dir(fields[0]) != evaluators {
			continue
		}
		file, place, _ := strings.Cut(path.Base(fields[0]), ":")
		n, err := strconv.Atoi(fields[1])
		if err != nil {
			return nil, fmt.Errorf("read %q: %w", line, err)
		}
		statements[block{file, place}] = n
		ran[block{file, place}] = ran[block{file, place}] || fields[2] != "0"
	}
	coverage := Coverage{}
	for b, n := range statements {
		part := coverage[b.file]
		part.All += n
		if ran[b] {
			part.Run += n
		}
		coverage[b.file] = part
	}
	return coverage, nil
}
