// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"math"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Outlook is what the replicas of a Function process now, and will once all that are ordered consume. The next Function
// of a pipeline has to expect it.
type Outlook struct {
	// Processed now, and Expected From then on, in messages per second: the same while no replica starts.
	Processed, Expected float64
	From                time.Time
	// Stages that it is derived from, one after the other.
	Stages int
}

// Plus is the outlook of two Functions together, from the later of both times on.
func (o Outlook) Plus(other Outlook) Outlook {
	if other.From.After(o.From) {
		o.From = other.From
	}
	return Outlook{o.Processed + other.Processed, o.Expected + other.Expected, o.From, max(o.Stages, other.Stages)}
}

// News is the difference that counts, as a share of a rate.
const News = 0.05

// Rises reports whether more is expected than is processed now.
func (o Outlook) Rises() bool { return o.Expected > (1+News)*o.Processed }

func outlook(in Input, after State, decided int32) *Outlook {
	processed, err := processRate(in.Reading)
	ready, unknown := in.Reading.Ready.LowerBound()
	if err != nil || unknown != nil || after.Arrivals == nil || after.Capacity == nil ||
		in.Reading.Type == backlog.Failover {
		return nil
	}
	o := Outlook{Processed: processed, Expected: processed, From: in.Now, Stages: 1}
	l := newLoad(in, after, ready)
	l.current = float64(decided)
	if l.current <= l.consuming || l.overdue {
		return &o
	}
	if decided > in.CurrentReplicas {
		l.starting = l.start + in.Sync().Seconds()
	}
	if in.Upstream != nil && l.expected > l.arriving {
		o.Stages += in.Upstream.Stages
	}
	o.From = in.Now.Add(fromSeconds(l.starting))
	waiting := max(l.arriving, l.expected) + l.excessAfter(l.starting)/l.drain
	o.Expected = max(processed, min(l.current*l.capacity, waiting))
	return &o
}

// Upstream is what was learned about the Functions that publish to the topics of the subscription.
type Upstream struct {
	// PerMessage is how many messages arrive for each that they process, and Error by which share single readings differ
	// from it: moving means of Count readings.
	PerMessage float64 `json:"per"`
	Error      float64 `json:"error"`
	Count      int32   `json:"n"`
}

const (
	// upstreamWeight is the weight of a reading. From upstreamReadings on it counts, if the error is at most
	// mostUpstreamError.
	upstreamWeight, upstreamReadings, mostUpstreamError = 0.1, 10, 0.25
	// mostStages ends the forecast of Functions that publish to each other in a circle.
	mostStages = 10
)

// learn learns from the arrivals while no replica starts upstream: then both rates are of the same load.
func (u Upstream) learn(arriving float64, now *Outlook) Upstream {
	if now == nil || now.Rises() || now.Processed <= 0 || arriving <= 0 {
		return u
	}
	one := min(largest, arriving/now.Processed)
	if u.Count == 0 {
		return Upstream{PerMessage: one, Error: 1, Count: 1}
	}
	weight := max(upstreamWeight, 1/float64(u.Count+1))
	u.Error += weight * (min(1, math.Abs(one/u.PerMessage-1)) - u.Error)
	u.PerMessage += weight * (one - u.PerMessage)
	u.Count = min(u.Count+1, upstreamReadings)
	return u
}

// expected is the rate of arrivals to expect; 0 if it is not known well enough, or not new.
func (u Upstream) expected(now *Outlook) float64 {
	if now == nil || !now.Rises() || now.Stages > mostStages || u.Count < upstreamReadings ||
		u.Error > mostUpstreamError {
		return 0
	}
	return u.PerMessage * now.Expected
}
