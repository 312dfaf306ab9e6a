package figure

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"unicode"
)

// Append adds the rows to a file in the format of Go's benchmarks, which
// benchstat compares with another file or, with -col /side, ours with upstream.
// Several runs may go to one file: benchstat then says how much they differ.
func Append(path string, rows []Row) (err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return benchmarks(file, rows)
}

func benchmarks(w io.Writer, rows []Row) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "goos: %s\ngoarch: %s\ncpu: %s\n", runtime.GOOS, runtime.GOARCH, cpu())
	for _, r := range rows {
		line := func(side string, value float64) {
			fmt.Fprintf(out, "Benchmark%s/side=%s 1 %g %s\n", identifier(r.Name), side, value, r.In.benchmark())
		}
		line("ours", r.Ours)
		if r.Upstream != 0 {
			line("upstream", r.Upstream)
		}
	}
	return out.Flush()
}

// identifier is a name without blanks: its words joined, each with a capital.
func identifier(name string) string {
	words := strings.FieldsFunc(name, func(r rune) bool { return r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	var text strings.Builder
	for _, word := range words {
		text.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return text.String()
}
