// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/testbed"
)

// score is how a run went in either world; the simulator's is the mean of its runs. What is nil is unknown.
type score struct {
	ReplicaHours *float64 `json:"replica_hours"`
	LatePct      *float64 `json:"late_pct"`
	Actions      *float64 `json:"actions"`
	MaxReplicas  *float64 `json:"max_replicas"`
}

// score of the real run. Messages that were not done at the end are late.
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

// trace has a value for every second since the load began.
type trace struct {
	// Rate is what the load was meant to be, in messages per second, and Arrived what was published in each second;
	// none in reports that did not have it.
	Rate    []float64 `json:"rate"`
	Arrived []float64 `json:"arrived,omitempty"`
	// Real and Sim are replicas that were asked for and have not ended; Sim is the mean of all runs, beside the least
	// and the most of them. RealConsuming are those that consumed.
	Real          []float64 `json:"real"`
	RealConsuming []float64 `json:"real_consuming"`
	Sim           []float64 `json:"sim"`
	SimLow        []float64 `json:"sim_low"`
	SimHigh       []float64 `json:"sim_high"`
	// RealBacklog and SimBacklog are messages that were published and are not done.
	RealBacklog []float64 `json:"real_backlog"`
	SimBacklog  []float64 `json:"sim_backlog"`
}

// real is the part that was not simulated.
func (t trace) real() trace {
	return trace{
		Rate: t.Rate, Arrived: t.Arrived, Real: t.Real, RealConsuming: t.RealConsuming,
		RealBacklog: t.RealBacklog,
	}
}

// trace of the real run: what held at the end of each second.
func (o outcome) trace() trace {
	var t trace
	lived := testbed.Between(o.timeline, o.begun, o.ended)
	counts := o.counts
	state, backlog := lived[0], int64(0)
	for second := range o.scenario.seconds() {
		end := time.Duration(second+1) * time.Second
		for len(lived) > 0 && !lived[0].Time.After(o.begun.Add(end)) {
			state, lived = lived[0], lived[1:]
		}
		for len(counts) > 0 && counts[0].at <= end {
			backlog, counts = max(0, counts[0].published-counts[0].done), counts[1:] // a replica may tell first
		}
		t.Rate = append(t.Rate, o.scenario.rate(float64(second)))
		t.Real = append(t.Real, float64(state.Started))
		t.RealConsuming = append(t.RealConsuming, float64(state.Ready))
		t.RealBacklog = append(t.RealBacklog, float64(backlog))
	}
	t.Arrived = o.arrived()
	return t
}

// arrived is what was published in each second, where looks are a second apart by and large: between two of them it is
// taken to have come evenly, and what was published after the last of them came with the last.
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
