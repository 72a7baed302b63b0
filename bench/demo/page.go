// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"

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
		Charts: []page.Chart{p.rates(), p.backlog(), p.replicas()},
		Notes: []string{
			"Messages are counted at the publisher and at the replicas. " + p.scenario.pace(),
		},
	}
}
