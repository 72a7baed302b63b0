// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package rival

import (
	"math"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/baseline"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

// rates are differences of counters between two polls.
type rates struct {
	before model.Rough
	at     int
	known  bool
}

// observed is what happened since the last poll, per second.
type observed struct{ arrivals, processed, busy float64 }

// look returns the rates since the last poll; false after a counter reset, or without a previous poll.
func (r *rates) look(system *model.System) (observed, bool) {
	seen, err := system.Rough()
	if err != nil {
		return observed{}, false
	}
	before, since, known := r.before, float64(system.Second()-r.at), r.known
	r.before, r.at, r.known = seen, system.Second(), true
	if !known || since <= 0 || seen.Published < before.Published || seen.Processed < before.Processed ||
		seen.Consuming < before.Consuming {
		return observed{}, false
	}
	return observed{
		arrivals: (seen.Published - before.Published) / since, processed: (seen.Processed - before.Processed) / since,
		busy: (seen.Busy - before.Busy) / since,
	}, true
}

// ds2 sizes for the arrivals by the processing rate of replicas while they are busy, plus a margin. It evaluates every
// 10 s and ignores two evaluations after each change: the example settings of its authors.
//
// Source: Kalavri et al., Three steps is all you need, OSDI 2018; strymon-system/ds2.
type ds2 struct {
	rates  rates
	factor float64
	warm   int
}

func newDS2(more float64) baseline.New {
	return func(model.Scenario) baseline.Controller { return &ds2{factor: 1 + more} }
}

func (d *ds2) Replicas(system *model.System) int {
	const interval, warmUp = 10, 2
	current := system.Replicas()
	if current == 0 {
		return 1 // it never scales to zero
	}
	if !baseline.Every(interval, system) {
		return current
	}
	seen, ok := d.rates.look(system)
	if !ok || seen.busy <= 0 || seen.processed <= 0 {
		return current
	}
	if d.warm++; d.warm <= warmUp {
		return current
	}
	want := max(1, bound(math.Ceil(seen.arrivals/(seen.processed/seen.busy)*d.factor), system.Scenario()))
	if want != current {
		d.warm = 0
	}
	return want
}

// simple is the plain form of the capacity model, with fresh signals: every refinement has to beat it.
type simple struct {
	rates              rates
	arrivals, capacity float64
	recent             baseline.Window
}

func newSimple(model.Scenario) baseline.Controller {
	return &simple{recent: baseline.Window{Seconds: 120}}
}

func (s *simple) Replicas(system *model.System) int {
	const interval, use, drain = 15, 0.7, 2
	current := system.Replicas()
	if !baseline.Every(interval, system) {
		return current
	}
	waiting, err := ready(system)
	if err != nil {
		return current
	}
	seen, ok := s.rates.look(system)
	if !ok {
		return current
	}
	s.learn(seen)
	ready := max(0, waiting-5*s.arrivals)
	if s.capacity == 0 {
		if ready > 10*s.arrivals && current > 0 {
			return bound(2*float64(current), system.Scenario())
		}
		return max(current, bound(math.Min(1, ready), system.Scenario()))
	}
	drained := s.arrivals + ready/(drain*system.Scenario().Objective.Seconds())
	need := math.Max(s.arrivals/(use*s.capacity), drained/s.capacity)
	want := bound(math.Ceil(need-1e-9), system.Scenario())
	return s.recent.Held(float64(system.Second()), current, want)
}

func (s *simple) learn(seen observed) {
	if seen.arrivals > 1.3*s.arrivals {
		s.arrivals = seen.arrivals
	} else {
		s.arrivals += 0.5 * (seen.arrivals - s.arrivals)
	}
	if seen.busy < 0.05 || seen.processed <= 0 {
		return
	}
	if s.capacity == 0 {
		s.capacity = seen.processed / seen.busy
	}
	s.capacity += 0.3 * (seen.processed/seen.busy - s.capacity)
}

// ready messages: entries converted to messages, without delayed ones.
func ready(system *model.System) (float64, error) {
	sum := 0.0
	for topic := range system.Scenario().Topics() {
		sample, err := system.TopicSample(topic)
		if err != nil {
			return 0, err
		}
		for _, p := range sample.Partitions {
			for _, s := range p.Subscriptions {
				sum += float64(s.BacklogEntries)*system.Scenario().Batch - float64(s.DelayedMessages)
			}
		}
	}
	return max(0, sum), nil
}
