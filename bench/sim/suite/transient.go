// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"math"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// sawtooth rises evenly from low to high in each period, and falls at once.
func sawtooth(low, high, period float64) model.Curve {
	return func(second float64) float64 { return low + (high-low)*math.Mod(second, period)/period }
}

// transients are loads that end before added replicas have paid off.
func transients() []Scenario {
	// Periods longer than the stabilization window and too short to profit from fewer replicas.
	short := base("sawtooth-165", hour, sawtooth(60, 600, 165))
	medium := base("sawtooth-200", hour, sawtooth(60, 300, 200))
	long := base("sawtooth-300", hour, sawtooth(60, 600, 300))
	// Ten times the load for 10 s: over before a replica starts, and not expected again for an hour.
	burst := base("burst-10s", hour, steps(map[int]float64{0: 500, 15 * minute: 5000, 15*minute + 10: 500}))
	burst.Initial = 10
	// Ten times the load at once, which needs 40 more replicas: in one raise rather than a staircase.
	flash := base("flash", hour, change(40, 400, 40))
	flash.Capacity = model.Constant(10)
	// A load of 33 a second that ends.
	ends := base("load-ends", hour, steps(map[int]float64{0: 33, 20 * minute: 0}))
	ends.Capacity = model.Constant(5)
	return []Scenario{
		changing(flash), {Scenario: ends}, {Scenario: short}, {Scenario: medium}, {Scenario: long}, {Scenario: burst},
	}
}
