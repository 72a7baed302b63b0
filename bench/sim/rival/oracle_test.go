// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package rival

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/baseline"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// calm is a load for six replicas, without randomness.
func calm() model.Scenario {
	return model.Scenario{
		Seconds: 1800, Rate: model.Constant(
			280), Capacity: model.Constant(50), Spread: 1e-9, StartSpread: 1e-9, Objective: time.Minute,
		Initial: 6, Min: 1, Max: 40, Start: 25 * time.Second,
	}
}

// followed is a system that followed a controller to the end.
func followed(s model.Scenario, newController baseline.New, seed uint64) *model.System {
	system := model.New(s, seed)
	controller := newController(system.Scenario())
	system.Run(controller.Replicas)
	return system
}

// The reference must be good on its own terms.
func TestTheOracleIsNeitherLateNorDear(t *testing.T) {
	tests := map[string]struct {
		change func(*model.Scenario)
		// replicas at the end.
		replicas int
	}{
		"a constant load": {func(*model.Scenario) {}, 6},
		"a step that it knows in advance": {func(s *model.Scenario) {
			s.Rate = func(second float64) float64 {
				if second < 600 {
					return 90
				}
				return 380
			}
			s.Objective, s.Initial = 5*time.Second, 2
		}, 8},
		"replicas that crash are no replicas": {func(s *model.Scenario) { s.Crashing = 0.4 }, 0},
		"partitions of which one is most of what a replica can do": {func(s *model.Scenario) {
			s.Type, s.Partitions, s.Rate = backlog.Failover, 12, model.Constant(200)
			s.Weights = []float64{1.5, 1, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25}
		}, 6},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := calm()
			tt.change(&s)
			system := followed(s, newOracle, 4)
			require.Less(t, system.Score().LateShare(), 0.001)
			if tt.replicas > 0 {
				require.Equal(t, tt.replicas, system.Replicas())
			} else {
				require.Equal(t, 6+system.Crashing(), system.Replicas())
			}
		})
	}
}

func TestTheOracleIsolatesAnOverloadedPartition(t *testing.T) {
	tests := map[string]struct {
		weights  []float64
		rate     float64
		replicas float64
	}{
		"any fewer have the first share its replica":      {[]float64{12, 1, 1, 1, 1, 1, 1, 1}, 90, 8},
		"the last has nothing, so one less does as much":  {[]float64{10, 1, 1, 0}, 78, 3},
		"no partition is too much, and pairs of them fit": {[]float64{1, 1, 1, 1}, 90, 2},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := calm()
			s.Type, s.Partitions, s.Weights, s.Rate = backlog.Failover, len(tt.weights), tt.weights, model.Constant(tt.rate)
			o := oracle{scenario: s}
			require.InDelta(t, tt.replicas, o.partitions(0), 0)
		})
	}
}
