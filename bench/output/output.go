// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package output

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"
)

// Unknown represents an unknown number in a table.
const Unknown = "-"

// Printf writes to a person. It drops errors: a closed output must not leave processes behind. A tabwriter keeps its
// error for Flush.
func Printf(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format, args...)
}

// Table writes a title if there is one, rows of cells beginning with the headers, and an empty line. Columns are
// right-aligned.
func Table(out io.Writer, title string, rows [][]string) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		Printf(table, "%s\t\n", strings.Join(row, "\t"))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("formatting the table: %w", err)
	}
	if title != "" {
		title += "\n"
	}
	if _, err := fmt.Fprintf(out, "%s%s\n", title, text.String()); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}

// Columns are rows of cells with so many blanks between left-aligned columns, in the Blocks of a width.
func Columns(rows [][]string, gap, width int) string {
	var text strings.Builder
	for i, block := range Blocks(rows, gap, width) {
		if i > 0 {
			text.WriteByte('\n')
		}
		table := tabwriter.NewWriter(&text, 0, 0, gap, ' ', 0)
		for _, row := range block {
			Printf(table, "%s\n", strings.Join(row, "\t"))
		}
		_ = table.Flush() // a strings.Builder does not fail
	}
	return text.String()
}

// Blocks are the columns of a table in as many tables as a width needs, each with the first column; in one for width 0.
func Blocks(rows [][]string, gap, width int) (blocks [][][]string) {
	first, used := 0, 0
	for column := range rows[0] {
		widest := 0
		for _, row := range rows {
			widest = max(widest, utf8.RuneCountInString(row[column]))
		}
		switch used += gap + widest; {
		case column == 0:
			first, used = widest, widest
			continue
		case blocks == nil || width > 0 && used > width:
			blocks = append(blocks, make([][]string, len(rows)))
			used = first + gap + widest
		}
		block := blocks[len(blocks)-1]
		for i, row := range rows {
			if block[i] == nil {
				block[i] = []string{row[0]}
			}
			block[i] = append(block[i], row[column])
		}
	}
	return blocks
}

// Wrap breaks a text into lines of at most so many columns. The first line begins with first, and the others with next.
// A longer word has a line of its own.
func Wrap(text, first, next string, width int) string {
	var lines []string
	for _, word := range strings.Fields(text) {
		last := len(lines) - 1
		switch {
		case last < 0:
			lines = append(lines, first+word)
		case utf8.RuneCountInString(lines[last])+1+utf8.RuneCountInString(word) > width:
			lines = append(lines, next+word)
		default:
			lines[last] += " " + word
		}
	}
	return strings.Join(lines, "\n")
}

// Number is a cell with the given decimals; nil is unknown.
func Number(value *float64, decimals int) string {
	if value == nil {
		return Unknown
	}
	return strconv.FormatFloat(*value, 'f', decimals, 64)
}

// Whole is a cell of a whole number; nil is unknown.
func Whole[T int | int64](value *T) string {
	if value == nil {
		return Unknown
	}
	return strconv.FormatInt(int64(*value), 10)
}

// JSON writes a value to a file; nothing for an empty path.
func JSON(path string, value any) error {
	if path == "" {
		return nil
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s: %w", filepath.Base(path), err)
	}
	return File(path, append(text, '\n'))
}

// File writes a file that all users may read, and creates its directory.
func File(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("creating the directory of the results: %w", err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil { //nolint:gosec // results are for all users
		return fmt.Errorf("writing the results: %w", err)
	}
	return nil
}

// Quantile is the nearest rank: the least value that at least the share q of all values does not exceed, for q above 0.
// Values missing in sorted count as larger, so the quantile is unknown, false, if too few are known.
func Quantile[T any](sorted []T, of int, q float64) (value T, known bool) {
	rank := max(1, int(math.Ceil(q*float64(of))))
	if rank > len(sorted) {
		return value, false
	}
	return sorted[rank-1], true
}

// Waits are the median, the 99th percentile and the longest of sorted waits in seconds; nil where too few are known.
func Waits(sorted []time.Duration, of int) (p50, p99, longest *float64) {
	seconds := func(q float64) *float64 {
		wait, known := Quantile(sorted, of, q)
		if !known {
			return nil
		}
		return new(wait.Seconds())
	}
	const median, rare, last = 0.5, 0.99, 1
	return seconds(median), seconds(rare), seconds(last)
}
