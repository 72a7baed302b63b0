// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package baseline

import (
	"cmp"
	"math"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

const (
	kedaPolling   = 30
	kedaCooldown  = 300
	kedaThreshold = 10
)

// keda is KEDA's pulsar scaler: msgBacklog in entries over a threshold through the HPA, and its own 0 <-> 1.
//
// Source: kedacore/keda, pkg/scalers/pulsar_scaler.go and the ScaledObject's defaults.
type keda struct {
	hpa       hpa
	threshold float64
	// cooldown in seconds; 0 is KEDA's default.
	cooldown int
	// entries that its trigger sees; nil for all.
	entries func(model.Rough) float64
	// more is the recommendation of other triggers; the largest wins.
	more       func(system *model.System) float64
	lastActive int
}

// TunedThreshold is the threshold of an expert who knows the capacity of a replica: half an objective's work.
func TunedThreshold(capacity float64, objective time.Duration) float64 {
	return max(1, capacity*objective.Seconds()/2)
}

func tunedThreshold(s model.Scenario) float64 { return TunedThreshold(s.Capacity(0), s.Objective) }

// DefaultKEDA is a ScaledObject with only its trigger: its HPA has no behavior.
func DefaultKEDA(model.Scenario) Controller {
	return &keda{
		hpa: hpa{window: Window{Seconds: hpaDownWindow}}, threshold: kedaThreshold,
		// A trigger has one topic, and the HPA follows the largest recommendation. A formula in scalingModifiers that adds
		// them up is left to experts.
		entries: func(seen model.Rough) float64 { return seen.Busiest },
	}
}

// TunedKEDA has the best threshold and an HPA with the default behavior, which does not follow expired
// recommendations.
func TunedKEDA(s model.Scenario) Controller { return KEDA(tunedThreshold(s), 0)(s) }

// KEDA is a ScaledObject with a threshold, a cooldownPeriod (0 is the default) and an HPA with the default behavior.
func KEDA(threshold float64, cooldown time.Duration) New {
	return func(model.Scenario) Controller {
		return &keda{
			hpa:       hpa{window: Window{Seconds: hpaDownWindow}, behavior: true},
			threshold: threshold, cooldown: int(cooldown.Seconds()),
		}
	}
}

// Expert adds a trigger on the publish rate, a gauge of the broker that is up to a minute old, at 80 % of the true
// capacity.
func Expert(s model.Scenario) Controller { return expert(s, 60) }

// FreshExpert has the rate of a monitoring system that scrapes counters every 15 s.
func FreshExpert(s model.Scenario) Controller { return expert(s, 15) }

func expert(s model.Scenario, seconds int) Controller {
	rate := gauge{seconds: seconds}
	return &keda{
		hpa: hpa{window: Window{Seconds: hpaDownWindow}, behavior: true}, threshold: tunedThreshold(s),
		more: func(system *model.System) float64 { return rate.read(system) / (0.8 * s.Capacity(0)) },
	}
}

func (k *keda) Replicas(system *model.System) int {
	s, current := system.Scenario(), system.Replicas()
	if !Every(hpaSync, system) { // kedaPolling and all gauges are multiples of it
		return current
	}
	seen, err := system.Rough()
	if err != nil {
		return current
	}
	entries, more := seen.Entries, 0.0
	if k.entries != nil {
		entries = k.entries(seen)
	}
	if k.more != nil {
		more = k.more(system)
	}
	if s.Min == 0 && Every(kedaPolling, system) {
		if seen.Entries > 0 {
			k.lastActive = system.Second()
		}
		switch {
		case current == 0 && seen.Entries > 0:
			return 1
		case current > 0 && system.Second()-k.lastActive > cmp.Or(k.cooldown, kedaCooldown):
			return 0
		}
	}
	if current == 0 {
		return current
	}
	return k.hpa.replicas(system, math.Max(entries/k.threshold, more))
}

// gauge is a rate that is updated periodically, such as msgRateIn once a minute: the mean since the last update.
type gauge struct {
	seconds, at  int
	rate, before float64
	known        bool
}

func (g *gauge) read(system *model.System) float64 {
	if !Every(g.seconds, system) {
		return g.rate
	}
	seen, err := system.Rough()
	if err != nil {
		return g.rate
	}
	if g.known && seen.Published >= g.before {
		g.rate = (seen.Published - g.before) / float64(system.Second()-g.at)
	}
	g.before, g.at, g.known = seen.Published, system.Second(), true
	return g.rate
}

// cpu is an HPA on 80 % of a correct CPU request: one processor per replica.
type cpu struct{ hpa hpa }

// CPU is an HPA with that metric.
func CPU(model.Scenario) Controller { return &cpu{hpa: hpa{window: Window{Seconds: hpaDownWindow}}} }

func (c *cpu) Replicas(system *model.System) int {
	if system.Replicas() == 0 {
		return 1 // idle replicas use no CPU, so it could not scale up from zero
	}
	if !Every(hpaSync, system) {
		return system.Replicas()
	}
	return c.hpa.replicas(system, system.CPU()/0.8)
}
