// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/peer"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/plant"
)

const (
	// phases are all ways that polls each 10 s and syncs each 15 s can lie to the load: the load begins that many seconds
	// later, and is as at its beginning until then.
	phases = 30
	// controller is the product's policy.
	controller = "capacity"
	// drainSeconds follow without arrivals, as in the real world.
	drainSeconds = 180
)

// simulated are all runs of a scenario.
type simulated struct {
	mean, low, high score
	// replicas and backlog by second: mean, and for replicas the extremes.
	replicas, least, most, backlog []float64
}

// simulate runs the scenario with the facts that were measured.
func simulate(s scenario, m measured) simulated {
	all := make([]simRun, 0, phases)
	for phase := range phases {
		all = append(all, simulateOnce(s, m, phase))
	}
	return fold(all)
}

// simRun is one run.
type simRun struct {
	hours, late, actions, most float64
	replicas, backlog          []float64
}

// plantOf is the simulator's scenario. What was not measured is as it was meant to be.
func plantOf(s scenario, m measured, phase int) plant.Scenario {
	start := or(m.StartSeconds, s.startDelay.Seconds()+usualStart.Seconds())
	p := plant.Scenario{
		Name: s.name, Seconds: phase + s.seconds() + drainSeconds,
		Rate: func(second float64) float64 {
			if second >= float64(phase+s.seconds()) {
				return 0
			}
			return s.rate(max(0, second-float64(phase)))
		},
		Capacity: plant.Constant(or(m.CapacityPerReplica, 1/s.serviceTime.Seconds())), Spread: max(none, or(m.CapacitySpread, 0)),
		Objective: objective, Initial: 1, Min: 1, Max: s.maxReplicas,
		Start:      time.Duration(max(0, start-halfSecond) * float64(time.Second)),
		Partitions: max(1, s.partitions), Batch: or(m.MessagesPerEntry, 1),
		StartSpread: max(none, or(m.StartSpread, 0)), WarmUp: none, Measured: or(m.BusyAtSaturation, 1),
	}
	if m.WarmUpSpeed != nil {
		p.WarmUp = max(none, warmUp(*m.WarmUpSpeed))
	}
	return p
}

const (
	// usualStart is what a replica was seen to take on top of its delay, Light or Java.
	usualStart = 2 * time.Second
	// halfSecond is what the plant adds to a start on average, for it goes by whole seconds.
	halfSecond = 0.5
	// none is as good as 0, which the plant takes for its default.
	none = 1e-3
)

// warmUp is how many seconds a replica takes from half to full speed that in its first ten does this share of what it
// does later.
func warmUp(speed float64) float64 {
	const first, slowest = 10, 60
	switch {
	case speed >= 1:
		return 0
	case speed >= 0.75: // it is warm before they are over: the quarter of the warm-up is missing
		return 4 * first * (1 - speed)
	default:
		return min(slowest, first/(4*max(none, speed-0.5)))
	}
}

func or(value *float64, otherwise float64) float64 {
	if value == nil {
		return otherwise
	}
	return *value
}

func simulateOnce(s scenario, m measured, phase int) simRun {
	world := plant.New(plantOf(s, m, phase), uint64(phase)) //nolint:gosec // small
	var decide peer.Controller
	for _, named := range peer.All() {
		if named.Name == controller {
			decide = named.New(world.Scenario())
		}
	}
	var r simRun
	for range world.Scenario().Seconds {
		world.Step()
		r.backlog = append(r.backlog, world.Processable())
		world.Scale(decide.Replicas(world))
	}
	score := world.Score()
	r.late = 100 * score.LateShare()
	r.backlog = r.backlog[phase:][:s.seconds()]
	before := score.Trace[max(0, phase-1)]
	for _, now := range score.Trace[phase:][:s.seconds()] {
		if now != before {
			r.actions++
		}
		before = now
		r.most = max(r.most, float64(now))
		r.hours += float64(now) / time.Hour.Seconds()
		r.replicas = append(r.replicas, float64(now))
	}
	return r
}

// fold is the mean of the runs, with the extremes.
func fold(runs []simRun) simulated {
	var s simulated
	figure := func(pick func(score *score) **float64, of func(simRun) float64) {
		mean, low, high := span(runs, of)
		*pick(&s.mean), *pick(&s.low), *pick(&s.high) = &mean, &low, &high
	}
	figure(func(s *score) **float64 { return &s.ReplicaHours }, func(r simRun) float64 { return r.hours })
	figure(func(s *score) **float64 { return &s.LatePct }, func(r simRun) float64 { return r.late })
	figure(func(s *score) **float64 { return &s.Actions }, func(r simRun) float64 { return r.actions })
	figure(func(s *score) **float64 { return &s.MaxReplicas }, func(r simRun) float64 { return r.most })
	for second := range runs[0].replicas {
		mean, low, high := span(runs, func(r simRun) float64 { return r.replicas[second] })
		waiting, _, _ := span(runs, func(r simRun) float64 { return r.backlog[second] })
		s.replicas, s.least, s.most = append(s.replicas, mean), append(s.least, low), append(s.most, high)
		s.backlog = append(s.backlog, waiting)
	}
	return s
}

// span is the mean of a number over the runs, the least and the most.
func span[T any](runs []T, of func(T) float64) (mean, low, high float64) {
	low, high = of(runs[0]), of(runs[0])
	for _, r := range runs {
		value := of(r)
		mean += value
		low, high = min(low, value), max(high, value)
	}
	return mean / float64(len(runs)), low, high
}
