// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"math"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/output"
	bench "github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/scenario"
)

// report is replay.json.
type report struct {
	Draws     int          `json:"draws"`
	Scenarios []comparison `json:"scenarios"`
}

// comparison is one contender of a scenario, real and simulated.
type comparison struct {
	Name             string  `json:"name"`
	Contender        string  `json:"contender"`
	Setting          string  `json:"setting"`
	Seconds          int     `json:"seconds"`
	ObjectiveSeconds float64 `json:"objective_seconds"`
	Real             score   `json:"real"`
	// Sim is the mean of the simulated runs, SimLow and SimHigh the extremes of each figure.
	Sim     score `json:"sim"`
	SimLow  score `json:"sim_low"`
	SimHigh score `json:"sim_high"`
	// ReplicaHoursRatio is real over simulated, LateDifference real minus simulated in percentage points.
	ReplicaHoursRatio float64 `json:"replica_hours_ratio"`
	LateDifference    float64 `json:"late_difference_pp"`
	// Within reports whether both differences are within their goals.
	Within bool `json:"within"`
}

const (
	// hoursGoal is the largest difference of replica-hours, as a share, and lateGoal that of late messages in percentage
	// points.
	hoursGoal = 0.15
	lateGoal  = 2.0
)

// compare simulates a contender and compares it with its real run.
func (p played) compare(c scenario.Contender, ran bench.Contender) comparison {
	r := comparison{
		Name: p.result.Scenario, Contender: c.Name, Setting: ran.Setting,
		Seconds: int(p.result.LoadSeconds + p.result.WatchSeconds), ObjectiveSeconds: p.result.LatencyObjectiveSeconds,
		Real: scoreOf(ran),
	}
	r.Sim, r.SimLow, r.SimHigh = p.simulate(c)
	r.ReplicaHoursRatio = r.Real.ReplicaHours / r.Sim.ReplicaHours
	r.LateDifference = r.Real.LatePct - r.Sim.LatePct
	r.Within = math.Abs(r.ReplicaHoursRatio-1) <= hoursGoal && math.Abs(r.LateDifference) <= lateGoal
	return r
}

func (r report) table(out io.Writer) error {
	number := func(value float64, digits int) string { return output.Number(&value, digits) }
	cells := [][]string{{
		"scenario", "contender", "replica-hours", "simulated", "real/sim", "late %", "simulated", "difference", "actions",
		"simulated", "max replicas", "simulated", "within goals",
	}}
	for _, one := range r.Scenarios {
		within := "NO"
		if one.Within {
			within = "yes"
		}
		row := []string{one.Name, one.Contender}
		for i, digits := range []int{3, 2, 0, 0} { // as the figures of a score
			row = append(row, number(*one.Real.figures()[i], digits), fmt.Sprintf("%s (%s..%s)",
				number(*one.Sim.figures()[i], digits), number(*one.SimLow.figures()[i], digits),
				number(*one.SimHigh.figures()[i], digits)))
			switch i {
			case 0:
				row = append(row, number(one.ReplicaHoursRatio, 2))
			case 1:
				row = append(row, number(one.LateDifference, 2))
			}
		}
		cells = append(cells, append(row, within))
	}
	return output.Table(out, fmt.Sprintf("simulated: mean of %d runs (minimum..maximum)", r.Draws), cells)
}
