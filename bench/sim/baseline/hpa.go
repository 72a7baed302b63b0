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
	// Without a behavior: up to twice as many, or 4, at each sync.
	hpaFactor, hpaLeast = 2, 4
	// hpaMost keeps what a metric asks for within an int32, as the controller does.
	hpaMost = math.MaxInt32
)

// hpa is the HorizontalPodAutoscaler's way from a number of replicas that a metric asks for to what is set: tolerance,
// scale-up limit and stabilization window. When a metric cannot be had, sync is not called: the controller keeps what
// there is and remembers nothing.
//
// Sources: Kubernetes 1.36, pkg/controller/podautoscaler: reconcileAutoscaler, normalizeDesiredReplicas and
// normalizeDesiredReplicasWithBehaviors; testdata/hpa.json is a recording of that controller, which a test replays.
type hpa struct {
	// behavior says that the HPA has one, of defaults. Then changes count over the period of their policy. Without one
	// the largest recommendation of the window is followed upwards too: one that was beyond the limit still comes.
	behavior bool
	// downWindow in seconds.
	downWindow float64
	said       []moment // recommendations before all limits
	changed    []moment // replicas added, or removed
}

// replicas for a metric that asks for so many, as a fraction.
func (h *hpa) replicas(system *model.System, wanted float64) int {
	s := system.Scenario()
	return h.sync(float64(system.Second()), system.Replicas(), wanted, max(1, s.Min), s.Max)
}

// sync is one look of the controller: replicas to set, where there are current ones and the metric asks for wanted.
func (h *hpa) sync(now float64, current int, wanted float64, lowest, highest int) int {
	if current == 0 {
		return 0 // an HPA is off at zero
	}
	if h.said == nil {
		h.said = []moment{{now, current}}
	}
	want := current
	if ratio := wanted / float64(current); ratio < 1-hpaTolerance || ratio > 1+hpaTolerance {
		want = int(math.Ceil(min(hpaMost, wanted) - 1e-9))
	}
	if !h.behavior {
		return min(max(h.largest(now, want), lowest), highest, max(hpaFactor*current, hpaLeast))
	}
	held := min(max(current, want), h.largest(now, want))
	set := min(max(held, lowest), highest)
	if held > current {
		set = min(held, highest, max(current, h.limit(now, current)))
	}
	if set != current {
		h.changed = append(h.changed, moment{now, set - current})
	}
	return set
}

// largest recommendation of the window, among which want is from now on.
func (h *hpa) largest(now float64, want int) int {
	h.said = slices.DeleteFunc(h.said, func(m moment) bool { return m.second < now-h.downWindow })
	largest := want
	for _, m := range h.said {
		largest = max(largest, m.replicas)
	}
	h.said = append(h.said, moment{now, want})
	return largest
}

// limit is how many replicas the policies allow, from what there was at the beginning of their period.
func (h *hpa) limit(now float64, current int) int {
	h.changed = slices.DeleteFunc(h.changed, func(m moment) bool { return m.second <= now-hpaPeriod })
	before := current
	for _, m := range h.changed {
		before -= m.replicas
	}
	return max(before+hpaPods, int(math.Ceil(float64(before)*(1+hpaPercent/100.0))))
}
