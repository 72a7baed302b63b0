// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"gonum.org/v1/plot/plotter"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/figure"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
)

// render draws a result as a PNG: the load, the backlog and the replicas, real and simulated.
func render(r result) ([]byte, error) {
	dashes, dots := []float64{5, 3}, []float64{1.5, 2}
	t := r.Trace
	image, err := figure.Figure{
		Title: fmt.Sprintf("%s: real and simulated replicas of a Pulsar Function under the same load", r.Name),
		Subtitle: fmt.Sprintf(
			"Replica-hours: %s real, %s simulated. Late: %s %% real, %s %% simulated. Start %s s, %s messages/s per replica.",
			output.Number(r.Real.ReplicaHours, 3), output.Number(r.Sim.ReplicaHours, 3),
			output.Number(r.Real.LatePct, 2), output.Number(r.Sim.LatePct, 2),
			output.Number(r.Measured.StartSeconds, 1), output.Number(r.Measured.CapacityPerReplica, 1)),
		XLabel: "time since the load began (s)", XMax: float64(max(1, r.Seconds-1)), XTick: max(10,
			float64(r.Seconds/100*10)),
		Panels: []figure.Panel{
			{YLabel: "messages per second", Curves: drawn(
				figure.Curve{Name: "load", Points: points(t.Rate), Color: figure.Gray(), Fill: figure.Pale(figure.Gray())})},
			{YLabel: "backlog (messages)", Curves: drawn(
				figure.Curve{
					Name: "real", Points: points(t.RealBacklog), Color: figure.Orange(),
					Fill: figure.Pale(figure.Orange()),
				},
				figure.Curve{Name: "simulated, mean", Points: points(t.SimBacklog), Color: figure.Ink(), Dashes: dashes})},
			{YLabel: "replicas", Curves: drawn(
				figure.Curve{Name: "simulated, most", Points: points(t.SimHigh), Color: figure.Gray(), Dashes: dots, Width: 1},
				figure.Curve{Name: "least", Points: points(t.SimLow), Color: figure.Gray(), Dashes: dots, Width: 1},
				figure.Curve{Name: "mean", Points: points(t.Sim), Color: figure.Ink(), Dashes: dashes},
				figure.Curve{Name: "real", Points: points(t.Real), Color: figure.Blue()})},
		},
	}.PNG()
	if err != nil {
		return nil, fmt.Errorf("drawing %s: %w", r.Name, err)
	}
	return image, nil
}

// drawn returns the curves that have a point.
func drawn(curves ...figure.Curve) []figure.Curve {
	var some []figure.Curve
	for _, c := range curves {
		if len(c.Points) > 0 {
			some = append(some, c)
		}
	}
	return some
}

// points returns the values of each second as points.
func points(values []float64) plotter.XYs {
	all := make(plotter.XYs, len(values))
	for i, v := range values {
		all[i] = plotter.XY{X: float64(i), Y: v}
	}
	return all
}
