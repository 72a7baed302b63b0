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
}
