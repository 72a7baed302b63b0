// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package rival

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

func TestEveryControllerSettlesOnAConstantLoad(t *testing.T) {
	for _, named := range All() {
		t.Run(named.Name, func(t *testing.T) {
			s := model.Scenario{
				Seconds: 3600, Rate: model.Constant(300), Capacity: model.Constant(50), Objective: time.Minute,
				Initial: 1, Min: 1, Max: 40, Start: 25 * time.Second,
			}
			system := model.New(s, 4)
			controller := named.New(system.Scenario())
			for range s.Seconds {
				system.Step()
				replicas := controller.Replicas(system)
				require.GreaterOrEqual(t, replicas, 1)
				require.LessOrEqual(t, replicas, 40)
				system.Scale(replicas)
			}
			require.GreaterOrEqual(t, system.Replicas(), 5, "six are needed on average; KEDA's oscillate around that")
		})
	}
}

func TestAControllerWithoutDataHolds(t *testing.T) {
	for _, name := range []string{"keda-default10", "keda-tuned", "simple", "capacity", "flink-tuned", "ds2-50"} {
		t.Run(name, func(t *testing.T) {
			s := model.Scenario{
				Seconds: 600, Rate: model.Constant(300), Capacity: model.Constant(50), Objective: time.Minute,
				Initial: 8, Min: 1, Max: 40, Start: 25 * time.Second, Outages: model.Spans{{From: 0, To: 600}},
			}
			for _, named := range All() {
				if named.Name != name {
					continue
				}
				system := model.New(s, 4)
				controller := named.New(system.Scenario())
				for range s.Seconds {
					system.Step()
					system.Scale(controller.Replicas(system))
					require.Equal(t, 8, system.Replicas())
				}
			}
		})
	}
}
