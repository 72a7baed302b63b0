// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"sort"
	"strconv"
	"time"
)

// mostRows bounds the table of a chart for readers.
const mostRows = 100

// values are the points of a chart as a table: at regular times, because series may have different ones.
type values struct {
	// Every is the time between rows as text.
	Every string
	Rows  []moment
}

// moment is a row: a value of each series.
type moment struct {
	Time   string
	Values []string
}

// newValues has no rows for a chart without points.
func newValues(chart Chart) values {
	first, last, found := span(chart.Series)
	if !found {
		return values{}
	}
	step := interval(last - first)
	v := values{Every: length(step)}
	for n := math.Floor(first / step); n*step < last+step; n++ {
		at := n * step
		row := moment{Time: elapsed(at)}
		if !chart.Start.IsZero() {
			row.Time = chart.Start.Add(time.Duration(at * float64(time.Second))).UTC().Format("2006-01-02 15:04:05")
		}
		for _, series := range chart.Series {
			row.Values = append(row.Values, series.at(at))
		}
		v.Rows = append(v.Rows, row)
	}
	return v
}

// span is from the first to the last point of all.
func span(all []Series) (first, last float64, found bool) {
	first, last = math.Inf(1), math.Inf(-1)
	for _, s := range all {
		if n := len(s.Seconds); n > 0 {
			first, last, found = min(first, s.Seconds[0]), max(last, s.Seconds[n-1]), true
		}
	}
	return first, last, found
}

// interval is a round time that divides the span into at most mostRows.
func interval(span float64) float64 {
	intervals := []float64{0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200}
	for _, one := range intervals {
		if span/one <= mostRows {
			return one
		}
	}
	const day = 86400
	return day * math.Ceil(span/day/mostRows)
}

// at is the latest value at a time, as a cell: empty before the first point, and after the last of a line.
func (s Series) at(at float64) string {
	const near = 1e-9 // of a time that is a multiple of a tenth
	i := sort.Search(len(s.Seconds), func(i int) bool { return s.Seconds[i] > at+near }) - 1
	switch {
	case i < 0, !s.Step && i == len(s.Seconds)-1 && s.Seconds[i] < at-near:
		return ""
	case s.Values[i] == nil:
		return "unknown"
	}
	return number(*s.Values[i])
}

// length is a round time as text.
func length(seconds float64) string {
	switch {
	case seconds < 60:
		return number(seconds) + " s"
	case seconds < 3600:
		return number(seconds/60) + " min"
	default:
		return number(seconds/3600) + " h"
	}
}

// number has 4 digits, or all before the point.
func number(value float64) string {
	if math.Abs(value) >= 1000 {
		return strconv.FormatFloat(math.Round(value), 'f', 0, 64)
	}
	rounded, err := strconv.ParseFloat(strconv.FormatFloat(value, 'g', 4, 64), 64)
	if err != nil {
		return strconv.FormatFloat(value, 'g', 4, 64)
	}
	return strconv.FormatFloat(rounded, 'f', -1, 64)
}

// elapsed is a time since the start, such as 1:35 or 2:00:00, with tenths where it has them.
func elapsed(seconds float64) string {
	sign := ""
	if seconds < 0 {
		sign = "-"
	}
	tenths := int64(math.Round(math.Abs(seconds) * 10))
	fraction := ""
	if tenths%10 > 0 {
		fraction = fmt.Sprintf(".%d", tenths%10)
	}
	whole := tenths / 10
	if hours := whole / 3600; hours > 0 {
		return fmt.Sprintf("%s%d:%02d:%02d%s", sign, hours, whole/60%60, whole%60, fraction)
	}
	return fmt.Sprintf("%s%d:%02d%s", sign, whole/60, whole%60, fraction)
}
