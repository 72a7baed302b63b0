// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Page is a document. All texts are plain text.
type Page struct {
	Title, Summary string
	// Notes are paragraphs below the charts: how it was measured, and what the numbers cannot tell.
	Notes    []string
	Verdicts []Verdict
	Tables   []Table
	Charts   []Chart
}

// Verdict is a limit and what was measured, as texts with their units.
type Verdict struct {
	Name, Limit, Measured string
	Met                   bool
	// Unknown is the reason when it could not be measured: then neither Measured nor Met counts.
	Unknown string
}

// Table is rows of cells, one for each column. The first cell of a row names it.
type Table struct {
	Caption string
	Columns []Column
	Rows    [][]string
}

// Column heads the cells of a table. Numeric ones are right-aligned.
type Column struct {
	Name, Unit string
	Numeric    bool
}

// Chart is curves over one time axis. Charts of the same start share cursor and zoom.
type Chart struct {
	Title, Unit string
	// Start is the time at 0 seconds, shown in UTC. Where it is zero, the axis has the time since the start.
	Start  time.Time
	Series []Series
}

// Series is a curve of points in the order of time. Of very many, the curve has the least and the largest value of
// each few.
type Series struct {
	Name    string
	Seconds []float64
	// Values have one for each of Seconds. Nil is unknown, a gap in the curve.
	Values []*float64
	// Step keeps a value until the next, as that of a count; otherwise a line joins them.
	Step bool
}

// Known are values without a gap.
func Known(values ...float64) []*float64 {
	known := make([]*float64, len(values))
	for i, value := range values {
		known[i] = &value
	}
	return known
}

// check names what the page cannot show.
func (p Page) check() error {
	if p.Title == "" {
		return errors.New("the page has no title: set Title")
	}
	for _, table := range p.Tables {
		for i, row := range table.Rows {
			if len(row) != len(table.Columns) {
				return fmt.Errorf("row %d of table %q has %d cells: give it one for each of %d columns",
					i+1, table.Caption, len(row), len(table.Columns))
			}
		}
	}
	for _, chart := range p.Charts {
		for _, series := range chart.Series {
			if err := series.check(); err != nil {
				return fmt.Errorf("chart %q, series %q: %w", chart.Title, series.Name, err)
			}
		}
	}
	return nil
}

func (s Series) check() error {
	if len(s.Seconds) != len(s.Values) {
		return fmt.Errorf("%d times for %d values: give each value its time", len(s.Seconds), len(s.Values))
	}
	for i, at := range s.Seconds {
		if !isFinite(at) || i > 0 && at < s.Seconds[i-1] {
			return fmt.Errorf("time %d is %v: sort the points by finite times", i+1, at)
		}
	}
	if i := slices.IndexFunc(s.Values, func(v *float64) bool { return v != nil && !isFinite(*v) }); i >= 0 {
		return fmt.Errorf("value %d is %v: make what is unknown nil", i+1, *s.Values[i])
	}
	return nil
}

func isFinite(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }
