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
	// Notes are paragraphs below the charts: method and limits of the measurement.
	Notes    []string
	Verdicts []Verdict
	Tables   []Table
	// Scatter is beside the first chart; nil for none.
	Scatter *Scatter
	Charts  []Chart
}

// Verdict is a limit and its measurement, as texts with units.
type Verdict struct {
	Name, Limit, Measured string
	Met                   bool
	// Unknown is why it could not be measured: then neither Measured nor Met counts.
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

// NewTable is a table of cells below the names of the columns. All columns but the first one and those of texts are
// numeric.
func NewTable(caption string, cells [][]string, texts ...int) Table {
	t := Table{Caption: caption, Rows: cells[1:]}
	for i, name := range cells[0] {
		t.Columns = append(t.Columns, Column{Name: name, Numeric: i > 0 && !slices.Contains(texts, i)})
	}
	return t
}

// Chart is curves over one time axis. Charts of the same start share cursor and zoom.
type Chart struct {
	Title string `json:"title"`
	Unit  string `json:"unit"`
	// Start is the time at 0 seconds, shown in UTC. If zero, the axis has the time since the start.
	Start time.Time `json:"-"`
	// Objective is the end of a band from 0, in which values should be; nil for none.
	Objective *float64 `json:"objective"`
	// Panels has a small chart for each series, with the first one in each; all have the same scale.
	Panels bool `json:"panels"`
	// Series begin with the one in colour. The others are grey.
	Series []Series `json:"series"`
}

// Series is a curve of points in the order of time. Of very many points, the curve has the extremes of each run.
type Series struct {
	Name    string    `json:"name"`
	Seconds []float64 `json:"seconds"`
	// Values has one for each of Seconds. Nil is unknown, a gap in the curve.
	Values []*float64 `json:"values"`
	// Step keeps a value until the next one, for counts; otherwise lines join values.
	Step bool `json:"step"`
}

// Known are values without a gap.
func Known(values ...float64) []*float64 {
	known := make([]*float64, len(values))
	for i, value := range values {
		known[i] = &value
	}
	return known
}

// eachSecond is a curve of a value for each second from 0 on.
func eachSecond[T int32 | float64](name string, values []T) Series {
	s := Series{Name: name}
	for at, value := range values {
		s.Seconds, s.Values = append(s.Seconds, float64(at)), append(s.Values, new(float64(value)))
	}
	return s
}

// rateWindow in seconds averages out the jitter of a busy machine.
const rateWindow = 3

// Rate is the mean growth of a count each second, over some seconds, at the middle of those. The count is 0 at 0
// seconds.
func Rate(name string, seconds, counts []float64) Series {
	s := Series{Name: name}
	seconds, counts = append([]float64{0}, seconds...), append([]float64{0}, counts...)
	first := 0
	for i, at := range seconds {
		for first < i && at-seconds[first+1] >= rateWindow {
			first++
		}
		if elapsed := at - seconds[first]; elapsed > 0 {
			s.Seconds = append(s.Seconds, (at+seconds[first])/2)
			s.Values = append(s.Values, new((counts[i]-counts[first])/elapsed))
		}
	}
	return s
}

// check returns what the page cannot show.
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
	if p.Scatter != nil && len(p.Charts) == 0 {
		return errors.New("a scatter is beside the first chart: add a chart")
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
		return fmt.Errorf("value %d is %v: use nil for unknown", i+1, *s.Values[i])
	}
	return nil
}

func isFinite(value float64) bool { return !math.IsNaN(value) && !math.IsInf(value, 0) }
