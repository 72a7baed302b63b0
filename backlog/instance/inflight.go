// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import "github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"

// seemsAsynchronous reports whether an instance seems to have more messages in flight than a synchronous one can.
//
// The difference may be only apparent, since an instance reads its counters one after the other while it answers, in
// random order. If the received counter is read last, messages that were received meanwhile count as in flight: up to
// 442 for a synchronous function with 4000 messages/s on an overloaded machine (Pulsar 5.0.0-M1), 9 if only our series
// are requested, and 4 for a Python one with 12 messages/s.
func seemsAsynchronous(s backlog.InstanceSample) bool {
	return s.InFlight() > backlog.MostSynchronous
}

// receivedFirst returns the second answer with the received counter of the first. Nothing in it was received after the
// finished counters were read, so its messages in flight are a lower bound: each finished message was received.
func receivedFirst(first, second []backlog.InstanceSample) []backlog.InstanceSample {
	before := make(map[string]int64, len(first))
	for _, s := range first {
		before[s.ID] = s.Received
	}
	for i, s := range second {
		if received, ok := before[s.ID]; ok && received <= s.Received { // more was received before a restart
			second[i].Received = max(received, s.Finished())
		}
	}
	return second
}
