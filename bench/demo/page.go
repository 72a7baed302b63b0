// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strconv"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/figure"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"
)

// page returns the charts with their values, and the summary.
func (p picture) page(s summary) page.Page {
	reached := page.Verdict{Name: "scale-up", Limit: "after the load has stepped up", Measured: "none"}
	if s.ReactionSeconds != nil {
		reached.Measured, reached.Met = "after "+seconds(s.ReactionSeconds), true
	}
	return page.Page{
		Title: p.title, Summary: p.subtitle,
		Verdicts: []page.Verdict{
			reached,
			{
				Name: "scale-down", Limit: "1 replica at the end",
				Measured: strconv.Itoa(s.ReplicasLast), Met: s.ReplicasLast == 1,
			},
			{
				Name: "messages processed", Limit: "all of " + strconv.FormatInt(s.MessagesPublished, 10),
				Measured: strconv.FormatInt(s.MessagesDone, 10), Met: s.MessagesDone >= s.MessagesPublished,
			},
		},
		Tables: []page.Table{{
			Caption: "Cost and delay",
			Columns: []page.Column{{Name: "measured"}, {Name: "value", Numeric: true}},
			Rows: [][]string{
				{"late messages", share(s.MessagesLate, s.MessagesDone)},
				{"median latency, from publication to the end of processing", seconds(s.WaitP50Seconds)},
				{"p99 latency, from publication to the end of processing", seconds(s.WaitP99Seconds)},
				{"replica-seconds", strconv.FormatFloat(s.ReplicaSeconds, 'f', 0, 64)},
				{"most replicas", strconv.Itoa(s.ReplicasMax)},
			},
		}},
		Charts: []page.Chart{
			chart("Load", "messages/s", p.rates(), false),
			chart("Backlog", "messages", p.backlog(), false),
			chart("Replicas", "", p.replicas(), true),
		},
		Notes: []string{
			"Messages are counted at the publisher and at the replicas. " + p.scenario.pace(),
		},
	}
}

// html returns the page as a file.
func (p picture) html(s summary) ([]byte, error) {
	var out bytes.Buffer
	err := p.page(s).Write(&out)
	return out.Bytes(), err
}

// chart has the curves of a panel of the plot.
func chart(title, unit string, panel figure.Panel, isStep bool) page.Chart {
	c := page.Chart{Title: title, Unit: unit}
	for _, curve := range panel.Curves {
		series := page.Series{Name: curve.Name, Step: isStep}
		for _, point := range curve.Points {
			series.Seconds = append(series.Seconds, point.X)
			series.Values = append(series.Values, &point.Y)
		}
		c.Series = append(c.Series, series)
	}
	return c
}
