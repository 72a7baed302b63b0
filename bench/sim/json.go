// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

// The JSON as doc.go describes it. Keys of maps are sorted, so equal numbers give equal bytes.
type (
	written struct {
		Seed        uint64                           `json:"seed"`
		Seeds       int                              `json:"seeds"`
		Controllers map[string]writtenScore          `json:"controllers"`
		Sets        map[string]map[string]writtenSet `json:"sets"`
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
)

func (r report) written() written {
	w := written{
		Seed: r.seed, Seeds: r.seeds, Controllers: map[string]writtenScore{}, Sets: map[string]map[string]writtenSet{},
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
