// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// goal is a bound for our controller.
type goal struct {
	name     string
	measured quantity
	// atMost, or below it if strict.
	atMost float64
	strict bool
}

// met is for measured goals only.
func (g goal) met() bool {
	if g.strict {
		return g.measured.known && g.measured.value < g.atMost
	}
	return g.measured.known && g.measured.value <= g.atMost
}

// The names of the sets, which have their own goals.
const (
	suiteName   = "suite"
	heldOutName = "held-out"
)

// goals of our controller on a set: none if it did not run, and none on a recorded load.
func (s summary) goals() []goal {
	ours, ok := s.find(capacityName)
	if !ok {
		return nil
	}
	switch s.name {
	case suiteName:
		_, worst := s.worstPathology(ours)
		return []goal{
			{name: "worst cost/oracle of the pathologies", measured: worst, atMost: 1.5},
			{name: "steps after a step of the load", measured: ours.whole.StepsAfterStep, atMost: 2},
		}
	case heldOutName:
		keda, _ := s.find(kedaName)
		simple, _ := s.find(simpleName)
		return []goal{
			{name: "cost/oracle", measured: ours.whole.CostOverOracle, atMost: 1.15},
			{name: "avoidable late pp", measured: ours.whole.AvoidableLate, atMost: 0.4},
			{name: "flaps / those of " + kedaName, measured: ours.whole.Flaps.over(keda.whole.Flaps), atMost: 0.1},
			{name: "actions / those of " + kedaName, measured: ours.whole.Actions.over(keda.whole.Actions), atMost: 0.3},
			{name: "late % - that of " + simpleName, measured: ours.whole.LatePercent.minus(simple.whole.LatePercent)},
			{
				name: "cost / that of " + simpleName, measured: ours.whole.CostOverOracle.over(simple.whole.CostOverOracle),
				atMost: 1, strict: true,
			},
		}
	default:
		return nil
	}
}

func goalRows(goals []goal) [][]string {
	rows := [][]string{{"goal", "bound", "measured", "met"}}
	for _, g := range goals {
		sign, met := "<=", "no"
		if g.strict {
			sign = "<"
		}
		switch {
		case !g.measured.known:
			met = "unknown"
		case g.met():
			met = "yes"
		}
		rows = append(rows, []string{g.name, fmt.Sprintf("%s %.4g", sign, g.atMost), g.measured.text("%.3f"), met})
	}
	return rows
}
