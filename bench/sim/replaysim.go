// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	bench "github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/scenario"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/baseline"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

const (
	// draws is the number of simulations of a contender. The load of each begins a second later than that of the last:
	// when polls and syncs happen influences a run as much as the policy does, and a real run does not tell it. 30 s have
	// all phases of polls of 10 s and syncs of 15 s.
	draws = 30
	// none replaces 0, which the model reads as its default: replicas of bench run --local are all alike.
	none = 1e-3
	// usualStart is how long a replica takes to start beside local.startTime.
	usualStart = time.Second
)

// figures of a run, real or simulated.
type figures struct {
	ReplicaHours float64 `json:"replica_hours"`
	LatePct      float64 `json:"late_pct"`
	Actions      float64 `json:"actions"`
	MaxReplicas  float64 `json:"max_replicas"`
}

func (f *figures) each() []*float64 {
	return []*float64{&f.ReplicaHours, &f.LatePct, &f.Actions, &f.MaxReplicas}
}

// figuresOf are those of the real run.
func figuresOf(c bench.Contender) figures {
	return figures{
		ReplicaHours: c.Usage.ReplicaHours, LatePct: 100 * c.Messages.LateRatio,
		Actions: float64(c.Usage.ScaleChanges), MaxReplicas: float64(c.Usage.MostReplicas),
	}
}

// simulate returns the mean of all simulations of a contender, and the extremes of each figure.
func (p played) simulate(c scenario.Contender) (mean, low, high figures) {
	arriving := p.arriving()
	for draw := range draws {
		one := p.simulateOnce(c, arriving, draw)
		if draw == 0 {
			low, high = one, one
		}
		for i, value := range one.each() {
			*mean.each()[i] += *value / draws
			*low.each()[i] = min(*low.each()[i], *value)
			*high.each()[i] = max(*high.each()[i], *value)
		}
	}
	return mean, low, high
}

// arriving are the messages of each second, until the end of the watch.
func (p played) arriving() []float64 {
	all := make([]float64, int((p.schedule.End() + p.scenario.WatchAfter.Duration).Seconds()))
	for due := range p.schedule.Due() {
		all[min(len(all)-1, int(due.Seconds()))]++
	}
	return all
}

// simulateOnce simulates a load that begins after idle seconds, which do not count. Replicas are those of all stages
// together.
func (p played) simulateOnce(c scenario.Contender, arriving []float64, idle int) (r figures) {
	one := p.model(c, arriving, idle)
	replicas := make([]int32, len(arriving))
	for stage := range p.scenario.Function.Stages {
		next, score := baseline.After(one, one, p.controller(c), uint64(idle+stage)) //nolint:gosec // small
		r.LatePct = 100 * score.LateShare()                                          // of the only one
		for i, now := range score.Trace[idle:] {
			replicas[i] += now
		}
		one = next
	}
	if p.scenario.Function.Stages > 1 {
		r.LatePct = 100 * p.lateShare(arriving, func(second int) float64 { return one.Rate(float64(idle + second)) })
	}
	for i, now := range replicas {
		if i > 0 && now != replicas[i-1] {
			r.Actions++
		}
		r.MaxReplicas = max(r.MaxReplicas, float64(now))
		r.ReplicaHours += float64(now) / time.Hour.Seconds()
	}
	return r
}

// lateShare is the share of the messages that leave the last stage later than the objective, or never: in the order in
// which they arrive.
func (p played) lateShare(arriving []float64, left func(second int) float64) float64 {
	objective := int(p.scenario.Objective().Seconds())
	var arrived, late, done float64
	next := 0 // done is what left before
	for second, count := range arriving {
		for ; next <= min(second+objective, len(arriving)-1); next++ {
			done += left(next)
		}
		arrived += count
		late += min(count, max(0, arrived-done))
	}
	return late / arrived
}

// model is the scenario for the simulator.
func (p played) model(c scenario.Contender, arriving []float64, idle int) model.Scenario {
	s := p.scenario
	initial := max(1, *s.MinReplicas)
	if c.Fixed != nil {
		initial = c.Fixed.Replicas
	}
	batching := s.Messages.Batching
	together := 1 + batching.MaxDelay.Seconds()*p.schedule.Messages(p.schedule.End())/p.schedule.End().Seconds()
	return model.Scenario{
		Name: s.Metadata.Name, Seconds: idle + len(arriving), Exact: true,
		Rate: func(second float64) float64 {
			if at := int(second) - idle; at >= 0 {
				return arriving[at]
			}
			return 0
		},
		Capacity: model.Constant(1 / s.Function.ServiceTime.Seconds()), Spread: none, Objective: s.LatencyObjective.Duration,
		Initial: int(initial), Min: int(*s.MinReplicas), Max: int(s.MaxReplicas),
		Start: s.Local.StartTime.Duration + usualStart, StartSpread: none, WarmUp: none,
		Partitions: max(1, s.Partitions), ReceiveQueue: float64(s.Function.ReceiverQueueSize),
		Batch: min(float64(batching.MaxMessages), together),
	}
}

// controller is the model of a contender.
func (p played) controller(c scenario.Contender) baseline.New {
	switch {
	case c.Policy != nil:
		return baseline.Policy(v1alpha1.AutoscalingPolicySpec{ScalingSpec: bench.Scaling(p.scenario, *c.Policy)})
	case c.KEDAPulsar != nil:
		return baseline.KEDA(float64(c.KEDAPulsar.Threshold), p.scenario.CooldownPeriod.Duration)
	case c.CPU != nil:
		return baseline.CPU
	default:
		return baseline.Fixed(int(c.Fixed.Replicas))
	}
}
