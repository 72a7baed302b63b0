// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"cmp"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// Curve is a number that changes over time, given in seconds since the start.
type Curve func(second float64) float64

// Constant is a Curve that does not change.
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

// Scenario is one load on one Function, with all that goes wrong meanwhile. Zero values mean: none of it.
type Scenario struct {
	Name string
	// Seconds it lasts.
	Seconds int
	// Rate of arrivals in messages per second, and Noise: the standard deviation of its factor from second to second.
	Rate  Curve
	Noise float64
	// Exact arrivals are what Rate says, without the luck of a Poisson process: those of a recording.
	Exact bool
	// More are the rates of further input topics, without partitions, next to the one of Rate.
	More []Curve
	// Capacity is what one replica processes, in messages per second; Spread is the standard deviation of the logarithm
	// of its factor from replica to replica (5 % where 0 is given).
	Capacity Curve
	Spread   float64
	// Speed is a further factor of a replica's capacity, above 0: by its number, the second, and for how many seconds it
	// has consumed; nil for 1.
	Speed func(number, second, age int) float64
	// Calls draws how long a call takes, as a factor of the mean that Capacity gives. A replica works on one whole
	// message at a time, and counts a call and its time when it ends. Nil where calls are short and alike. Only of Shared
	// subscriptions without Downstream and Failing.
	Calls func(*rand.Rand) float64
	// Downstream is what all replicas together can get from what they depend on, in messages per second; nil for no
	// limit.
	Downstream Curve
	// Objective of the latency.
	Objective time.Duration
	// Initial, Min and Max replicas.
	Initial, Min, Max int
	// Start is the mean time from a scale write to a replica that consumes.
	Start time.Duration
	// StartSpread is the coefficient of variation of start times, WarmUp how long a new replica takes from half to full
	// speed, in seconds, and Measured the share of a busy replica's time that its own metric shows: the rest goes to
	// fetching, acknowledging and conversion. Defaults of the model where 0 is given.
	StartSpread, WarmUp, Measured float64
	// Slack is by which share calls take longer in a replica that waits for messages than in one that does not: a
	// sleep, or a cold cache. 0 is none.
	Slack float64
	// CPU is the share of a busy replica's time in which it computes; 1 where 0 is given.
	CPU float64

	Type backlog.SubscriptionType
	// Partitions (1 where 0 is given) and their Weights (equal where none are given).
	Partitions int
	Weights    []float64
	// ReceiveQueue is how many messages a replica holds in advance; 1000 where 0 is given.
	ReceiveQueue float64
	// Batch is messages in an entry; 1 where 0 is given.
	Batch float64

	// HotKey is the share of messages with one and the same key, which with Key_Shared all go to one replica; nil for
	// none.
	HotKey Curve
	// Keys are how many a Key_Shared subscription's messages have, each with about as many messages; 1000 where 0 is
	// given.
	Keys float64
	// Poison is the share of messages that fail for ever: each is tried again after a minute.
	Poison float64
	// Failing is the share of messages with which the function throws, and goes on to until the share is 0 again: each
	// is tried again after a minute, before all others. Nil for none.
	Failing Curve
	// Held messages stay with each replica unacknowledged, as in a window function.
	Held float64
	// Markers are entries in the backlog that no function ever sees.
	Markers float64
	// Delayed is the share of messages that are to be delivered Delay later.
	Delayed float64
	Delay   time.Duration
	// Asynchronous functions do not report how busy they are.
	Asynchronous bool
	// RestartsOnScale: every change of the number changes the pods' template too, so that the StatefulSet replaces all
	// pods one after the other, the newest first, each when all others are ready.
	RestartsOnScale bool
	// Crashing is the share of replicas that end 20 s after they began to consume, again and again.
	Crashing float64

	// Outages: Pulsar does not answer. Partial: it leaves out partitions. Pending: new replicas are not scheduled.
	// CrashingStarts: containers that start end before they consume, and those that consume already go on.
	Outages, Partial, Pending, CrashingStarts Spans
	// Resets: Pulsar's counters start again at 0. Restarts: the controller forgets all but what it wrote down.
	Resets, Restarts []int
}

// Due is how many messages become ready to be processed, in messages per second: those of all topics that arrive, and
// delayed ones when their time has come.
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
