// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/testbed"
)

// score is the result of a run, real or simulated; the simulator's is the mean of its runs. Nil is unknown.
type score struct {
	ReplicaHours *float64 `json:"replica_hours"`
	LatePct      *float64 `json:"late_pct"`
	Actions      *float64 `json:"actions"`
	MaxReplicas  *float64 `json:"max_replicas"`
}

// score returns the score of the real run. Messages that were not processed at the end are late.
func (o outcome) score() score {
	usage := testbed.UsageOf(testbed.Between(o.timeline, o.begun, o.ended), o.ended)
	s := score{
		ReplicaHours: known(usage.Paid.Hours()), Actions: known(float64(usage.Changes)),
		MaxReplicas: known(float64(usage.Most)),
	}
	if o.published > 0 {
		undone := float64(max(0, o.published-int64(o.done)))
		s.LatePct = known(100 * (float64(o.late) + undone) / float64(o.published))
	}
	return s
}

// trace has a value for every second of the load.
type trace struct {
	// Rate is the planned load in messages per second, and Arrived the messages published in each second; earlier reports
	// have no Arrived.
	Rate    []float64 `json:"rate"`
	Arrived []float64 `json:"arrived,omitempty"`
	// Real and Sim are requested replicas that have not ended; Sim is the mean of all runs, with the minimum and maximum.
	// RealConsuming are those that consumed.
	Real          []float64 `json:"real"`
	RealConsuming []float64 `json:"real_consuming"`
	Sim           []float64 `json:"sim"`
	SimLow        []float64 `json:"sim_low"`
	SimHigh       []float64 `json:"sim_high"`
	// RealBacklog and SimBacklog are published messages that are not processed.
	RealBacklog []float64 `json:"real_backlog"`
	SimBacklog  []float64 `json:"sim_backlog"`
}

// real returns the part that was not simulated.
func (t trace) real() trace {
	return trace{
		Rate: t.Rate, Arrived: t.Arrived, Real: t.Real, RealConsuming: t.RealConsuming,
		RealBacklog: t.RealBacklog,
	}
}

// trace returns the trace of the real run, with the state at the end of each second.
func (o outcome) trace() trace {
	var t trace
	lived := testbed.Between(o.timeline, o.begun, o.ended)
	counts := o.counts
	state, backlog, rate := lived[0], int64(0), o.scenario.rate()
	for second := range o.scenario.seconds() {
		end := time.Duration(second+1) * time.Second
		for len(lived) > 0 && !lived[0].Time.After(o.begun.Add(end)) {
			state, lived = lived[0], lived[1:]
		}
		for len(counts) > 0 && counts[0].at <= end {
			backlog, counts = max(0, counts[0].published-counts[0].done), counts[1:] // a replica may report first
		}
		t.Rate = append(t.Rate, rate(float64(second)))
		t.Real = append(t.Real, float64(state.Started))
		t.RealConsuming = append(t.RealConsuming, float64(state.Ready))
		t.RealBacklog = append(t.RealBacklog, float64(backlog))
	}
	t.Arrived = o.arrived()
	return t
}

// arrived returns the messages published in each second. Samples are about a second apart, and messages between two
// samples are spread evenly. Those after the last sample count as of the last.
func (o outcome) arrived() []float64 {
	if len(o.counts) == 0 {
		return nil
	}
	until := func(second float64) float64 {
		last := counted{}
		for _, c := range o.counts {
			if c.at.Seconds() >= second {
				share := (second - last.at.Seconds()) / (c.at - last.at).Seconds()
				return float64(last.published) + share*float64(c.published-last.published)
			}
			last = c
		}
		return float64(o.published)
	}
	var all []float64
	before := 0.0
	for second := range o.scenario.seconds() {
		now := until(float64(second + 1))
		all = append(all, max(0, now-before))
		before = now
	}
	return all
}
