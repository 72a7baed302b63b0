// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package rival

import (
	"math"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/baseline"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// Named is a controller with its name in tables.
type Named struct {
	Name string
	New  baseline.New
}

// All returns all controllers, ours last.
func All() []Named {
	return []Named{
		{"oracle", newOracle},
		{"hpa-cpu80", baseline.CPU},
		{"keda-default10", baseline.DefaultKEDA},
		{"keda-tuned", baseline.TunedKEDA},
		{"keda-expert", baseline.Expert},
		{"expert-fresh", baseline.FreshExpert},
		{"ds2-10", newDS2(0.1)},
		{"ds2-50", newDS2(0.5)},
		{"flink-default", newFlink(defaultFlink())},
		{"flink-tuned", newFlink(tunedFlink())},
		{"simple", newSimple},
		{"capacity", baseline.Without()},
	}
}

// bound applies the bounds of the scenario.
func bound(replicas float64, s model.Scenario) int {
	if math.IsNaN(replicas) {
		return s.Min
	}
	return int(min(float64(s.Max), max(float64(s.Min), replicas)))
}
