// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/baseline"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/suite"
)

// pipelines are the last stages of the selected pipelines, with what the stages before them process.
func (o options) pipelines() []suite.Scenario {
	var last []suite.Scenario
	for _, stages := range suite.PipelinesOf(o.seed, o.patterns) {
		one := stages[0]
		if !o.scenario.MatchString(one.Name) {
			continue
		}
		for i, next := range stages[1:] {
			one, _ = baseline.After(one, next, baseline.Without(), o.seed+uint64(i)) // so that all get the same load
		}
		last = append(last, suite.Scenario{Scenario: one})
	}
	return last
}
