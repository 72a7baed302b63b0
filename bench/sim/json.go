// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

// The JSON as doc.go describes it. Keys of maps are sorted, so equal numbers give equal bytes.
type (
	written struct {
		Seed        uint64                            `json:"seed"`
		Seeds       int                               `json:"seeds"`
		Controllers map[string]writtenScore           `json:"controllers"`
		Sets        map[string]map[string]writtenSet  `json:"sets"`
		Goals       map[string]map[string]writtenGoal `json:"goals"`
	}
	writtenScore struct {
		score

		Scenarios map[string]score `json:"scenarios"`
	}
	writtenSet struct {
		numbers

		CostInterval interval           `json:"cost_over_oracle_95"`
		LateInterval interval           `json:"avoidable_late_pp_95"`
		Scenarios    map[string]numbers `json:"scenarios"`
	}
	writtenGoal struct {
		AtMost   float64  `json:"at_most"`
		Strict   bool     `json:"strict"`
		Measured quantity `json:"measured"`
		// Met is null without a measurement.
		Met *bool `json:"met"`
	}
)

func (r report) written() written {
	w := written{
		Seed: r.seed, Seeds: r.seeds, Controllers: map[string]writtenScore{}, Sets: map[string]map[string]writtenSet{},
		Goals: map[string]map[string]writtenGoal{},
	}
	for _, s := range r.sets {
		w.Sets[s.name] = map[string]writtenSet{}
		for _, c := range s.controllers {
			one := writtenSet{
				numbers: c.whole, CostInterval: c.costInterval, LateInterval: c.lateInterval,
				Scenarios: map[string]numbers{},
			}
			for _, scenario := range c.scenarios {
				one.Scenarios[scenario.name] = scenario.numbers
			}
			w.Sets[s.name][c.controller] = one
		}
		for _, g := range s.goals() {
			if w.Goals[s.name] == nil {
				w.Goals[s.name] = map[string]writtenGoal{}
			}
			one := writtenGoal{AtMost: g.atMost, Strict: g.strict, Measured: g.measured}
			if met := g.met(); g.measured.known {
				one.Met = &met
			}
			w.Goals[s.name][g.name] = one
		}
	}
	// The headline score is on scenarios that no controller was tuned on; scenarios of all sets are listed.
	for controller, heldOut := range w.Sets[heldOutName] {
		w.Controllers[controller] = writtenScore{score: heldOut.score, Scenarios: map[string]score{}}
		for _, s := range w.Sets {
			for name, scenario := range s[controller].Scenarios {
				w.Controllers[controller].Scenarios[name] = scenario.score
			}
		}
	}
	return w
}
