// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// Start is what was learned of scaling itself: how long a replica takes from the write of spec.replicas until it
// consumes, and whether such a write restarts the others too.
type Start struct {
	// Seconds a start takes, after so many of them; startSeconds before the first.
	Seconds float64 `json:"s,omitempty"`
	Count   int32   `json:"n,omitempty"`
	// Restarts counts scale writes, up to mostRestarts, in which most consumers went away, less those in which they did
	// not.
	Restarts int32 `json:"restarts,omitempty"`

	// Replicas that were seen last, and Changed, when they were others before.
	Replicas int32     `json:"replicas,omitempty"`
	Changed  time.Time `json:"changed,omitzero"`
	// Consuming is how many consumed at the last poll that saw no change.
	Consuming float64 `json:"consuming,omitempty"`
	// Open while a change is watched: from From replicas, with the Least that consumed meanwhile.
	Open  bool    `json:"open,omitempty"`
	From  int32   `json:"from,omitempty"`
	Least float64 `json:"least,omitempty"`
}

const (
	// startSeconds is the start of a replica until one was measured: an image that is there, a JVM, a subscription.
	startSeconds = 25
	// syncSeconds is the HPA's sync period, added to a start and a poll for the reaction time.
	syncSeconds = 15
	startWeight = 0.3
	// longestStart is how long to wait for a start: one that takes longer, or never ends, is no measure of one.
	longestStart = 5 * time.Minute
	// coarsePoll is a poll interval with which a start cannot be measured.
	coarsePoll = time.Minute
	// dipped: fewer than half of the replicas that ran before and after consume.
	dipped       = 0.5
	mostRestarts = 3
)

// learn takes in a poll.
func (s Start) learn(in Input) Start {
	after := s
	consumers, err := in.Reading.Consumers.Value()
	after.Replicas = in.CurrentReplicas
	if in.Recreated {
		after.Open, after.Consuming = false, 0 // its consumers ended with it
		return after
	}
	if s.Replicas > 0 && in.CurrentReplicas != s.Replicas {
		after.Changed, after.From = in.Now, s.Replicas
		after.Open, after.Least = err == nil, consumers
		return after
	}
	if err == nil && !s.Open {
		after.Consuming = consumers
	}
	if !s.Open {
		return after
	}
	took := max(0, in.Now.Sub(s.Changed)) // a clock may be set back
	if err != nil || took >= longestStart {
		after.Open = false // nothing to learn from
		return after
	}
	after.Least = min(s.Least, consumers)
	others := max(0, s.Consuming-float64(s.From)) // on the same subscription
	if consumers < float64(in.CurrentReplicas)+others {
		return after
	}
	after.Open, after.Consuming = false, consumers
	if after.Least < dipped*min(s.Consuming, float64(in.CurrentReplicas)) {
		after.Restarts = min(mostRestarts, s.Restarts+1)
	} else {
		after.Restarts = max(0, s.Restarts-1)
	}
	if in.CurrentReplicas > s.From && in.pollInterval() <= coarsePoll {
		if s.Count == 0 {
			after.Seconds = startSeconds
		}
		after.Count = min(s.Count, mostInts-1) + 1
		// The change was made half a poll before it was seen, and the replicas were there half a poll before they were.
		after.Seconds += max(startWeight, 1/float64(after.Count+1)) * (took.Seconds() - after.Seconds)
	}
	return after
}

// seconds a replica takes to start.
func (s Start) seconds(in Input) float64 {
	if s.Count == 0 || in.without(PartStart) {
		return startSeconds
	}
	return s.Seconds
}

// react is how many seconds pass from a change of the load to a replica that consumes.
func (s Start) react(in Input) float64 {
	return s.seconds(in) + in.pollInterval().Seconds() + syncSeconds
}

// restarts says that a change of the number of replicas restarts them all.
func (s Start) restarts(in Input) bool {
	return (s.Restarts > 0 || in.Restarts) && !in.without(PartRestarts)
}
