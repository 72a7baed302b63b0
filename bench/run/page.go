// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"strconv"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"
)

// Page returns the result as an HTML page.
func (r Result) Page() page.Page {
	figures := page.NewTable("Contenders on the same load", r.cells())
	figures.Columns[0].Name = "figure"
	p := page.Page{
		Title: r.title(), Summary: r.summary() + ". Verdict: " + r.Verdict.Text() + ".", Notes: r.notes(),
		Tables: []page.Table{figures},
	}
	for _, check := range r.Verdict.Checks {
		v := page.Verdict{Name: check.Name, Limit: check.Limit, Measured: check.Measured, Met: check.Met}
		if r.Verdict.Outcome == NotMeasured {
			v.Unknown = r.Verdict.Reason
		}
		p.Verdicts = append(p.Verdicts, v)
	}
	for _, c := range r.Contenders {
		p.Notes = append(p.Notes, c.Name+": "+c.Setting)
	}
	if len(r.Contenders) > 1 {
		p.Scatter = page.Costs()
		for _, c := range r.Contenders {
			p.Scatter.Add(c.Name, c.Usage.ReplicaHours, c.Messages.LateRatio)
		}
	}
	p.Charts = r.charts()
	return p
}

// title is the verdict, beside the second contender, or else beside the most replicas all the time.
func (r Result) title() string {
	if r.Verdict.Outcome == NotMeasured {
		return "Nothing was measured: " + r.Verdict.Reason
	}
	const hour = 3600
	ours := r.Contenders[0]
	others := float64(ours.Usage.MostReplicas) * (r.LoadSeconds + r.WatchSeconds) / hour
	than := strconv.Itoa(ours.Usage.MostReplicas) + " replicas all the time"
	if len(r.Contenders) > 1 {
		others, than = r.Contenders[1].Usage.ReplicaHours, r.Contenders[1].Name
	}
	return output.Verdict(r.LatencyObjectiveSeconds, ours.Messages.LateRatio, ours.Usage.ReplicaHours, others, than)
}

func (r Result) charts() []page.Chart {
	charts := []page.Chart{
		r.load(),
		r.chart("Ready replicas", "", func(s Sample) *float64 { return number(s.ReadyReplicas) }),
		r.chart("Replicas in the spec", "", func(s Sample) *float64 { return number(s.SpecReplicas) }),
		r.chart("Median latency of each second", "s", func(s Sample) *float64 { return s.P50Seconds }),
		r.chart("Backlog: published without a result", "messages", func(s Sample) *float64 {
			if s.Done == nil {
				return nil
			}
			return new(float64(max(0, s.Published-*s.Done)))
		}),
	}
	charts[3].Objective = &r.LatencyObjectiveSeconds
	for _, chart := range charts[1:3] {
		for j := range chart.Series {
			chart.Series[j].Step = true
		}
	}
	return charts
}

// load is what was published, the same for all contenders, and what the first one processed.
func (r Result) load() page.Chart {
	var seconds, published, known, done []float64
	for _, s := range r.Contenders[0].Samples {
		seconds, published = append(seconds, s.Seconds), append(published, float64(s.Published))
		if s.Done != nil {
			known, done = append(known, s.Seconds), append(done, float64(*s.Done))
		}
	}
	chart := page.Chart{Title: "Load", Unit: "messages/s"}
	if len(done) > 0 {
		chart.Series = append(chart.Series, page.Rate("processed, "+r.Contenders[0].Name, known, done))
	}
	chart.Series = append(chart.Series, page.Rate("published", seconds, published))
	return chart
}

func number(value *int) *float64 {
	if value == nil {
		return nil
	}
	return new(float64(*value))
}

// chart has a curve for each contender over the time since its load began.
func (r Result) chart(title, unit string, value func(Sample) *float64) page.Chart {
	chart := page.Chart{Title: title, Unit: unit, Panels: len(r.Contenders) > 1}
	for _, c := range r.Contenders {
		series := page.Series{Name: c.Name}
		for _, s := range c.Samples {
			series.Seconds = append(series.Seconds, s.Seconds)
			series.Values = append(series.Values, value(s))
		}
		chart.Series = append(chart.Series, series)
	}
	return chart
}
