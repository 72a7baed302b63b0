// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math/rand/v2"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/baseline"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/sim/model"
)

const (
	// draws are how often a scenario is simulated: replicas and their starts differ, and where the real run's timetable
	// is not known, polls and syncs too.
	draws = 30
	// pollInterval and syncInterval are the adapter's and the HPA controller's as they ship, in seconds; polls wander
	// by up to pollJitter of the interval either way.
	pollInterval, syncInterval, pollJitter = 10.0, 15.0, 0.1
	// drainSeconds follow without arrivals, as in the real system.
	drainSeconds = 180
)

// simulated are all runs of a scenario.
type simulated struct {
	figures
	// replicas and backlog by second: mean, and for replicas the extremes.
	replicas, least, most, backlog []float64
	// anyTime is how the scenario goes with polls and syncs at any times instead of those of the real run.
	anyTime figures
}

// figures are the mean of a score over some runs, with the extremes.
type figures struct {
	Mean score `json:"mean"`
	Low  score `json:"low"`
	High score `json:"high"`
}

// simulate runs the scenario with the facts that were measured and what arrived, nil for what was meant to: polls,
// scrapes and syncs come when they came in the real run, as far as that is known.
func simulate(s scenario, m measured, arrived []float64) simulated {
	var own, others []simRun
	for draw := range draws {
		others = append(others, simulateOnce(s, m, arrived, anyTimetable(s, draw), draw))
		if m.Timetable.known() {
			own = append(own, simulateOnce(s, m, arrived, m.Timetable.within(s, draw), draw))
		}
	}
	if !m.Timetable.known() {
		own = others
	}
	all := fold(own)
	all.anyTime = fold(others).figures
	return all
}

// anyTimetable has phases that the load knows nothing of.
func anyTimetable(s scenario, draw int) baseline.Timetable {
	luck := rand.New(rand.NewPCG(uint64(draw), 3)) //nolint:gosec // a model, to be repeated
	until := float64(s.seconds() + drainSeconds)
	wander := func() float64 { return pollInterval * (1 + pollJitter*(2*luck.Float64()-1)) }
	steady := func() float64 { return syncInterval }
	return baseline.Timetable{
		Polls:   goOn([]float64{pollInterval * luck.Float64()}, until, wander),
		Scrapes: goOn([]float64{pollInterval * luck.Float64()}, until, wander),
		Syncs:   goOn([]float64{syncInterval * luck.Float64()}, until, steady),
	}
}

// within is the timetable with each look at some time between the two of the adapter's counters that it was seen
// between. After the load it goes on as usual.
func (t timetable) within(s scenario, draw int) baseline.Timetable {
	luck := rand.New(rand.NewPCG(uint64(draw), 4)) //nolint:gosec // a model, to be repeated
	until := float64(s.seconds() + drainSeconds)
	moved := func(times []float64) (all []float64) {
		for _, at := range times {
			all = append(all, max(0, at+listenEvery.Seconds()*(luck.Float64()-0.5)))
		}
		return all
	}
	poll, sync := func() float64 { return pollInterval }, func() float64 { return syncInterval }
	return baseline.Timetable{
		Polls: goOn(moved(t.Polls), until, poll), Scrapes: goOn(moved(t.Scrapes), until, poll), Syncs: goOn(moved(t.Syncs),
			until, sync),
	}
}

// goOn adds times to at least one, each so much after the one before.
func goOn(times []float64, until float64, interval func() float64) (all []time.Duration) {
	for _, at := range times {
		all = append(all, time.Duration(at*float64(time.Second)))
	}
	for at := times[len(times)-1] + interval(); at < until; at += interval() {
		all = append(all, time.Duration(at*float64(time.Second)))
	}
	return all
}

// simRun is one run.
type simRun struct {
	hours, late, actions, most float64
	replicas, backlog          []float64
}

// modelOf is the simulator's scenario. What was not measured is as it was meant to be.
func modelOf(s scenario, m measured, arrived []float64) model.Scenario {
	start := or(m.StartSeconds, s.startDelay.Seconds()+usualStart.Seconds())
	p := model.Scenario{
		Name: s.name, Seconds: s.seconds() + drainSeconds, Exact: true, // the publisher keeps time
		Rate: func(second float64) float64 {
			switch at := int(second); {
			case at >= s.seconds():
				return 0
			case at < len(arrived):
				return arrived[at]
			default:
				return s.rate(second)
			}
		},
		Capacity: model.Constant(or(m.CapacityPerReplica, 1/s.serviceTime.Seconds())), Spread: max(none,
			or(m.CapacitySpread, 0)),
		Objective: s.objective, Initial: 1, Min: 1, Max: s.maxReplicas,
		Start:      time.Duration((start + halfSecond) * float64(time.Second)),
		Partitions: max(1, s.partitions), Batch: or(m.MessagesPerEntry, 1),
		StartSpread: max(none, or(m.StartSpread, 0)), WarmUp: none, Measured: or(m.BusyAtSaturation, 1),
		Slack: max(0, or(m.CallSlack, 0)),
	}
	if m.WarmUpSpeed != nil {
		p.WarmUp = max(none, warmUp(*m.WarmUpSpeed))
	}
	return p
}

const (
	// usualStart is what a replica was seen to take on top of its delay, Light or Java.
	usualStart = 2 * time.Second
	// halfSecond is what the model takes off a start on average: it scales at the end of a second, and rounds up from
	// its beginning.
	halfSecond = 0.5
	// none is as good as 0, which the model takes for its default.
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

func simulateOnce(s scenario, m measured, arrived []float64, times baseline.Timetable, draw int) simRun {
	system := model.New(modelOf(s, m, arrived), uint64(draw)) //nolint:gosec // small
	decide := baseline.At(times)(system.Scenario())
	var r simRun
	for range system.Scenario().Seconds {
		system.Step()
		r.backlog = append(r.backlog, system.Processable())
		system.Scale(decide.Replicas(system))
	}
	score := system.Score()
	r.late = 100 * score.LateShare()
	r.backlog = r.backlog[:s.seconds()]
	before := score.Trace[0]
	for _, now := range score.Trace[:s.seconds()] {
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
		*pick(&s.Mean), *pick(&s.Low), *pick(&s.High) = &mean, &low, &high
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
