// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package backlog

import "time"

// Reading is what is known of a subscription now, summed over its topics and partitions. Messages are messages, not
// entries; rates are messages per second over Window.
type Reading struct {
	// At is when the oldest part was measured.
	At time.Time
	// Type of the subscription; NoType while nobody has consumed since the topics were loaded.
	Type SubscriptionType

	// Total is the whole backlog: waiting, delayed and dispatched but not acknowledged.
	Total Measurement
	// Ready is Total without messages whose delay has not passed.
	Ready Measurement
	// Delayed messages, as far as the dispatcher has read.
	Delayed Measurement
	// Unacked messages are with a consumer; unknown for Exclusive and Failover, which do not count them.
	Unacked Measurement
	// Undispatched is Ready without Unacked: what a new consumer could take.
	Undispatched Measurement

	// PublishRate is what arrives.
	PublishRate Measurement
	// ProcessRate is what consumers finish: deliveries less the growth of what they hold.
	ProcessRate Measurement
	// Window is how long the rates were measured over; 0 while they are unknown.
	Window time.Duration
	// LeastReady and LeastUndispatched are the smallest values within Window: above 0, work was waiting all the time.
	LeastReady        Measurement
	LeastUndispatched Measurement

	// Consumers is how many replicas are connected: the largest number over the topics, since each replica subscribes
	// to all of them.
	Consumers Measurement
	// SteadyConsumers says that the same number was connected all through Window.
	SteadyConsumers bool
	// Blocked says that dispatch has stopped somewhere because too many messages are not acknowledged.
	Blocked bool

	// Trouble is why newer answers failed; nil when the last fetch was good. At says how old the reading is for it.
	Trouble error
}

// plus sums two readings of one subscription on different topics.
func (r Reading) plus(other Reading) Reading {
	sum := Reading{
		At:                r.At,
		Type:              r.Type,
		Total:             r.Total.plus(other.Total),
		Ready:             r.Ready.plus(other.Ready),
		Delayed:           r.Delayed.plus(other.Delayed),
		Unacked:           r.Unacked.plus(other.Unacked),
		Undispatched:      r.Undispatched.plus(other.Undispatched),
		PublishRate:       r.PublishRate.plus(other.PublishRate),
		ProcessRate:       r.ProcessRate.plus(other.ProcessRate),
		Window:            max(r.Window, other.Window),
		LeastReady:        r.LeastReady.plus(other.LeastReady),
		LeastUndispatched: r.LeastUndispatched.plus(other.LeastUndispatched),
		Consumers:         r.Consumers.larger(other.Consumers),
		SteadyConsumers:   r.SteadyConsumers && other.SteadyConsumers,
		Blocked:           r.Blocked || other.Blocked,
		Trouble:           r.Trouble,
	}
	if other.At.Before(r.At) {
		sum.At = other.At
	}
	if r.Type == NoType {
		sum.Type = other.Type
	}
	if r.Trouble == nil {
		sum.Trouble = other.Trouble
	}
	return sum
}
