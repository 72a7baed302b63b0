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
	// draws is the number of simulations of a scenario: replicas and their starts vary, and so do polls and syncs where
	// the timetable is unknown.
	draws = 30
	// pollInterval and syncInterval are the shipped values of the adapter and the HPA controller, in seconds; polls vary
	// by up to pollJitter of the interval.
	pollInterval, syncInterval, pollJitter = 10.0, 15.0, 0.1
	// drainSeconds follow without arrivals, as in the real run.
	drainSeconds = 180
)

// simulated is the result of all simulations of a scenario.
type simulated struct {
	figures
	// replicas and backlog by second: the mean, and for replicas the extremes.
	replicas, least, most, backlog []float64
	// anyTime are the figures at random poll and sync times.
	anyTime figures
}

// figures are the mean of a score over some runs, with the extremes.
type figures struct {
	Mean score `json:"mean"`
	Low  score `json:"low"`
	High score `json:"high"`
}

// simulate runs the scenario with the measurements and the messages that arrived; with nil, the planned load. Polls,
// scrapes and syncs happen at the times of the real run if these are known.
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

// anyTimetable draws phases that are independent of the load.
func anyTimetable(s scenario, draw int) baseline.Timetable {
	luck := rand.New(rand.NewPCG(uint64(draw), 3)) //nolint:gosec // a reproducible model
	until := float64(s.seconds() + drainSeconds)
	wander := func() float64 { return pollInterval * (1 + pollJitter*(2*luck.Float64()-1)) }
	steady := func() float64 { return syncInterval }
	return baseline.Timetable{
		Polls:   goOn([]float64{pollInterval * luck.Float64()}, until, wander),
		Scrapes: goOn([]float64{pollInterval * luck.Float64()}, until, wander),
		Syncs:   goOn([]float64{syncInterval * luck.Float64()}, until, steady),
	}
}

// within places each event at a random time between the two readings of the counters around it. After the load, events
// continue at the shipped intervals.
func (t timetable) within(s scenario, draw int) baseline.Timetable {
	luck := rand.New(rand.NewPCG(uint64(draw), 4)) //nolint:gosec // a reproducible model
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

// goOn extends at least one time at the interval.
func goOn(times []float64, until float64, interval func() float64) (all []time.Duration) {
	for _, at := range times {
		all = append(all, time.Duration(at*float64(time.Second)))
	}
	for at := times[len(times)-1] + interval(); at < until; at += interval() {
		all = append(all, time.Duration(at*float64(time.Second)))
	}
	return all
}

// simRun is one simulation.
type simRun struct {
	hours, late, actions, most float64
	replicas, backlog          []float64
}

// modelOf returns the scenario for the simulator. Planned values replace missing measurements.
func modelOf(s scenario, m measured, arrived []float64) model.Scenario {
	start := or(m.StartSeconds, s.startDelay.Seconds()+usualStart.Seconds())
	rate := s.rate()
	p := model.Scenario{
		Name: s.name, Seconds: s.seconds() + drainSeconds, Exact: true, // the publisher keeps time
		Rate: func(second float64) float64 {
			switch at := int(second); {
			case at >= s.seconds():
				return 0
			case at < len(arrived):
				return arrived[at]
			default:
				return rate(second)
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
	// usualStart is the usual start time of a replica in addition to its delay, Light or Java.
	usualStart = 2 * time.Second
	// halfSecond is how much shorter a start is in the model, on average: it scales at the end of a second, and rounds up
	// from its beginning.
	halfSecond = 0.5
	// none replaces 0, which the model reads as its default.
	none = 1e-3
)

// warmUp returns the seconds from half to full speed for a replica with this share of its later speed in its first ten
// seconds.
func warmUp(speed float64) float64 {
	const first, slowest = 10, 60
	switch {
	case speed >= 1:
		return 0
	case speed >= 0.75: // the warm-up ends within them, and a quarter of it is lost
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

// span is the mean, the minimum and the maximum of a number over the runs.
func span[T any](runs []T, of func(T) float64) (mean, low, high float64) {
	low, high = of(runs[0]), of(runs[0])
	for _, r := range runs {
		value := of(r)
		mean += value
		low, high = min(low, value), max(high, value)
	}
	return mean / float64(len(runs)), low, high
}
