// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package baseline

import "github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"

// Schedule sets the replicas of every second, such as those that really ran. While they are unknown, which is false, it
// keeps the current ones.
func Schedule(replicas func(second int) (int, bool)) New {
	return func(model.Scenario) Controller { return schedule(replicas) }
}

// Fixed always has the same replicas.
func Fixed(replicas int) New {
	return Schedule(func(int) (int, bool) { return replicas, true })
}

type schedule func(second int) (int, bool)

func (s schedule) Replicas(system *model.System) int {
	if replicas, known := s(system.Second()); known {
		return replicas
	}
	return system.Replicas()
}
