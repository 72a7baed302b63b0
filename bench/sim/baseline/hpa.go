// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"math"
	"slices"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// hpaSync is the HPA controller's period in seconds.
const hpaSync = 15

const (
	hpaTolerance = 0.1
	// hpaDownWindow is the default stabilization window in seconds.
	hpaDownWindow = 300
	// The default policies of a behavior: up by the larger of 4 pods and 100 % in 15 s, down to anything.
	hpaPods, hpaPercent, hpaPeriod = 4, 100, 15
	// Without a behavior: up to twice as many, or to 4, at each sync.
	hpaFactor, hpaLeast = 2, 4
	// hpaMost keeps the recommendation of a metric within an int32, like the controller.
	hpaMost = math.MaxInt32
)

// hpa is the HorizontalPodAutoscaler's path from the recommendation of a metric to the replicas it sets: tolerance,
// scale-up limit and stabilization window. Without a metric, sync is not called: the controller keeps the replicas and
// records nothing.
//
// Sources: Kubernetes 1.36, pkg/controller/podautoscaler: reconcileAutoscaler, normalizeDesiredReplicas and
// normalizeDesiredReplicasWithBehaviors; testdata/hpa.json is a recording of that controller, which a test replays.
type hpa struct {
	// behavior is set if the HPA has one, with defaults. Then changes count over the period of their policy. Without one
	// the largest recommendation of the window applies to scale-up too: one beyond the limit takes effect later.
	behavior bool
	window   Window   // recommendations before all limits
	changed  []moment // replicas added, or removed
}

// replicas returns the replicas for a metric with a fractional recommendation.
func (h *hpa) replicas(system *model.System, wanted float64) int {
	s := system.Scenario()
	return h.sync(float64(system.Second()), system.Replicas(), wanted, max(1, s.Min), s.Max)
}

// sync is one sync of the controller: it returns the replicas to set, for the current ones and the metric's
// recommendation.
func (h *hpa) sync(now float64, current int, wanted float64, lowest, highest int) int {
	if current == 0 {
		return 0 // an HPA is off at zero
	}
	if h.window.said == nil {
		h.window.said = []moment{{now, current}}
	}
	want := current
	if ratio := wanted / float64(current); ratio < 1-hpaTolerance || ratio > 1+hpaTolerance {
		want = int(math.Ceil(min(hpaMost, wanted) - 1e-9))
	}
	if !h.behavior {
		return min(max(h.window.largest(now, want), lowest), highest, max(hpaFactor*current, hpaLeast))
	}
	held := h.window.Held(now, current, want)
	set := min(max(held, lowest), highest)
	if held > current {
		set = min(held, highest, max(current, h.limit(now, current)))
	}
	if set != current {
		h.changed = append(h.changed, moment{now, set - current})
	}
	return set
}

// limit is the number of replicas that the policies allow, based on those at the beginning of their period.
func (h *hpa) limit(now float64, current int) int {
	h.changed = slices.DeleteFunc(h.changed, func(m moment) bool { return m.second <= now-hpaPeriod })
	before := current
	for _, m := range h.changed {
		before -= m.replicas
	}
	return max(before+hpaPods, int(math.Ceil(float64(before)*(1+hpaPercent/100.0))))
}

// Window is a stabilization window.
type Window struct {
	Seconds float64
	said    []moment // the recommendations
}

// Held is the window for scale-down: the largest recommendation in it, up to the running replicas, or want if more.
func (w *Window) Held(now float64, current, want int) int {
	return min(max(current, want), w.largest(now, want))
}

// largest adds want to the window, and returns the largest recommendation in it.
func (w *Window) largest(now float64, want int) int {
	w.said = slices.DeleteFunc(w.said, func(m moment) bool { return m.second < now-w.Seconds })
	largest := want
	for _, m := range w.said {
		largest = max(largest, m.replicas)
	}
	w.said = append(w.said, moment{now, want})
	return largest
}
