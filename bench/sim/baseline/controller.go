// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"math"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// Controller says every second how many replicas there should be; most seconds that is what there are.
type Controller interface {
	Replicas(system *model.System) int
}

// New makes a controller for a scenario; it sees the model's defaults applied.
type New func(model.Scenario) Controller

// Named is a controller under its name in tables.
type Named struct {
	Name string
	New  New
}

// All of them, ours last.
func All() []Named {
	return []Named{
		{"oracle", newOracle},
		{"hpa-cpu80", CPU},
		{"keda-default10", DefaultKEDA},
		{"keda-tuned", newTunedKEDA},
		{"keda-expert", newExpert},
		{"expert-fresh", newFreshExpert},
		{"ds2-10", newDS2(0.1)},
		{"ds2-50", newDS2(0.5)},
		{"flink-default", newFlink(defaultFlink())},
		{"flink-tuned", newFlink(tunedFlink())},
		{"simple", newSimple},
		{"capacity", Without(0)},
	}
}

// every says whether a second is one of a period's.
func every(seconds int, system *model.System) bool { return system.Second()%seconds == 0 }

// bound to what the scenario allows.
func bound(replicas float64, s model.Scenario) int {
	if math.IsNaN(replicas) {
		return s.Min
	}
	return int(min(float64(s.Max), max(float64(s.Min), replicas)))
}

// moment is a number of replicas at a second.
type moment struct {
	second   float64
	replicas int
}

// recommendations of the past, the oldest first.
type recommendations []moment

// atLeast is a stabilization window for scale-down: it returns want, or the largest recommendation of the last seconds
// where that is more, up to what runs.
func (r *recommendations) atLeast(system *model.System, want, seconds int) int {
	now := float64(system.Second())
	*r = append(*r, moment{now, want})
	for (*r)[0].second < now-float64(seconds) {
		*r = (*r)[1:]
	}
	for _, m := range *r {
		want = max(want, min(system.Replicas(), m.replicas))
	}
	return want
}
