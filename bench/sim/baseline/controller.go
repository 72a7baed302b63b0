// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package baseline

import "github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"

// Controller returns the number of replicas for every second, usually unchanged.
type Controller interface {
	Replicas(system *model.System) int
}

// New creates a controller for a scenario, in which the model's defaults are set.
type New func(model.Scenario) Controller

// Every reports whether a period begins in this second.
func Every(seconds int, system *model.System) bool { return system.Second()%seconds == 0 }

// moment is a number of replicas at a second.
type moment struct {
	second   float64
	replicas int
}
