// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// Curve is a number that changes over time, given in seconds since the start.
type Curve func(second float64) float64

// Constant is a constant Curve.
func Constant(value float64) Curve { return func(float64) float64 { return value } }

// Span is a time from one second to before another.
type Span struct{ From, To int }

// Spans are several of them.
type Spans []Span

func (s Spans) contain(second int) bool {
	for _, span := range s {
		if second >= span.From && second < span.To {
			return true
		}
	}
	return false
}

// Scenario is one load on one Function, with faults. Zero values mean none.
type Scenario struct {
	Name string
	// Seconds it lasts, and ScoredFrom the one from which its messages, replicas and changes count.
	Seconds, ScoredFrom int
	// Rate of arrivals in messages per second, and Noise: the standard deviation of its factor from second to second.
	Rate  Curve
	Noise float64
	// Exact arrivals equal Rate, without the randomness of a Poisson process: those of a recording.
	Exact bool
	// More are the rates of further input topics, without partitions, in addition to that of Rate.
	More []Curve
	// Capacity is what one replica processes, in messages per second; Spread is the standard deviation of the logarithm of
	// its factor from replica to replica (0 is 5 %).
	Capacity Curve
	Spread   float64
	// Speed is a further factor of a replica's capacity, above 0: by its number, the second, and for how many seconds it
	// has consumed; nil for 1.
	Speed func(number, second, age int) float64
	// Calls draws the length of a call, as a factor of the mean that Capacity gives. A replica works on one whole message
	// at a time, and counts a call and its time when it ends. Nil if calls are short and alike. Only for Shared
	// subscriptions without Downstream and Failing.
	Calls func(*rand.Rand) float64
	// Downstream limits the rate of all replicas together, in messages per second; nil for no limit.
	Downstream Curve
	// Objective of the latency.
	Objective time.Duration
	// Initial, Min and Max replicas.
	Initial, Min, Max int
	// Start is the mean time from a scale write to a replica that consumes.
	Start time.Duration
	// StartSpread is the coefficient of variation of start times, WarmUp how long a new replica takes from half to full
	// speed, in seconds, and Measured the share of a busy replica's time that its own metric shows: the rest is fetching,
	// acknowledging and conversion. 0 is the model's default.
	StartSpread, WarmUp, Measured float64
	// CPU is the share of a busy replica's time that uses CPU; 0 is 1.
	CPU float64

	Type backlog.SubscriptionType
	// Partitions (0 is 1) and their Weights (equal by default).
	Partitions int
	Weights    []float64
	// ReceiveQueue is how many messages a replica prefetches; 0 is 1000.
	ReceiveQueue float64
	// Batch is messages in an entry; 0 is 1.
	Batch float64

	// HotKey is the share of messages with one common key, which with Key_Shared all go to one replica; nil for none.
	HotKey Curve
	// Keys is the number of keys of a Key_Shared subscription's messages, all equally frequent; 0 is 1000.
	Keys float64
	// Poison is the share of messages that always fail: each is retried after a minute.
	Poison float64
	// Failing is the share of messages with which the function throws, and continues to until the share is 0 again: each
	// is retried after a minute, before all others. Nil for none.
	Failing Curve
	// Held messages stay with each replica unacknowledged, as in a window function.
	Held float64
	// Markers are entries in the backlog that no function ever receives.
	Markers float64
	// Delayed is the share of messages with a delivery delay of Delay.
	Delayed float64
	Delay   time.Duration
	// Asynchronous functions do not report how busy they are.
	Asynchronous bool
	// RestartsOnScale: every change of the number changes the pod template too, so that the StatefulSet replaces all pods
	// one after the other, the newest first, each when all others are ready.
	RestartsOnScale bool
	// Crashing is the share of replicas that crash repeatedly, 20 s after they began to consume.
	Crashing float64

	// Outages: Pulsar does not respond. Partial: responses lack partitions. Pending: new replicas are not scheduled.
	// CrashingStarts: starting containers end before they consume, and consuming ones continue.
	Outages, Partial, Pending, CrashingStarts Spans
	// Falsify changes an answer at a second, such as a proxy does, or a broker with a bug; nil for none. Lies are when it
	// differs from the truth by what is new.
	Falsify func(second int, answer *backlog.TopicSample)
	Lies    Spans
	// Upstream is what the Function before this one processes and expects to, nil while that is unknown; nil without one.
	Upstream func(second int) *policy.Outlook
	// Resets: Pulsar's counters restart at 0. Restarts: the controller keeps only its status.
	Resets, Restarts []int
}

// Due is how many messages become ready, in messages per second: the arrivals of all topics, and delayed ones at their
// time.
func (s Scenario) Due(second float64) float64 {
	due := (1 - s.Delayed) * s.arrivals(second)
	if s.Delayed > 0 && second >= s.Delay.Seconds() {
		due += s.Delayed * s.arrivals(second-s.Delay.Seconds())
	}
	return due
}

func (s Scenario) arrivals(second float64) float64 {
	sum := s.Rate(second)
	for _, rate := range s.More {
		sum += rate(second)
	}
	return sum
}

func (s *Scenario) totalWeight() float64 {
	sum := 0.0
	for _, weight := range s.Weights {
		sum += weight
	}
	return sum
}

// Topics by name.
func (s Scenario) Topics() []string {
	names := []string{Topic}
	for i := range s.More {
		names = append(names, Topic+"-"+strconv.Itoa(i+2))
	}
	return names
}

func (s Scenario) withDefaults() Scenario {
	if s.Spread == 0 {
		s.Spread = 0.05
	}
	s.StartSpread = cmp.Or(s.StartSpread, startSpread)
	s.WarmUp = cmp.Or(s.WarmUp, warmUp)
	s.Measured = cmp.Or(s.Measured, measuredShare)
	if s.CPU == 0 {
		s.CPU = 1
	}
	if s.Type == "" {
		s.Type = backlog.Shared
	}
	s.Partitions = max(1, s.Partitions)
	if len(s.Weights) == 0 {
		for range s.Partitions {
			s.Weights = append(s.Weights, 1)
		}
	}
	if s.ReceiveQueue == 0 {
		s.ReceiveQueue = 1000
	}
	s.Batch = max(1, s.Batch)
	s.Keys = cmp.Or(s.Keys, 1000)
	s.Initial = max(s.Initial, s.Min)
	return s
}
