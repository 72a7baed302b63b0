// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import "github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"

// Page returns the result as an HTML page.
func (r Result) Page() page.Page {
	p := page.Page{
		Title: "Benchmark " + r.Scenario, Summary: r.summary() + ". Verdict: " + r.Verdict.Text() + ".", Notes: r.notes(),
		Tables: []page.Table{r.figures()},
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
	p.Charts = []page.Chart{
		r.chart("Replicas in the spec", "replicas", func(s Sample) *float64 { return number(s.SpecReplicas) }),
		r.chart("Ready replicas", "replicas", func(s Sample) *float64 { return number(s.ReadyReplicas) }),
		r.chart("Published messages without a result", "messages", func(s Sample) *float64 {
			if s.Done == nil {
				return nil
			}
			return new(float64(max(0, s.Published-*s.Done)))
		}),
		r.chart("Median latency of each second", "s", func(s Sample) *float64 { return s.P50Seconds }),
	}
	for i := range p.Charts[:2] {
		for j := range p.Charts[i].Series {
			p.Charts[i].Series[j].Step = true
		}
	}
	return p
}

func number(value *int) *float64 {
	if value == nil {
		return nil
	}
	return new(float64(*value))
}

func (r Result) figures() page.Table {
	cells := r.cells()
	t := page.Table{Caption: "Contenders on the same load", Columns: []page.Column{{Name: "figure"}}, Rows: cells[1:]}
	for _, name := range cells[0][1:] {
		t.Columns = append(t.Columns, page.Column{Name: name, Numeric: true})
	}
	return t
}

// chart has a curve for each contender over the time since its load began.
func (r Result) chart(title, unit string, value func(Sample) *float64) page.Chart {
	chart := page.Chart{Title: title, Unit: unit}
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
