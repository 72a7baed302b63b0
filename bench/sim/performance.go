// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// summary is the performance of controllers on a set.
type summary struct {
	name        string
	controllers []performance
}

// performance of one controller over a set.
type performance struct {
	controller string
	whole      numbers
	// cost over the oracle's and avoidable lateness, bootstrapped over scenarios.
	costInterval, lateInterval interval
	// scenarios that were run, in their order.
	scenarios []scenarioNumbers
}

type scenarioNumbers struct {
	name string
	numbers
}

// score has the fields that external readers of the JSON use.
type score struct {
	// Family is the set of a scenario; empty in the scores of a set.
	Family string `json:"family,omitempty"`
	// CostOverOracle is replica-seconds over the oracle's with the same random numbers; geometric means.
	CostOverOracle quantity `json:"cost_over_oracle"`
	// LatePercent of the messages, and how many percentage points of it are above the oracle's, run by run; means.
	LatePercent   quantity `json:"late_pct"`
	AvoidableLate quantity `json:"avoidable_late_pp"`
	// Flaps and Actions of a run of a scenario, their sums over a set.
	Flaps   quantity `json:"flaps"`
	Actions quantity `json:"actions"`
	// SettleSeconds after a step of the load, the mean of those that settled before the next.
	SettleSeconds quantity `json:"settle_seconds"`
}

// numbers are all reported numbers of a scenario or a set.
type numbers struct {
	score
	// FalseCeilings of all runs, of a scenario and of a set.
	FalseCeilings quantity `json:"false_ceilings"`
	// RedeliveredEach is the messages that a replica held when it was removed or its container ended; means.
	RedeliveredEach quantity `json:"redelivered_per_ended_replica"`
	// UnsettledPercent of the steps of the load, the mean.
	UnsettledPercent quantity `json:"unsettled_pct"`
}

// summarize scores the runs of a set.
func summarize(s set, runs []outcome, seed uint64) summary {
	total := summary{name: s.name}
	oracle := map[[2]int]outcome{}
	byController := map[string][][]outcome{}
	var order []string
	for _, r := range runs {
		if r.controller == oracleName {
			oracle[[2]int{r.scenario, r.seed}] = r
		}
		if byController[r.controller] == nil {
			byController[r.controller] = make([][]outcome, len(s.scenarios))
			order = append(order, r.controller)
		}
		byController[r.controller][r.scenario] = append(byController[r.controller][r.scenario], r)
	}
	for _, controller := range order {
		p := performance{controller: controller}
		for i, some := range byController[controller] {
			if len(some) > 0 {
				one := scenarioNumbers{s.scenarios[i].Name, measure(some, oracle)}
				one.Family = s.name
				p.scenarios = append(p.scenarios, one)
			}
		}
		p.sumUp(seed)
		total.controllers = append(total.controllers, p)
	}
	return total
}

// measure measures the runs of one controller on one scenario.
func measure(runs []outcome, oracle map[[2]int]outcome) numbers {
	var costs, late, avoidable, actions, flaps, settles, unsettled, ceilings, redelivered []quantity
	for _, r := range runs {
		share := quantity{}
		if best, ok := oracle[[2]int{r.scenario, r.seed}]; ok {
			costs = append(costs, of(r.replicaSeconds).over(of(best.replicaSeconds)))
			share = r.lateShare.minus(best.lateShare)
			share.value = max(0, share.value)
		}
		late, avoidable = append(late, r.lateShare.percent()), append(avoidable, share.percent())
		actions, flaps = append(actions, of(float64(r.actions))), append(flaps, of(float64(r.flaps)))
		ceilings, redelivered = append(ceilings, r.falseCeilings), append(redelivered, r.redelivered)
		settles = append(settles, r.settles...)
		for _, s := range r.settles {
			missed := 100.0
			if s.known {
				missed = 0
			}
			unsettled = append(unsettled, of(missed))
		}
	}
	return numbers{
		score: score{
			CostOverOracle: geometric(costs), LatePercent: mean(late), AvoidableLate: mean(avoidable),
			Flaps: mean(flaps), Actions: mean(actions), SettleSeconds: mean(settles),
		},
		FalseCeilings: sum(ceilings), RedeliveredEach: mean(redelivered), UnsettledPercent: mean(unsettled),
	}
}

// sumUp sums up the scenarios.
func (p *performance) sumUp(seed uint64) {
	costs := p.column(func(n numbers) quantity { return n.CostOverOracle })
	late := p.column(func(n numbers) quantity { return n.AvoidableLate })
	p.whole = numbers{
		score: score{
			CostOverOracle: geometric(costs), AvoidableLate: mean(late),
			LatePercent:   mean(p.column(func(n numbers) quantity { return n.LatePercent })),
			Flaps:         sum(p.column(func(n numbers) quantity { return n.Flaps })),
			Actions:       sum(p.column(func(n numbers) quantity { return n.Actions })),
			SettleSeconds: mean(p.column(func(n numbers) quantity { return n.SettleSeconds })),
		},
		FalseCeilings:    sum(p.column(func(n numbers) quantity { return n.FalseCeilings })),
		RedeliveredEach:  mean(p.column(func(n numbers) quantity { return n.RedeliveredEach })),
		UnsettledPercent: mean(p.column(func(n numbers) quantity { return n.UnsettledPercent })),
	}
	p.costInterval, p.lateInterval = bootstrap(costs, geometric, seed), bootstrap(late, mean, seed)
}

func (p performance) column(pick func(numbers) quantity) []quantity {
	values := make([]quantity, len(p.scenarios))
	for i, one := range p.scenarios {
		values[i] = pick(one.numbers)
	}
	return values
}

// find finds a controller; false if it did not run.
func (s summary) find(controller string) (performance, bool) {
	i := slices.IndexFunc(s.controllers, func(p performance) bool { return p.controller == controller })
	if i < 0 {
		return performance{}, false
	}
	return s.controllers[i], true
}
