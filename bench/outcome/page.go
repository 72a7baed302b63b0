// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"fmt"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/history"
)

const (
	// namedRows have a panel, and their names in the scatter. mostPoints bounds its rows. Both are those with the most
	// late time.
	namedRows, mostPoints = 5, 1000
	// all is the name of the total in pictures.
	all = "all policies"
)

// Page is the report as a document.
func (r Report) Page() page.Page {
	table := page.NewTable("Outcome", r.cells())
	p := page.Page{
		Title: r.Verdict(), Summary: r.period() + ".", Tables: []page.Table{table}, Charts: r.charts(),
	}
	p.Scatter, p.Notes = r.scatter()
	p.Notes = append(append(p.Notes, r.notes()...), method, curves)
	if late := r.late(); len(late) > 0 {
		header := []string{table.Columns[0].Name, "LATE", "WHY"}
		p.Tables = append(p.Tables, page.NewTable("Most late time", append([][]string{header}, late...), 2))
	}
	return p
}

// method explains the columns on the page, and curves its charts.
const (
	method = "MET is the share of the known time in which messages met the latency objective, and LATE the rest. " +
		"SAVED are the replica-hours below the largest number of each day (UTC), if it had run all the time. SINCE " +
		"compares with the mean replicas in mode Recommend or Paused, of policies that were in each mode for a day or " +
		"more; the loads may differ."
	curves = "Load, backlog and replicas are sums of the policies for which they are known, as many as Policies with " +
		"data shows: a change of that number changes the sums. A gap is time in which none was known. Replicas and late " +
		"time are those of policies while they scaled. Backlog is the largest of each hour, or of each 5 minutes in a " +
		"period below a day; load and replicas are the mean."
)

// scatter has the total and the rows, with notes about those that are not in it; nil if none is.
func (r Report) scatter() (s *page.Scatter, notes []string) {
	s = &page.Scatter{
		Title: "Cost and late time", X: "replica-hours, % of each day's peak", Y: "late, % of the time", Names: namedRows + 1,
	}
	if total, known := r.Total.point(all); known {
		s.Points = append(s.Points, total)
	}
	unknown, more := 0, 0
	for _, row := range r.Rows {
		point, known := row.point(row.Name)
		switch {
		case !known:
			unknown++
		case len(s.Points) > mostPoints:
			more++
		default:
			s.Points = append(s.Points, point)
		}
	}
	if unknown > 0 {
		notes = append(notes, fmt.Sprintf("%d of %d rows have no point in the picture of cost and late time: their late "+
			"time or their replicas are unknown.", unknown, len(r.Rows)))
	}
	if more > 0 {
		notes = append(notes, fmt.Sprintf("The picture of cost and late time shows the %d rows with the most late time, and "+
			"leaves out %d.", mostPoints, more))
	}
	if len(s.Points) == 0 {
		return nil, notes
	}
	return s, notes
}

// point has the replica-hours as a share of those at each day's peak, and the share of the time late.
func (r Row) point(name string) (p page.Point, known bool) {
	if r.SavedPercent == nil || r.ObjectiveMetPercent == nil {
		return p, false
	}
	return page.Point{Name: name, X: rounded(100 - *r.SavedPercent), Y: rounded(100 - *r.ObjectiveMetPercent)}, true
}

// charts of all policies, and of the rows with the most late time.
func (r Report) charts() []page.Chart {
	late := page.Chart{Title: "Late time of each day", Unit: "% of the time", Panels: true}
	late.Series = append(late.Series, r.lateDays(all, r.Total))
	for _, row := range r.Rows[:min(len(r.Rows), namedRows)] {
		if row.late() > 0 {
			late.Series = append(late.Series, r.lateDays(row.Name, row))
		}
	}
	charts := []page.Chart{
		{Title: "Load", Unit: "messages/s", Series: []page.Series{
			r.curve("published", func(s history.Step) *float64 { return s.Load }),
		}},
		{Title: "Backlog", Unit: "messages", Series: []page.Series{
			r.curve("ready", func(s history.Step) *float64 { return s.Backlog }),
		}},
		{Title: "Running replicas", Series: []page.Series{
			r.curve("running", func(s history.Step) *float64 { return s.Replicas }),
			r.curve("each day's peak", func(s history.Step) *float64 { return s.Peak }),
		}},
		late,
		{Title: "Policies with data", Series: []page.Series{
			r.curve("scaling, with replicas", func(s history.Step) *float64 { return s.Scaled }),
			r.curve("with load and backlog", func(s history.Step) *float64 { return s.WithLoad }),
		}},
	}
	for i := range charts {
		charts[i].Start = r.From
	}
	return charts
}

// curve has the values of steps; no points if none is known.
func (r Report) curve(name string, value func(history.Step) *float64) page.Series {
	s, isKnown := page.Series{Name: name, Step: true}, false
	for _, step := range r.course {
		s.Seconds = append(s.Seconds, step.Start.Sub(r.From).Seconds())
		s.Values = append(s.Values, value(step))
		isKnown = isKnown || value(step) != nil
	}
	if !isKnown {
		return page.Series{Name: name}
	}
	return s
}

// lateDays has the late share of each day's known time.
func (r Report) lateDays(name string, row Row) page.Series {
	s := page.Series{Name: name, Step: true}
	first := r.From.Truncate(24 * time.Hour)
	for i, o := range row.days {
		s.Seconds = append(s.Seconds, max(0, first.AddDate(0, 0, i).Sub(r.From).Seconds()))
		var late *float64
		if met := met(o); met != nil {
			late = new(rounded(100 - *met))
		}
		s.Values = append(s.Values, late)
	}
	return s
}
