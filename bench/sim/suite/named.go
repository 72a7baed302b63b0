// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"math"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/plant"
)

// Scenario is a load with the seconds at which it steps, for scores of settling.
type Scenario struct {
	plant.Scenario
	Steps []int
	// Pathology marks what no rate or backlog explains: poison, held, delayed, limited downstream.
	Pathology bool
}

const (
	minute = 60
	hour   = 60 * minute
)

// base is what scenarios share unless they say otherwise: a replica does 50 a second, starts in 25 s, and messages may
// take a minute.
func base(name string, seconds int, rate plant.Curve) plant.Scenario {
	return plant.Scenario{
		Name: name, Seconds: seconds, Rate: rate, Capacity: plant.Constant(50), Objective: time.Minute,
		Initial: 1, Min: 1, Max: 100, Start: 25 * time.Second,
	}
}

// steps is a rate that changes at given seconds.
func steps(rates map[int]float64) plant.Curve {
	return func(second float64) float64 {
		last, rate := -1, 0.0
		for at, r := range rates {
			if float64(at) <= second && at > last {
				last, rate = at, r
			}
		}
		return rate
	}
}

func sine(mean, amplitude, period float64) plant.Curve {
	return func(second float64) float64 { return mean + amplitude*math.Sin(2*math.Pi*second/period) }
}

func ramp(from, to float64, begin, end int) plant.Curve {
	return func(second float64) float64 {
		return from + (to-from)*min(1, max(0, (second-float64(begin))/float64(end-begin)))
	}
}

// pulses of a rate for a while, every period.
func pulses(low, high float64, length, period int) plant.Curve {
	return func(second float64) float64 {
		if int(second)%period < length {
			return high
		}
		return low
	}
}

// Named scenarios, in the order of the table.
func Named() []Scenario {
	return append(loads(), append(pathologies(), faults()...)...)
}

func loads() []Scenario {
	step := base("step", hour, steps(map[int]float64{0: 50, 10 * minute: 400, 40 * minute: 50}))
	slowStart := base("slowstart", hour, steps(map[int]float64{0: 50, 10 * minute: 300, 40 * minute: 100}))
	slowStart.Start = 90 * time.Second
	noisy := base("noisy", hour, plant.Constant(200))
	noisy.Noise = 0.5
	ioBound := base("io-bound", hour, steps(map[int]float64{0: 50, 10 * minute: 300, 40 * minute: 80}))
	ioBound.CPU = 0.2
	tight := base("tight-slo10", hour, steps(map[int]float64{0: 100, 10 * minute: 300, 40 * minute: 100}))
	tight.Objective = 10 * time.Second
	batch := base("batch-zero", 2*hour, pulses(0, 400, 3*minute, 30*minute))
	batch.Min, batch.Initial = 0, 0
	batched := base("batched10", hour, steps(map[int]float64{0: 50, 10 * minute: 400, 40 * minute: 50}))
	batched.Batch = 10
	hetero := base("heterogeneous", hour, steps(map[int]float64{0: 50, 10 * minute: 400, 40 * minute: 100}))
	hetero.Spread = 0.3
	async := base("async", hour, steps(map[int]float64{0: 50, 10 * minute: 400, 40 * minute: 50}))
	async.Asynchronous = true
	return []Scenario{
		{Scenario: step, Steps: []int{10 * minute, 40 * minute}},
		{Scenario: base("ramp", hour, ramp(20, 600, 5*minute, 45*minute))},
		{Scenario: base("diurnal24h", 24*hour, sine(300, 250, 24*hour))},
		{Scenario: base("spikes", 2*hour, pulses(50, 500, 2*minute, 20*minute))},
		{Scenario: batch},
		{Scenario: base("flood", hour, func(second float64) float64 {
			if second >= 600 && second < 610 {
				return 60000
			}
			return 20
		})},
		{Scenario: noisy},
		{Scenario: slowStart, Steps: []int{10 * minute, 40 * minute}},
		{Scenario: batched, Steps: []int{10 * minute, 40 * minute}},
		{Scenario: ioBound, Steps: []int{10 * minute, 40 * minute}},
		{Scenario: tight, Steps: []int{10 * minute, 40 * minute}},
		{Scenario: hetero, Steps: []int{10 * minute, 40 * minute}},
		{Scenario: async, Steps: []int{10 * minute, 40 * minute}},
	}
}

func pathologies() []Scenario {
	limited := base("ratelimit", 2*hour, steps(map[int]float64{0: 100, 20 * minute: 400, 80 * minute: 100}))
	limited.Downstream = plant.Constant(250)
	slow := base("slowdep", hour, plant.Constant(200))
	slow.Capacity = steps(map[int]float64{0: 50, 20 * minute: 20, 45 * minute: 50})
	poison := base("poison", hour, plant.Constant(100))
	poison.Poison = 0.002
	held := base("held-unacked", hour, plant.Constant(100))
	held.Held = 500
	capDrop := base("cap-drop", 2*hour, plant.Constant(300))
	capDrop.Downstream = steps(map[int]float64{0: 1e6, 30 * minute: 200, 70 * minute: 1e6})
	delayed := base("delayed", 2*hour, plant.Constant(100))
	delayed.Delayed, delayed.Delay = 0.5, 30*time.Minute
	markers := base("marker-never-zero", 2*hour, pulses(0, 100, 5*minute, 40*minute))
	markers.Min, markers.Initial, markers.Markers = 0, 0, 3
	hog := base("prefetch-hog", hour, steps(map[int]float64{0: 4, 10 * minute: 30, 40 * minute: 4}))
	hog.Capacity = plant.Constant(2)
	small := hog
	small.Name, small.ReceiveQueue = "prefetch-20", 20
	pathology := func(s plant.Scenario) Scenario { return Scenario{Scenario: s, Pathology: true} }
	return []Scenario{
		pathology(limited),
		{Scenario: slow},
		pathology(poison), pathology(held), pathology(capDrop), pathology(delayed),
		{Scenario: markers},
		{Scenario: hog},
		{Scenario: small},
	}
}

func faults() []Scenario {
	skew := base("failover-skew", hour, steps(map[int]float64{0: 50, 10 * minute: 300}))
	skew.Type, skew.Partitions = backlog.Failover, 12
	for i := range 12 {
		skew.Weights = append(skew.Weights, math.Pow(float64(i+1), -0.6))
	}
	keys := base("key-shared-churn", hour, sine(200, 150, 20*minute))
	keys.Type = backlog.KeyShared
	outage := base("outage", hour, steps(map[int]float64{0: 100, 25 * minute: 300}))
	outage.Outages = plant.Spans{{From: 20 * minute, To: 30 * minute}}
	partial := base("partial-partitions", hour, sine(200, 150, 30*minute))
	partial.Partitions, partial.Partial = 4, plant.Spans{{From: 15 * minute, To: 18 * minute}, {From: 40 * minute, To: 43 * minute}}
	resets := base("counter-reset", hour, sine(200, 100, 30*minute))
	for at := 5 * minute; at < hour; at += 5 * minute {
		resets.Resets = append(resets.Resets, at)
	}
	restarts := base("adapter-restart", hour, sine(200, 150, 30*minute))
	restarts.Restarts = []int{10 * minute, 20 * minute, 22 * minute, 40 * minute}
	onScale := base("restarts-on-scale", hour, sine(200, 150, 30*minute))
	onScale.RestartsOnScale = true
	pending := base("pods-pending", hour, steps(map[int]float64{0: 50, 10 * minute: 400, 40 * minute: 50}))
	pending.Pending = plant.Spans{{From: 10 * minute, To: 18 * minute}}
	crash := base("crash-loop", hour, plant.Constant(200))
	crash.Crashing = 0.3
	var all []Scenario
	for _, s := range []plant.Scenario{skew, keys, outage, partial, resets, restarts, onScale, pending, crash} {
		all = append(all, Scenario{Scenario: s})
	}
	return all
}
