// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// After its start the adapter holds replicas for a stabilization window, because it does not know what was needed since
// the status was written. So does its model.
func TestARestartOfTheControllerHoldsReplicasForAWindow(t *testing.T) {
	firstDown := func(restarts ...int) int {
		s := calm()
		s.Rate, s.Restarts = func(second float64) float64 {
			if second < 600 {
				return 280
			}
			return 40
		}, restarts
		system := model.New(s, 4)
		controller := Without()(system.Scenario())
		for range s.Seconds {
			system.Step()
			before := system.Replicas()
			system.Scale(controller.Replicas(system))
			if system.Second() > 600 && system.Replicas() < before {
				return system.Second()
			}
		}
		return s.Seconds
	}
	alone := firstDown()
	require.Less(t, alone, 800)
	restart := alone - 20
	require.GreaterOrEqual(t, firstDown(restart), restart+45)
	require.Equal(t, alone, firstDown(alone-5), "it was decided already")
}

// Replicas are kept so few that they always have work, with the noise and randomness of the model, and with capacities
// that differ by 5 %.
func TestTheCapacityIsRightAfterThreeSaturatedPollsOfTheModel(t *testing.T) {
	worst := 0.0
	for _, each := range []float64{2, 10, 50, 500} {
		for _, replicas := range []int{1, 3, 10} {
			for seed := range uint64(5) {
				s := calm()
				s.Capacity, s.Rate, s.Noise, s.Spread = model.Constant(each), model.Constant(1.5*each*float64(replicas)), 0.3, 0.05
				s.Initial, s.Min, s.Max = replicas, replicas, replicas
				system := model.New(s, seed)
				c := newCapacity(system.Scenario())
				full, before := 0, 0.0
				for full < 3 {
					system.Step()
					system.Scale(c.Replicas(system))
					require.Less(t, system.Second(), 600)
					if system.Second()%pollEvery != pollPhase {
						continue
					}
					waiting := system.Processable()
					if min(before, waiting) >= 2*each*float64(replicas) { // at least two seconds of work all the time
						full++
					}
					before = waiting
				}
				require.NotNil(t, c.state.Capacity)
				off := math.Abs(c.state.Capacity.MessagesPerSecond/each - 1)
				require.LessOrEqual(t, off, 0.1, "%g/s, %d replicas, seed %d: %+v", each, replicas, seed, *c.state.Capacity)
				worst = max(worst, off)
			}
		}
	}
	t.Logf("at most %.1f %% off", 100*worst)
}

// calm is a load for six replicas, without randomness.
func calm() model.Scenario {
	return model.Scenario{
		Seconds: 1800, Rate: model.Constant(
			280), Capacity: model.Constant(50), Spread: 1e-9, StartSpread: 1e-9, Objective: time.Minute,
		Initial: 6, Min: 1, Max: 40, Start: 25 * time.Second,
	}
}
