// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"math"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/plant"
)

// Controller says every second how many replicas there should be; most seconds that is what there are.
type Controller interface {
	Replicas(w *plant.World) int
}

// New makes a controller for a scenario; it sees the plant's defaults applied.
type New func(plant.Scenario) Controller

// Named is a controller under its name in tables.
type Named struct {
	Name string
	New  New
}

// All of them, ours last.
func All() []Named {
	return []Named{
		{"oracle", newOracle},
		{"hpa-cpu80", newCPU},
		{"keda-default10", func(s plant.Scenario) Controller { return newKEDA(s, threshold(10)) }},
		{"keda-tuned", func(s plant.Scenario) Controller { return newKEDA(s, tunedThreshold) }},
		{"keda-expert", newExpert},
		{"ds2-50", newDS2},
		{"flink-tuned", newFlink},
		{"simple", newSimple},
		{"capacity", newCapacity},
	}
}

// every says whether a second is one of a period's.
func every(seconds int, w *plant.World) bool { return w.Second()%seconds == 0 }

// bound to what the scenario allows.
func bound(replicas float64, s plant.Scenario) int {
	if math.IsNaN(replicas) {
		return s.Min
	}
	return int(min(float64(s.Max), max(float64(s.Min), replicas)))
}

// hpaSync is the HPA controller's period in seconds.
const hpaSync = 15

// hpa is the HorizontalPodAutoscaler's way from a number of replicas that a metric asks for to what is set: tolerance,
// default scale-up policy and stabilization window.
//
// Source: Kubernetes documentation, Horizontal Pod Autoscaling, algorithm details and default behavior.
type hpa struct {
	downWindow int
	asked      []asked
}

type asked struct{ second, replicas int }

const hpaTolerance = 0.1

// replicas for a metric that asks for so many, as a fraction.
func (h *hpa) replicas(w *plant.World, wanted float64) int {
	s, current := w.Scenario(), w.Replicas()
	if current == 0 {
		return 0 // an HPA is off at zero
	}
	want := int(math.Ceil(wanted - 1e-9))
	if math.Abs(wanted/float64(current)-1) <= hpaTolerance {
		want = current
	}
	want = min(want, max(2*current, current+4)) // 100 % or 4 pods in 15 s
	want = min(s.Max, max(1, s.Min, want))
	h.asked = append(h.asked, asked{w.Second(), want})
	for len(h.asked) > 0 && h.asked[0].second < w.Second()-h.downWindow {
		h.asked = h.asked[1:]
	}
	if want < current {
		for _, a := range h.asked {
			want = max(want, min(current, a.replicas))
		}
	}
	return want
}
