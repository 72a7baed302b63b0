// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import "time"

// Start is what was learned about scaling: the time from the write of spec.replicas until a replica consumes, and
// whether the write restarts the other replicas.
type Start struct {
	// Seconds a start takes, the mean of Count starts; startSeconds before the first.
	Seconds float64 `json:"s"`
	Count   int32   `json:"n"`
	// Restarts counts scale writes during which most consumers disconnected, up to maxRestarts, less those during which
	// they did not.
	Restarts int32 `json:"restarts"`

	// Replicas of the last poll, and Changed, the time of their last change.
	Replicas int32     `json:"replicas"`
	Changed  time.Time `json:"changed"`
	// Consuming is the number of consumers at the last poll without a change.
	Consuming float64 `json:"consuming"`
	// Open is true while a change from From replicas is watched. Least is the minimum number of consumers meanwhile.
	Open  bool    `json:"open"`
	From  int32   `json:"from"`
	Least float64 `json:"least"`
}

const (
	// startSeconds is the time to start a replica before one was measured: a cached image, a JVM, a subscription.
	startSeconds = 25
	// SyncPeriod is the HPA's, added to a start and a poll for the reaction time.
	SyncPeriod = 15 * time.Second
	// LongestSync is the maximum lag that counts in its place.
	LongestSync = 5 * time.Minute
	startWeight = 0.3
	// longestStart is the maximum time of a start; a longer one is not learned.
	longestStart = 5 * time.Minute
	// coarsePoll is a poll interval that is too long to measure a start.
	coarsePoll = time.Minute
	// dipped: a restart shows as fewer than half of the replicas that ran before and after.
	dipped      = 0.5
	maxRestarts = 3
)

// learn learns from a poll, the first one if unread is true.
func (s Start) learn(in Input, unread bool) Start {
	after := s
	consumers, err := in.Reading.Consumers.Value()
	after.Replicas = in.CurrentReplicas
	if in.Recreated {
		after.Open, after.Consuming = false, 0 // its consumers were deleted with it
		return after
	}
	if !unread && in.CurrentReplicas != s.Replicas {
		if s.Open { // replicas that the last change removes may still consume
			after.Consuming = min(s.Consuming, max(0, s.Consuming-float64(s.From))+float64(s.Replicas))
		}
		after.Changed, after.From = in.Now, s.Replicas
		after.Open, after.Least = err == nil && !s.startedBefore(in, consumers), consumers
		return after
	}
	if !s.Open {
		if err == nil {
			after.Consuming = consumers
		}
		return after
	}
	took := max(0, in.Now.Sub(s.Changed)) // a clock may be set back
	if err != nil || took >= longestStart {
		after.Open = false // no measurement
		return after
	}
	after.Least = min(s.Least, consumers)
	others := max(0, s.Consuming-float64(s.From)) // other consumers of the subscription
	if consumers < float64(in.CurrentReplicas)+others {
		return after
	}
	after.Open, after.Consuming = false, consumers
	after.Restarts = s.restarted(in.CurrentReplicas, after.Least)
	if in.CurrentReplicas > s.From && in.PollInterval <= coarsePoll {
		if s.Count == 0 {
			after.Seconds = startSeconds
		}
		after.Count = min(s.Count, maxInt-1) + 1
		// Both ends of a start happen half a poll before they are observed, on average.
		after.Seconds += max(startWeight, 1/float64(after.Count+1)) * (took.Seconds() - after.Seconds)
	}
	return after
}

// restarted counts a change that at least this number of consumers outlived.
func (s Start) restarted(current int32, least float64) int32 {
	switch {
	case min(s.From, current) == 0: // none ran before and after
		return s.Restarts
	case least < dipped*min(s.Consuming, float64(current)):
		return min(maxRestarts, s.Restarts+1)
	default:
		return max(0, s.Restarts-1)
	}
}

// startedBefore reports whether added replicas consumed before their number was known: a function worker does not
// report it while it restarts all of them.
func (s Start) startedBefore(in Input, consumers float64) bool {
	return in.Restarts && in.CurrentReplicas > s.Replicas && min(s.Consuming, consumers) >= float64(in.CurrentReplicas)
}

func (s Start) seconds() float64 {
	if s.Count == 0 {
		return startSeconds
	}
	return s.Seconds
}

// react is the time in seconds from a change of the load until a new replica consumes.
func (s Start) react(in Input) float64 {
	return s.seconds() + in.PollInterval.Seconds() + in.Sync().Seconds()
}

// Sync is how long a decided number may take to reach the target: a sync of the HPA, or the measured lag if longer.
func (in Input) Sync() time.Duration { return min(max(SyncPeriod, in.Lag), LongestSync) }

func (s Start) restarts(in Input) bool {
	return s.Restarts > 0 || in.Restarts
}

// patience is how long replicas may take to start until those that did are compared.
func patience(in Input, start Start) time.Duration {
	return fromSeconds(episodeStarts * start.react(in))
}
