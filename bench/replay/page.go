// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/page"
)

// page has the load, the backlog and the replicas, real and simulated.
func (r result) page() page.Page {
	t := r.Trace
	return page.Page{
		Title: fmt.Sprintf("%s: real and simulated replicas of a Pulsar Function under the same load", r.Name),
		Summary: fmt.Sprintf(
			"Replica-hours: %s real, %s simulated. Late: %s %% real, %s %% simulated. Start %s s, %s messages/s per replica.",
			output.Number(r.Real.ReplicaHours, 3), output.Number(r.Sim.ReplicaHours, 3),
			output.Number(r.Real.LatePct, 2), output.Number(r.Sim.LatePct, 2),
			output.Number(r.Measured.StartSeconds, 1), output.Number(r.Measured.CapacityPerReplica, 1)),
		Charts: []page.Chart{
			{Title: "Load", Unit: "messages/s", Series: []page.Series{page.EachSecond("load", t.Rate)}},
			{Title: "Backlog", Unit: "messages", Series: []page.Series{
				page.EachSecond("real", t.RealBacklog), page.EachSecond("simulated, mean", t.SimBacklog),
			}},
			{Title: "Replicas", Series: []page.Series{
				page.EachSecond("real", t.Real), page.EachSecond("simulated, mean", t.Sim),
				page.EachSecond("least", t.SimLow), page.EachSecond("most", t.SimHigh),
			}},
		},
	}
}
