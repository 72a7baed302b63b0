// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"
)

// Page is the result as a document. Charts show the expected course.
func (r Result) Page() page.Page {
	f := r.Function
	summary := fmt.Sprintf("%s. A replica processes %s messages/s (%s) and starts in %s s (%s). Objective %s, %d to %d "+
		"replicas. %s", r.Load, f.MessagesPerSecond.text("%.4g"), f.MessagesPerSecond.Source, f.StartSeconds.text("%.3g"),
		f.StartSeconds.Source, time.Duration(f.ObjectiveSeconds*float64(time.Second)), f.MinReplicas, f.MaxReplicas,
		r.verdict())
	for _, better := range r.Better {
		summary += " " + better + "."
	}
	p := page.Page{
		Title: "Simulation of a policy with a recorded load", Summary: summary,
		Tables: []page.Table{r.pageTable()}, Charts: r.charts(),
	}
	if text := r.Check.text(); text != "" {
		p.Notes = append(p.Notes, text)
	}
	p.Notes = append(p.Notes, r.Notes...)
	p.Notes = append(p.Notes, "The model does not include bursts within a step of the recording, pods that wait for a "+
		"node, and messages that take longer than others.")
	return p
}

func (r Result) pageTable() page.Table {
	rows := r.rows()
	table := page.Table{Caption: "Contenders", Rows: rows[1:]}
	for i, name := range rows[0] {
		isText := i == 0 || i >= len(rows[0])-2
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
	arrivals := make([]float64, max(1, r.Load.Seconds))
	for at := range arrivals {
		arrivals[at] = r.rate(float64(at))
	}
	charts := []page.Chart{
		{Title: "Arrivals", Unit: "messages/s", Start: start, Series: []page.Series{page.EachSecond("arrivals", arrivals)}},
		{Title: "Replicas", Unit: "replicas", Start: start},
		{Title: "Age of the oldest message", Unit: "s", Start: start},
	}
	for _, o := range r.Contenders {
		replicas := page.EachSecond(o.Name, o.replicas)
		replicas.Step = true
		charts[1].Series = append(charts[1].Series, replicas)
		charts[2].Series = append(charts[2].Series, page.EachSecond(o.Name, o.oldest))
	}
	return charts
}
