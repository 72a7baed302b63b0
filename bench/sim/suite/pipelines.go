// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// Pipelines is the family of Functions of which each gets what the one before it processes.
const Pipelines = "pipelines"

// PipelinesOf returns the stages of pipelines drawn from a seed, count of each of 2, 3 and 5 stages. The load of the
// first stage is one of HeldOut, or in every other pipeline pulses at random times, as those of Patterns. Each further
// stage is drawn as in HeldOut, and one of its replicas processes a third to three times as much as one of the first.
func PipelinesOf(seed uint64, count int) [][]model.Scenario {
	random := rand.New(rand.NewPCG(seed, 0x919e))
	var pipelines [][]model.Scenario
	for _, length := range []int{2, 3, 5} {
		for i := range count {
			name := fmt.Sprintf("pipeline-%d-%02d", length, i)
			first := draw(random, name)
			for !feasible(first) {
				first = draw(random, name)
			}
			capacity := first.Capacity(0)
			if i%2 == 1 {
				first.Seconds, first.Name = 2*hour, name+"-pulses"
				first.Rate, _ = adversarial()[0].draw(random).curve(random, first.Seconds,
					between(random, 0.1, 1)*capacity, between(random, 2, 10)*capacity)
			}
			stages := []model.Scenario{first.Scenario}
			for len(stages) < length {
				one := function(random, first.Name)
				each := capacity * between(random, 0.33, 3)
				one.Capacity, one.ReceiveQueue = model.Constant(each), min(1000, max(1, math.Round(20*each)))
				stages = append(stages, one)
			}
			pipelines = append(pipelines, stages)
		}
	}
	return pipelines
}
