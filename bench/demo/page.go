// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strconv"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"
)

// title is the verdict.
func (s summary) title() string {
	if s.verdict() != nil {
		return "Replicas did not follow the load, or messages were not processed"
	}
	return output.Verdict(s.ObjectiveSeconds,
		float64(s.MessagesLate)/float64(max(1, s.MessagesDone)), s.ReplicaSeconds,
		float64(s.ReplicasMax)*s.DurationSeconds, strconv.Itoa(s.ReplicasMax)+" replicas all the time")
}

// page returns the charts with their values, and the summary.
func (s summary) page(played scenario) page.Page {
	reached := page.Verdict{Name: "scale-up", Limit: "after the load has stepped up", Measured: "none"}
	if s.ReactionSeconds != nil {
		reached.Measured, reached.Met = "after "+seconds(s.ReactionSeconds), true
	}
	return page.Page{
		Title: s.title(),
		Summary: fmt.Sprintf("The load of a Pulsar Function is %.0f, %.0f and again %.0f messages/s. The policy adds "+
			"replicas %s after the step up. Real Pulsar %s, real Kubernetes %s.", played.low, played.high, played.low,
			seconds(s.ReactionSeconds), s.PulsarVersion, s.KubernetesVersion),
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
		Charts: s.charts(),
		Notes: []string{
			"Messages are counted at the publisher and at the replicas. " + played.pace(),
		},
	}
}
