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
)

// Unknown represents an unknown number in a table.
const Unknown = "-"

// Printf writes to a person. It drops errors: a closed output must not leave processes behind. A tabwriter keeps its
// error for Flush.
func Printf(out io.Writer, format string, args ...any) {
	_, _ = fmt.Fprintf(out, format, args...)
}

// Table writes a title, rows of cells beginning with the headers, and an empty line. Columns are right-aligned.
func Table(out io.Writer, title string, rows [][]string) error {
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, row := range rows {
		Printf(table, "%s\t\n", strings.Join(row, "\t"))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("formatting the table: %w", err)
	}
	if _, err := fmt.Fprintf(out, "%s\n%s\n", title, text.String()); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
}

// Columns writes rows of cells with so many blanks between left-aligned columns.
func Columns(out io.Writer, gap int, rows [][]string) error {
	table := tabwriter.NewWriter(out, 0, 0, gap, ' ', 0)
	for _, row := range rows {
		Printf(table, "%s\n", strings.Join(row, "\t"))
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("writing the table: %w", err)
	}
	return nil
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
