// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/plant"
)

func quiet(initial int) *plant.World {
	return plant.New(plant.Scenario{
		Rate: plant.Constant(0), Capacity: plant.Constant(50), Objective: time.Minute, Initial: initial, Min: 1, Max: 100, Start: 20 * time.Second,
	}, 1)
}

// The cases are those of the Kubernetes documentation on the algorithm, tolerance and default behavior.
func TestTheHPAModelFollowsItsDocumentation(t *testing.T) {
	tests := map[string]struct {
		initial int
		wanted  float64
		want    int
	}{
		"twice the value doubles the replicas":           {10, 20, 20},
		"a ratio within a tenth changes nothing":         {10, 10.9, 10},
		"a ratio just beyond does":                       {10, 11.1, 12},
		"a fraction is rounded up":                       {2, 4.2, 5},
		"up at most doubles at once":                     {10, 50, 20},
		"up by four where that is more than doubling":    {1, 50, 5},
		"never beyond maxReplicas":                       {80, 150, 100},
		"never below minReplicas":                        {1, 0, 1},
		"down at once when nothing was asked for before": {10, 3, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			h := hpa{downWindow: 300}
			require.Equal(t, tt.want, h.replicas(quiet(tt.initial), tt.wanted))
		})
	}
}

func TestTheHPAModelHoldsTheLargestOfItsWindow(t *testing.T) {
	h, w := hpa{downWindow: 300}, quiet(10)
	w.Step()
	require.Equal(t, 10, h.replicas(w, 10))
	for range 299 {
		w.Step()
	}
	require.Equal(t, 10, h.replicas(w, 2), "ten were needed 299 s ago")
	for range 302 {
		w.Step()
	}
	require.Equal(t, 2, h.replicas(w, 2))
}

func TestEveryControllerSettlesOnAConstantLoad(t *testing.T) {
	for _, named := range All() {
		t.Run(named.Name, func(t *testing.T) {
			s := plant.Scenario{
				Seconds: 3600, Rate: plant.Constant(300), Capacity: plant.Constant(50), Objective: time.Minute,
				Initial: 1, Min: 1, Max: 40, Start: 25 * time.Second,
			}
			w := plant.New(s, 4)
			controller := named.New(w.Scenario())
			for range s.Seconds {
				w.Step()
				replicas := controller.Replicas(w)
				require.GreaterOrEqual(t, replicas, 1)
				require.LessOrEqual(t, replicas, 40)
				w.Scale(replicas)
			}
			require.GreaterOrEqual(t, w.Replicas(), 5, "six are needed on average; KEDA's oscillate around that")
		})
	}
}

func TestAControllerThatCannotSeeHolds(t *testing.T) {
	for _, name := range []string{"keda-default10", "keda-tuned", "simple", "capacity", "flink-tuned", "ds2-50"} {
		t.Run(name, func(t *testing.T) {
			s := plant.Scenario{
				Seconds: 600, Rate: plant.Constant(300), Capacity: plant.Constant(50), Objective: time.Minute,
				Initial: 8, Min: 1, Max: 40, Start: 25 * time.Second, Outages: plant.Spans{{From: 0, To: 600}},
			}
			for _, named := range All() {
				if named.Name != name {
					continue
				}
				w := plant.New(s, 4)
				controller := named.New(w.Scenario())
				for range s.Seconds {
					w.Step()
					w.Scale(controller.Replicas(w))
					require.Equal(t, 8, w.Replicas())
				}
			}
		})
	}
}
