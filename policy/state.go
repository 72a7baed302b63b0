// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"reflect"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
)

// State is what one decision hands to the next. Nothing in it is ever changed: a decision returns a new one. All of it
// is in the status too, as Encode writes it: its fields, and those of what it is made of, are exported and take part by
// themselves. They are not negative, and no time in them is after the decision, unless tagged state:"signed" or
// "until".
type State struct {
	// DecidedAt is when the last decision was made, or when the state was resumed; what is learned next counts for the
	// time since.
	DecidedAt time.Time `json:"at,omitzero"`
	// ReadAt is the time of the last reading that was learned from.
	ReadAt time.Time `json:"read,omitzero"`
	// LearnedAt is the time of the last one that capacity was learned from.
	LearnedAt time.Time `json:"learned,omitzero"`
	// FailedAt is when the function was last seen to throw mostly.
	FailedAt time.Time `json:"failed,omitzero"`
	// Arrivals is nil before the first reading with a rate.
	Arrivals *Arrivals `json:"arrivals,omitempty"`
	// Capacity of one replica; nil until it was seen busy.
	Capacity *LearnedCapacity `json:"capacity,omitempty"`
	Tally    Tally            `json:"tally,omitzero"`
	Plateau  Plateau          `json:"plateau,omitzero"`
	Start    Start            `json:"start,omitzero"`
	Floor    Floor            `json:"floor,omitzero"`
	Zero     Zero             `json:"zero,omitzero"`
	// Raised is the last raise, for as long as an autoscaler may take to act on it.
	Raised ReplicasAt `json:"raised,omitzero"`
	// Recommendations and Drains of the stabilization window, oldest first, each larger than all after it: what the
	// arrivals needed, and what the arrivals with the backlog did.
	Recommendations []ReplicasAt `json:"steady,omitempty"`
	Drains          []ReplicasAt `json:"drain,omitempty"`
	Surplus         Surplus      `json:"surplus,omitzero"`
	// Subscription that all this was learned of, where the policy names it; empty where the target does.
	Subscription string `json:"sub,omitempty"`
}

// ReplicasAt is a number of replicas at a time.
type ReplicasAt struct {
	At       time.Time `json:"t,omitzero"`
	Replicas int32     `json:"n,omitempty"`
}

const (
	// resumedVariance is what a capacity from a status without an uncertainty is believed to.
	resumedVariance = 0.04
	leastResumed    = 1e-4
	percent         = 100
)

// Resume returns where the last process left off, as far as the status says: all of it from status.checkpoint, and the
// capacity from status.capacity where that has none. It holds the present replicas for one stabilization window, for
// what was needed since the status was written is not known. The error is what of the checkpoint was not used; the
// state is good in any case.
func Resume(status v1alpha1.AutoscalingPolicyStatus, currentReplicas int32, now time.Time) (State, error) {
	var state State
	var unread error
	if status.Checkpoint != "" {
		state, unread = DecodeState(status.Checkpoint)
	}
	if state.Capacity == nil {
		state.Capacity = resumedCapacity(status.Capacity)
	}
	state = state.resumedAt(now)
	return state.holding(currentReplicas, now), unread
}

// Continue is the state after a pause in which nothing was decided: it holds the present replicas for one stabilization
// window, as Resume does.
func (s State) Continue(currentReplicas int32, now time.Time) State {
	return s.resumedAt(now).holding(currentReplicas, now)
}

func (s State) holding(currentReplicas int32, now time.Time) State {
	held := ReplicasAt{At: now, Replicas: currentReplicas}
	s.Recommendations = slide(s.Recommendations, held, longestWindow)
	s.Drains = slide(s.Drains, held, longestWindow)
	return s
}

const (
	// longestWindow is the largest stabilization window of the CRD; the next decision forgets what is older than its own.
	longestWindow = time.Hour
	// furthest is how far ahead the end of something may lie.
	furthest = time.Hour
)

// resumedAt is the state for a process that begins now: its clock may be behind that of the one before, and the rates
// of the last reaction time are those of another.
func (s State) resumedAt(now time.Time) State {
	notAfter(reflect.ValueOf(&s).Elem(), now, now.Add(furthest))
	if s.DecidedAt.IsZero() {
		s.DecidedAt = now
	}
	s.Zero.IdleSince = time.Time{}
	return s
}

// notAfter brings every time within a decoded state down to now, or to the furthest where it is when something ends.
func notAfter(v reflect.Value, now, end time.Time) {
	switch v.Kind() { //nolint:exhaustive // the others hold no time
	case reflect.Pointer:
		if !v.IsNil() {
			notAfter(v.Elem(), now, end)
		}
	case reflect.Slice:
		for i := range v.Len() {
			notAfter(v.Index(i), now, end)
		}
	case reflect.Struct:
		if at, ok := v.Interface().(time.Time); ok {
			if at.After(now) {
				v.Set(reflect.ValueOf(now))
			}
			return
		}
		for i := range v.NumField() {
			bound := now
			if v.Type().Field(i).Tag.Get("state") == "until" {
				bound = end
			}
			notAfter(v.Field(i), bound, end)
		}
	}
}

// resumedCapacity is what people see of the capacity, read back.
func resumedCapacity(c *v1alpha1.Capacity) *LearnedCapacity {
	if c == nil {
		return nil
	}
	rate := c.MessagesPerSecond.AsApproximateFloat64()
	if rate <= 0 {
		return nil
	}
	resumed := &LearnedCapacity{
		MessagesPerSecond: rate, Variance: resumedVariance, Observations: c.Observations, LearnedAt: c.LearnedAt.Time,
	}
	if c.UncertaintyPercent != nil {
		deviation := float64(*c.UncertaintyPercent) / percent
		resumed.Variance = max(leastResumed, deviation*deviation)
	}
	if c.MeasuredBusyPercent != nil {
		resumed.Coverage = float64(*c.MeasuredBusyPercent) / percent
	}
	return resumed
}

// actsWithin is how long an autoscaler may take to act on a raise: three syncs of the HPA controller.
const actsWithin = 45 * time.Second

// pendingRaise is the last raise while the autoscaler may not have acted on it yet, 0 for none.
func (s State) pendingRaise(in Input) int32 {
	if in.Now.Sub(s.Raised.At) >= actsWithin {
		return 0
	}
	return s.Raised.Replicas
}

// manualScale is the current number where it was raised by anything but a decision, 0 otherwise. It is held for a
// stabilization window, as if it had been needed. A lowered one is not: missing replicas are added again.
func (s State) manualScale(in Input) int32 {
	before := s.Start.Replicas
	if in.Spec.Mode == v1alpha1.ModeRecommend || before == 0 || in.CurrentReplicas <= max(before, s.Raised.Replicas) {
		return 0
	}
	return in.CurrentReplicas
}

// slide adds a recommendation to a sliding window and returns the window, the largest first: each is larger than all
// after it, so the first is the maximum ("ascending minima", as in Knative's and Kubernetes' sliding windows). It does
// not write into the slice it was given.
func slide(before []ReplicasAt, newest ReplicasAt, window time.Duration) []ReplicasAt {
	after := make([]ReplicasAt, 0, len(before)+1)
	for _, r := range before {
		if newest.At.Sub(r.At) < window && r.Replicas > newest.Replicas {
			after = append(after, r)
		}
	}
	return append(after, newest)
}
