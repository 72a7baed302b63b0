// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/forecast"
)

// State is what one decision passes to the next. It is never modified: a decision returns a new one. Encode writes all
// fields that are not zero, with bounds by their JSON names.
type State struct {
	// ReadAt is the time of the last reading that the state learned from.
	ReadAt time.Time `json:"read"`
	// LearnedAt is the time of the last reading that capacity was learned from.
	LearnedAt time.Time `json:"learned"`
	// FailedAt is when the function last threw mostly exceptions.
	FailedAt time.Time `json:"failed"`
	// Arrivals is nil before the first reading with a rate.
	Arrivals *Arrivals `json:"arrivals"`
	// Capacity of one replica; nil before one was busy.
	Capacity *LearnedCapacity `json:"capacity"`
	Tally    Tally            `json:"tally"`
	Plateau  Plateau          `json:"plateau"`
	Start    Start            `json:"start"`
	Floor    Floor            `json:"floor"`
	Zero     Zero             `json:"zero"`
	Pulses   forecast.Pulses  `json:"pulses"`
	Upstream Upstream         `json:"upstream"`
	Decided  Decided          `json:"decided"`
	// Raises are empty without limits in behavior.scaleUp.
	Raises Raises `json:"raises"`
	// Recommendations of the longest stabilization window, oldest first, each larger than all after it.
	Recommendations []ReplicasAt `json:"steady,omitempty"`
	// ContradictedAt is since when the backlog or the instances have contradicted Pulsar's counters; zero if they agree.
	ContradictedAt time.Time `json:"contradicted"`
	Oldest         Oldest    `json:"oldest"`
	Budget         Budget    `json:"budget"`
	Type           Type      `json:"type"`
	// Subscription is the fingerprint of the subscription that this was learned from; empty if the policy names none.
	Subscription string `json:"sub"`
}

// ReplicasAt is a number of replicas at a time.
type ReplicasAt struct {
	At       time.Time `json:"t"`
	Replicas int32     `json:"n"`
}

const percent = 100

// Resume continues from status.workingCheckpoint, which may be empty. It holds the current replicas for one
// stabilization window, since the load meanwhile is unknown. The error names the unusable parts of the checkpoint; the
// state is usable in any case.
func Resume(checkpoint string, currentReplicas int32, now time.Time) (State, error) {
	var state State
	var unread error
	if checkpoint != "" {
		state, unread = DecodeState(checkpoint, now)
	}
	if now.Sub(state.Decided.At) >= followTimeout {
		state.Decided.From = state.Decided.Replicas
	}
	state.Zero.IdleSince = time.Time{}
	return state.holding(currentReplicas, now), unread
}

// Continue is the state after a pause without decisions, or with another clock. It holds the current replicas for one
// stabilization window, as Resume does.
func (s State) Continue(currentReplicas int32, now time.Time) State {
	text, _ := s.Encode() // an invalid state is forgotten
	state, _ := Resume(text, currentReplicas, now)
	return state
}

func (s State) holding(currentReplicas int32, now time.Time) State {
	s.Recommendations = slide(s.Recommendations, ReplicasAt{now, currentReplicas}, longestWindow, 1)
	return s
}

// longestWindow is the largest stabilization window of the CRD; the next decision applies its own.
const longestWindow = time.Hour

// Decided is the last decision that changed the replicas. Holds keep the decided number, not the current one, until the
// autoscaler has followed.
type Decided struct {
	ReplicasAt
	// From is the number of replicas before; the same as Replicas once the autoscaler has followed.
	From int32 `json:"from"`
}

func (d Decided) pending() bool { return d.From != d.Replicas }

// followTimeout is how long an autoscaler may take to follow a decision: three syncs of the HPA controller.
const followTimeout = 45 * time.Second

// resolve ends the wait for an autoscaler that has followed or is late. A late scale-up is decided again on the next
// complete reading after readAt, and a late scale-down is dropped while a part of the load is unknown. Time alone
// reverses no decision.
func (d Decided) resolve(in Input, readAt time.Time) Decided {
	late, current := in.Now.Sub(d.At) >= followTimeout, in.CurrentReplicas
	known := in.Unknown == nil && in.Reading.Coverage.Complete()
	var ended bool
	if d.Replicas > d.From {
		ended = current >= d.Replicas || (late && known && in.Reading.At.After(readAt))
	} else {
		ended = current <= d.Replicas || current > d.From || (late && !known)
	}
	if ended || in.Frozen != nil {
		d.From = d.Replicas
	}
	return d
}

// from is the number of replicas before a pending scale-down, and the current number otherwise.
func (d Decided) from(current int32) int32 {
	if d.pending() {
		return d.From
	}
	return current
}

// or is the decided number while the autoscaler may not have followed it, and the current number otherwise.
func (d Decided) or(current int32) int32 {
	if d.pending() {
		return d.Replicas
	}
	return current
}

// manualScale is the current number if another writer raised it, 0 otherwise. It is held for a stabilization window, as
// if it had been needed. A lowered number is not held: missing replicas are added again.
func (s State) manualScale(in Input) int32 {
	if in.Spec.Mode == v1alpha1.ModeRecommend || s.unread() ||
		in.CurrentReplicas <= max(s.Start.Replicas, s.Decided.Replicas) {
		return 0
	}
	return in.CurrentReplicas
}

// unread reports whether there was no poll yet, so that it is unknown how many replicas there were.
func (s State) unread() bool { return s.Start.Replicas == 0 && s.ReadAt.IsZero() }

// unseenLoad is the current number if no rate of all topics was learned for some time, 0 otherwise. It is held for a
// stabilization window once all rates are known again.
func (s State) unseenLoad(in Input) int32 {
	if in.Reading.Coverage.Complete() || s.Arrivals != nil && in.Reading.At.Sub(s.Arrivals.At) <= in.freshFor() {
		return 0
	}
	return in.CurrentReplicas
}

// slide adds a number to a sliding window and returns a new window, oldest first: each is larger than all after it, or
// smaller if sign is -1 ("ascending minima", as in Knative's and Kubernetes' sliding windows).
func slide(before []ReplicasAt, newest ReplicasAt, window time.Duration, sign int32) []ReplicasAt {
	after := make([]ReplicasAt, 0, len(before)+1)
	for _, r := range before {
		if newest.At.Sub(r.At) < window && sign*r.Replicas > sign*newest.Replicas {
			after = append(after, r)
		}
	}
	return append(after, newest)
}

// ofSubscription is the state, or a new one if the policy names another subscription than the learned one. The learned
// start time stays.
func (s State) ofSubscription(in Input) State {
	wanted := fingerprint(in.Spec.Subscription)
	if s.Subscription == wanted {
		return s
	}
	fresh := State{Subscription: wanted, Start: s.Start}
	fresh.Start.Open, fresh.Start.Consuming = false, 0
	return fresh.holding(in.CurrentReplicas, in.Now)
}

// Forgets reports whether the next decision on this spec discards the learned state, since the spec names another
// subscription.
func (s State) Forgets(spec v1alpha1.AutoscalingPolicySpec) bool {
	return s.Subscription != fingerprint(spec.Subscription) && s.Arrivals != nil
}

// fingerprint identifies the subscription that a policy names; empty if the target defines its subscription. The long
// and the short form of a topic are equal, and the Pulsar cluster does not count.
func fingerprint(s *v1alpha1.Subscription) string {
	if s == nil {
		return ""
	}
	var topics []string
	for _, topic := range s.Topics {
		topics = append(topics, string(topic))
	}
	named := backlog.NewSubscription(backlog.Cluster{}, s.Name, topics...)
	text := fmt.Sprintf("%q %q %q %q %d", named.Name, named.Topics, s.TopicsPattern, s.Type,
		max(1, s.ConsumersPerReplica))
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(text)) // a hash.Hash never fails
	return fmt.Sprintf("%016x", hash.Sum64())
}
