// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"
)

// Page is the result as a document. Charts show the expected course.
func (r Result) Page() page.Page {
	f := r.Function
	summary := fmt.Sprintf("Load: %s. A replica processes %s messages/s (%s) and starts in %s s (%s). "+
		"%d to %d replicas. %s", r.Load, f.MessagesPerSecond.text("%.4g"), f.MessagesPerSecond.Source,
		f.StartSeconds.text("%.3g"), f.StartSeconds.Source, f.MinReplicas, f.MaxReplicas, r.verdict())
	for _, better := range r.Better {
		summary += " " + better + "."
	}
	p := page.Page{
		Title: r.title(), Summary: summary, Tables: []page.Table{r.pageTable()}, Scatter: r.scatter(), Charts: r.charts(),
	}
	if text := r.Check.text(); text != "" {
		p.Notes = append(p.Notes, text)
	}
	p.Notes = append(p.Notes, r.Notes...)
	p.Notes = append(p.Notes, "A policy on a recorded load, simulated. The model does not include bursts within a step "+
		"of the recording, pods that wait for a node, and messages that take longer than others.")
	return p
}

// title is the verdict, beside the recorded replicas, or KEDA if they are unknown.
func (r Result) title() string {
	ours, other, than := r.Contenders[0], r.Contenders[1], "KEDA's pulsar trigger"
	if last := r.Contenders[len(r.Contenders)-1]; last.Name == Recorded {
		other, than = last, "today"
	}
	return output.Verdict(r.objective(), ours.LateRatio.Expected, ours.ReplicaHours.Expected, other.ReplicaHours.Expected,
		than)
}

func (r Result) objective() time.Duration {
	return time.Duration(r.Function.ObjectiveSeconds * float64(time.Second))
}

// scatter has the expected values.
func (r Result) scatter() *page.Scatter {
	s := &page.Scatter{Title: "Cost and late messages", X: "replica-hours", Y: "late messages, %"}
	for _, o := range r.Contenders {
		s.Points = append(s.Points, page.Point{Name: o.Name, X: o.ReplicaHours.Expected, Y: 100 * o.LateRatio.Expected})
	}
	return s
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

// charts of the load, the replicas, the backlog and the oldest message.
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
		{Title: "Load", Unit: "messages/s", Start: start, Series: []page.Series{page.EachSecond("arrivals", arrivals)}},
		{Title: "Replicas", Start: start, Panels: true},
		{
			Title: "Age of the oldest message", Unit: "s", Start: start, Panels: true,
			Objective: &r.Function.ObjectiveSeconds,
		},
		{Title: "Backlog", Unit: "messages", Start: start, Panels: true},
	}
	for _, o := range r.Contenders {
		replicas := page.EachSecond(o.Name, o.replicas)
		replicas.Step = true
		charts[1].Series = append(charts[1].Series, replicas)
		charts[2].Series = append(charts[2].Series, page.EachSecond(o.Name, o.oldest))
		charts[3].Series = append(charts[3].Series, page.EachSecond(o.Name, o.backlog))
	}
	return charts
}
