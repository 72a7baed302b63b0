// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

// Output is the rate of messages that a scenario's replicas finish, as the arrivals of the next Function of a chain.
// Its replicas follow a plan, so that the second Function's load does not depend on its controller.
func Output(first Scenario, seed uint64, replicas Curve) Curve {
	system := New(first, seed)
	finished := make([]float64, first.Seconds)
	before := 0.0
	for second := range finished {
		system.Step()
		system.Scale(int(replicas(float64(second))))
		finished[second], before = system.score.Finished-before, system.score.Finished
	}
	return func(second float64) float64 {
		at := int(second)
		if at < 0 || at >= len(finished) {
			return 0
		}
		return finished[at]
	}
}
