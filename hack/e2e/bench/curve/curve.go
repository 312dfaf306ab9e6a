// Package curve keeps how figures grow with a size: as a table of comma-separated
// values, which one program measures and another one draws.
package curve

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
)

// Table is what was measured at each size. The names say the units.
type Table struct {
	Machine string   // that it was measured on
	Size    string   // what grows
	Figures []string // what was measured
	Rows    []Row    // the smallest size first
}

// Row is the figures at one size.
type Row struct {
	Size   float64
	Values []float64 // one for each figure; NaN: not measured
}

// Add adds a size with its figures, of which the last ones may be missing.
func (t *Table) Add(size int, values ...float64) {
	for len(values) < len(t.Figures) {
		values = append(values, math.NaN())
	}
	t.Rows = append(t.Rows, Row{Size: float64(size), Values: values})
}

// comment begins the line that is not of the table: the first one, of the machine.
const comment = '#'

// Write writes a file.
func (t *Table) Write(path string) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := fmt.Fprintf(file, "%c %s\n", comment, t.Machine); err != nil {
		return err
	}
	records := [][]string{append([]string{t.Size}, t.Figures...)}
	for _, row := range t.Rows {
		record := []string{number(row.Size)}
		for _, value := range row.Values {
			record = append(record, number(value))
		}
		records = append(records, record)
	}
	return csv.NewWriter(file).WriteAll(records)
}

// number writes four digits that tell, which is more than a measurement has.
func number(value float64) string {
	const digits = 4
	if math.IsNaN(value) {
		return ""
	}
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(value, 'e', digits-1, 64), 64) //nolint:errcheck // it has just been written
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// Read reads a file that Write has written.
func Read(path string) (t Table, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return t, err
	}
	lines := csv.NewReader(bytes.NewReader(text))
	lines.Comment = comment
	records, err := lines.ReadAll()
	if err != nil {
		return t, fmt.Errorf("read %s: %w", path, err)
	}
	if len(records) == 0 {
		return t, fmt.Errorf("read %s: it is empty", path)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if machine, told := strings.CutPrefix(first, string(comment)+" "); told {
		t.Machine = machine
	}
	t.Size, t.Figures = records[0][0], records[0][1:]
	for i, record := range records[1:] {
		row, err := read(record)
		if err != nil {
			return t, fmt.Errorf("read row %d of %s: %w", i+1, path, err)
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

func read(record []string) (row Row, err error) {
	if row.Size, err = strconv.ParseFloat(record[0], 64); err != nil {
		return row, err
	}
	for _, text := range record[1:] {
		value := math.NaN()
		if text != "" {
			if value, err = strconv.ParseFloat(text, 64); err != nil {
				return row, err
			}
		}
		row.Values = append(row.Values, value)
	}
	return row, nil
}
