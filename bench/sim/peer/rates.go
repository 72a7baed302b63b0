// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package peer

import (
	"math"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/plant"
)

// rates are differences of counters between two looks.
type rates struct {
	before plant.Rough
	at     int
	known  bool
}

// observed is what happened since the last look, a second.
type observed struct{ arrivals, processed, busy float64 }

// look returns the rates since the last look; false when a counter went back, or there was none.
func (r *rates) look(w *plant.World) (observed, bool) {
	seen, err := w.Rough()
	if err != nil {
		return observed{}, false
	}
	before, since, known := r.before, float64(w.Second()-r.at), r.known
	r.before, r.at, r.known = seen, w.Second(), true
	if !known || since <= 0 || seen.Published < before.Published || seen.Processed < before.Processed || seen.Consuming < before.Consuming {
		return observed{}, false
	}
	return observed{
		arrivals: (seen.Published - before.Published) / since, processed: (seen.Processed - before.Processed) / since,
		busy: (seen.Busy - before.Busy) / since,
	}, true
}

// ds2 sizes for the arrivals by what replicas do in the time that they are busy, and half as much again.
//
// Source: Kalavri et al., Three steps is all you need, OSDI 2018.
type ds2 struct {
	rates rates
	warm  int
}

func newDS2(plant.Scenario) Controller { return &ds2{} }

func (d *ds2) Replicas(w *plant.World) int {
	const interval, margin = 10, 1.5
	if w.Replicas() == 0 {
		return 1 // it has no notion of zero
	}
	if !every(interval, w) {
		return w.Replicas()
	}
	seen, ok := d.rates.look(w)
	if !ok || seen.busy <= 0 || seen.processed <= 0 {
		return w.Replicas()
	}
	if d.warm++; d.warm <= 2 {
		return w.Replicas()
	}
	return max(1, bound(math.Ceil(seen.arrivals/(seen.processed/seen.busy)*margin), w.Scenario()))
}

// flink is the autoscaler of the Flink Kubernetes operator with a window of 60 s instead of 15 min, 300 s before it scales
// down, catch-up within 120 s, restarts of 25 s and utilisation 0.8 between 0.6 and 0.9.
//
// Source: flink-kubernetes-operator, module flink-autoscaler, ScalingMetricEvaluator and JobVertexScaler.
type flink struct {
	rates  rates
	seen   []observed
	quiet  int
	downBy []moment
}

func newFlink(plant.Scenario) Controller { return &flink{} }

// Its settings, in seconds and shares of a replica.
const (
	flinkInterval, flinkWindow, flinkStable, flinkDown = 15, 60, 15, 300
	flinkCatchUp, flinkRestart                         = 120.0, 25.0
	flinkTarget, flinkLowest, flinkHighest             = 0.8, 0.6, 0.9
)

func (f *flink) Replicas(w *plant.World) int {
	current := w.Replicas()
	if current == 0 {
		return 1 // it has no notion of zero
	}
	if !every(flinkInterval, w) || w.Second() < f.quiet {
		return current
	}
	one, ok := f.rates.look(w)
	rough, err := w.Rough()
	if !ok || err != nil || rough.Consuming == 0 {
		return current
	}
	f.seen = append(f.seen, one)
	if len(f.seen) < flinkWindow/flinkInterval {
		return current
	}
	f.seen = f.seen[len(f.seen)-flinkWindow/flinkInterval:]
	want, ok := f.want(w, rough)
	if !ok {
		return current
	}
	want = f.stabilize(w, want)
	if want != current {
		f.quiet, f.seen = w.Second()+flinkStable, nil
	}
	return max(1, want)
}

// want is what the window asks for: what there is while that is within the bounds of utilisation.
func (f *flink) want(w *plant.World, rough plant.Rough) (replicas int, ok bool) {
	mean, n := observed{}, float64(len(f.seen))
	for _, o := range f.seen {
		mean.arrivals, mean.processed, mean.busy = mean.arrivals+o.arrivals/n, mean.processed+o.processed/n, mean.busy+o.busy/n
	}
	if mean.busy <= 0 || mean.processed <= 0 {
		return 0, false
	}
	lag := rough.Entries
	each := mean.processed / mean.busy // true processing rate of one
	if lag >= 30*mean.processed {      // saturated: what it does is what it can
		each = mean.processed / float64(rough.Consuming)
	}
	capacity := func(use, restart float64) float64 {
		return lag/flinkCatchUp + mean.arrivals*restart/flinkCatchUp + mean.arrivals/use
	}
	have := each * float64(w.Replicas())
	if have >= capacity(flinkHighest, 0) && have <= capacity(flinkLowest, flinkRestart) {
		return w.Replicas(), true
	}
	return bound(math.Ceil(capacity(flinkTarget, flinkRestart)/each), w.Scenario()), true
}

// stabilize goes down to no less than the largest number of the last five minutes.
func (f *flink) stabilize(w *plant.World, want int) int {
	f.downBy = append(f.downBy, moment{float64(w.Second()), want})
	for f.downBy[0].second < float64(w.Second()-flinkDown) {
		f.downBy = f.downBy[1:]
	}
	for _, a := range f.downBy {
		want = max(want, min(w.Replicas(), a.replicas))
	}
	return want
}

// simple is the plain form of the capacity model, with fresh signals: what every refinement has to beat.
type simple struct {
	rates              rates
	arrivals, capacity float64
	downBy             []moment
}

func newSimple(plant.Scenario) Controller { return &simple{} }

func (s *simple) Replicas(w *plant.World) int {
	const interval, window, use, drain = 15, 120, 0.7, 2
	current := w.Replicas()
	if !every(interval, w) {
		return current
	}
	waiting, err := ready(w)
	if err != nil {
		return current
	}
	seen, ok := s.rates.look(w)
	if !ok {
		return current
	}
	s.learn(seen)
	ready := max(0, waiting-5*s.arrivals)
	if s.capacity == 0 {
		if ready > 10*s.arrivals && current > 0 {
			return bound(2*float64(current), w.Scenario())
		}
		return max(current, bound(math.Min(1, ready), w.Scenario()))
	}
	need := math.Max(s.arrivals/(use*s.capacity), (s.arrivals+ready/(drain*w.Scenario().Objective.Seconds()))/s.capacity)
	want := bound(math.Ceil(need-1e-9), w.Scenario())
	s.downBy = append(s.downBy, moment{float64(w.Second()), want})
	for s.downBy[0].second < float64(w.Second()-window) {
		s.downBy = s.downBy[1:]
	}
	for _, a := range s.downBy {
		want = max(want, min(current, a.replicas))
	}
	return want
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

// ready messages: entries turned into messages, without delayed ones.
func ready(w *plant.World) (float64, error) {
	sum := 0.0
	for topic := range w.Scenario().Topics() {
		sample, err := w.TopicSample(topic)
		if err != nil {
			return 0, err
		}
		for _, p := range sample.Partitions {
			for _, s := range p.Subscriptions {
				sum += float64(s.BacklogEntries)*w.Scenario().Batch - float64(s.DelayedMessages)
			}
		}
	}
	return max(0, sum), nil
}
