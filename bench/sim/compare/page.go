// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"
)

// mostPoints of a curve: more than a screen shows.
const mostPoints = 1500

// Page is the result as a document. Charts show the expected course.
func (r Result) Page() page.Page {
	f := r.Function
	summary := fmt.Sprintf("%s. A replica processes %s messages/s (%s) and starts in %s s (%s). Objective %s, %d to %d "+
		"replicas. %s", r.Load, f.MessagesPerSecond.text("%.4g"), f.MessagesPerSecond.Source, f.StartSeconds.text("%.3g"),
		f.StartSeconds.Source, time.Duration(f.ObjectiveSeconds*float64(time.Second)), f.MinReplicas, f.MaxReplicas,
		r.verdict())
	p := page.Page{
		Title: "A policy with a recorded load", Summary: summary,
		Tables: []page.Table{r.pageTable()}, Charts: r.charts(),
	}
	p.Notes = append(p.Notes, r.Better...)
	if text := r.Check.text(); text != "" {
		p.Notes = append(p.Notes, text)
	}
	p.Notes = append(p.Notes, r.Notes...)
	p.Notes = append(p.Notes, "The model does not know bursts within a step of the recording, pods that wait for a node, "+
		"and messages that take longer than others.")
	return p
}

func (r Result) pageTable() page.Table {
	rows := r.rows()
	table := page.Table{Caption: "Contenders", Rows: rows[1:]}
	for i, name := range rows[0] {
		isText := i == 0 || i == len(rows[0])-1
		table.Columns = append(table.Columns, page.Column{Name: name, Numeric: !isText})
	}
	return table
}

// charts of the arrivals, the replicas and the oldest message.
func (r Result) charts() []page.Chart {
	var start time.Time
	if r.Load.Start != nil {
		start = *r.Load.Start
	}
	seconds := max(1, r.Load.Seconds)
	step := (seconds + mostPoints - 1) / mostPoints
	arrivals := page.Series{Name: "arrivals"}
	for at := 0; at < seconds; at += step {
		arrivals.Seconds = append(arrivals.Seconds, float64(at))
		arrivals.Values = append(arrivals.Values, page.Known(r.rate(float64(at)))...)
	}
	charts := []page.Chart{
		{Title: "Arrivals", Unit: "messages/s", Start: start, Series: []page.Series{arrivals}},
		{Title: "Replicas", Unit: "replicas", Start: start},
		{Title: "Age of the oldest message", Unit: "s", Start: start},
	}
	for _, o := range r.Contenders {
		charts[1].Series = append(charts[1].Series, curve(o.Name, o.replicas, step, true))
		charts[2].Series = append(charts[2].Series, curve(o.Name, o.oldest, step, false))
	}
	return charts
}

// curve has the largest value of each step: a peak is not left out.
func curve(name string, values []int32, step int, isCount bool) page.Series {
	s := page.Series{Name: name, Step: isCount}
	for from := 0; from < len(values); from += step {
		highest := int32(0)
		for _, value := range values[from:min(from+step, len(values))] {
			highest = max(highest, value)
		}
		s.Seconds = append(s.Seconds, float64(from))
		s.Values = append(s.Values, page.Known(float64(highest))...)
	}
	return s
}
