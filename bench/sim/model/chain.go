// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

// Output is what a scenario's replicas finish, in messages per second, as the arrivals of the next Function of a chain.
// Its replicas follow a plan, so that the second Function's load is the same whoever scales that one.
func Output(first Scenario, seed uint64, replicas Curve) Curve {
	w := New(first, seed)
	finished := make([]float64, first.Seconds)
	before := 0.0
	for second := range finished {
		w.Step()
		w.Scale(int(replicas(float64(second))))
		finished[second], before = w.score.Finished-before, w.score.Finished
	}
	return func(second float64) float64 {
		at := int(second)
		if at < 0 || at >= len(finished) {
			return 0
		}
		return finished[at]
	}
}
