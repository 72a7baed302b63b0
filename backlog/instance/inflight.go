// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import "github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"

// seemsAsynchronous says that an instance seems to have more messages in flight than a synchronous one can.
//
// It only seems so, for an instance reads its counters one after the other while it answers, in an order of chance.
// When what was received comes last, messages that were received meanwhile count as in flight: up to 442 for a
// synchronous function with 4000 messages/s on a machine with too much to do (Pulsar 5.0.0-M1), 9 when only our series
// are requested, and 4 for a Python one with 12 messages/s.
func seemsAsynchronous(s backlog.InstanceSample) bool {
	return s.InFlight() > backlog.MostSynchronous
}

// receivedFirst returns the second answer with what had been received at the first, so that nothing was received after
// what was finished had been read: what is in flight then is, or was more. A message that is finished was received.
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
