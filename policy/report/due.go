// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/served"
)

// The budget of statuses written without a new decision is 33 a second up to 10,000 policies: each at most once in
// refreshEvery, at its own time by its UID. A new leader writes at once what became due before it was elected.
//
// renewalsPerSecond is the rate that 10,000 policies need for their heartbeats.
const renewalsPerSecond = 10_000 / float64(served.Heartbeat/time.Second)

// Reasons that alternate are written changesAtOnce times, and then once in changesEvery.
const (
	changesAtOnce = 6
	changesEvery  = 20 * time.Second
)

// refreshEvery bounds how often changed numbers are written: once a minute up to 2,000 policies. That interval divides
// the other, so that another number of policies does not shift the times of all.
func refreshEvery(policies int) time.Duration {
	if every := served.Heartbeat / 5; float64(policies) <= renewalsPerSecond*every.Seconds() {
		return every
	}
	return served.Heartbeat
}

// Due reports whether the new status is worth a write: another outcome at once, and another reason unless reasons
// alternate; numbers that moved, see signalsMoved, once in refreshEvery; the time of the decision and messages once a
// heartbeat.
func Due(o plan.Observed, h History, after v1alpha1.AutoscalingPolicyStatus) bool {
	before := o.Policy.Status
	switch {
	case outcomeDiffers(before, after):
		return true
	case reasonsDiffer(before, after) && h.mayChangeReasons(o.Now):
		return true
	case basis(after).IsZero() || basis(after).Equal(basis(before)): // nothing was decided or measured
		return o.Now.Sub(h.reportedAt) >= served.Heartbeat &&
			!equality.Semantic.DeepEqual(before.Conditions, after.Conditions)
	}
	last, every := basis(before), refreshEvery(o.Policies)
	age := o.Now.Sub(last)
	switch {
	case age < 0 || age >= served.Heartbeat: // the clock of the process before was ahead
		return true
	case turn(o.Policy.UID, last, every) == turn(o.Policy.UID, o.Now, every):
		return false
	default:
		return age+every > served.Heartbeat || signalsMoved(before, after)
	}
}

// MayWait reports whether a status that is due, and was since then, may wait until other policies are decided on: no
// autoscaler reads a number from it, no new spec is answered, and it did not wait for refreshEvery.
func MayWait(o plan.Observed, h History, after v1alpha1.AutoscalingPolicyStatus, since time.Time) bool {
	before := o.Policy.Status
	_, _, changed := desiredChange(before, after)
	return (!changed || o.Actuator.Type == v1alpha1.ActuatorDirect) &&
		(before.DesiredReplicas == nil || before.ObservedGeneration == o.Policy.Generation) &&
		o.Now.Sub(since) < refreshEvery(o.Policies) && Due(o, h, after)
}

// basis is when a decision was made, or its signals were measured while the policy is paused; zero for neither.
func basis(s v1alpha1.AutoscalingPolicyStatus) time.Time {
	switch {
	case s.Decision != nil:
		return s.Decision.Time.Time
	case s.Signals != nil:
		return s.Signals.MeasuredAt.Time
	default:
		return time.Time{}
	}
}

// turn counts the intervals of a policy, which begin at its own time: otherwise policies that were written together
// would always be written together.
func turn(uid types.UID, at time.Time, every time.Duration) int64 {
	digest := fnv.New64a()
	_, _ = digest.Write([]byte(uid)) // never fails
	own := int64(digest.Sum64() % uint64(served.Heartbeat))
	return (at.UnixNano() + own) / int64(every)
}

// Reported is the history after the status was written.
func (h History) Reported(now time.Time, before, after v1alpha1.AutoscalingPolicyStatus) History {
	h.reportedAt = now
	if !outcomeDiffers(before, after) && reasonsDiffer(before, after) {
		if h.changesUntil.Before(now) {
			h.changesUntil = now
		}
		h.changesUntil = h.changesUntil.Add(changesEvery)
	}
	return h
}

// mayChangeReasons reports whether the reasons did not alternate recently.
func (h History) mayChangeReasons(now time.Time) bool {
	return h.changesUntil.Sub(now) <= (changesAtOnce-1)*changesEvery
}

// outcomeDiffers reports whether another number, bound or object is reported, or a ceiling, which takes minutes to
// learn.
func outcomeDiffers(before, after v1alpha1.AutoscalingPolicyStatus) bool {
	return (before.Decision == nil) != (after.Decision == nil) ||
		!equality.Semantic.DeepEqual(outcomeOf(before), outcomeOf(after)) ||
		before.WorkingCheckpoint != after.WorkingCheckpoint && // decoding takes long
			policy.CeilingIn(before.WorkingCheckpoint) != policy.CeilingIn(after.WorkingCheckpoint)
}

// outcomeOf is the part of a status that is written at every change.
func outcomeOf(s v1alpha1.AutoscalingPolicyStatus) v1alpha1.AutoscalingPolicyStatus {
	s.Conditions, s.Signals, s.Decision, s.Capacity, s.Forecast, s.WorkingCheckpoint = nil, nil, nil, nil, nil, ""
	s.Attainment = nil
	s.LastScaleDown = nil // the number of replicas is reported, and redelivered messages are counted later
	s.Start = nil         // ObjectiveAchievable is reported
	if s.RunningReplicas != nil && (s.SpecReplicas == nil || *s.RunningReplicas != *s.SpecReplicas) {
		s.RunningReplicas = nil // while replicas start one by one, the last start counts
	}
	if s.Actuator != nil {
		s.Actuator = &v1alpha1.ActuatorStatus{Type: s.Actuator.Type}
	}
	return s
}

// reasonsDiffer reports whether a condition has another status or reason, or a decision another hold, cap or strategy.
func reasonsDiffer(before, after v1alpha1.AutoscalingPolicyStatus) bool {
	return decidedBy(before.Decision) != decidedBy(after.Decision) || len(before.Conditions) != len(after.Conditions) ||
		slices.ContainsFunc(after.Conditions, func(c metav1.Condition) bool {
			was := meta.FindStatusCondition(before.Conditions, c.Type)
			return was == nil || was.Status != c.Status || was.Reason != c.Reason
		})
}

// reasons are those of a decision.
type reasons struct {
	decided, held            bool
	strategy, cappedBy, hold string
}

func decidedBy(d *v1alpha1.Decision) reasons {
	switch {
	case d == nil:
		return reasons{}
	case d.Hold == nil:
		return reasons{decided: true, strategy: string(d.Strategy), cappedBy: d.CappedBy}
	default:
		return reasons{
			decided: true, held: true, strategy: string(d.Strategy), cappedBy: d.CappedBy, hold: d.Hold.Reason,
		}
	}
}

// signalsMoved reports whether the visible numbers changed by more than a tenth, and the backlog by more than the
// messages of a second.
func signalsMoved(before, after v1alpha1.AutoscalingPolicyStatus) bool {
	b, a := cmp.Or(before.Signals, &v1alpha1.Signals{}), cmp.Or(after.Signals, &v1alpha1.Signals{})
	was, is := visible(before), visible(after)
	for name, number := range was {
		now, known := is[name]
		if !known || differsByTenth(number, now) && (name != ready || math.Abs(number-now) > inTransit(was, is)) {
			return true
		}
	}
	return len(was) != len(is) || (before.Signals == nil) != (after.Signals == nil) ||
		!equality.Semantic.DeepEqual(before.RunningReplicas, after.RunningReplicas) ||
		!equality.Semantic.DeepEqual(before.LastScaleDown, after.LastScaleDown) ||
		!equality.Semantic.DeepEqual(b.Coverage, a.Coverage) ||
		!equality.Semantic.DeepEqual(b.UsefulReplicas, a.UsefulReplicas)
}

// The names of numbers that users see.
const (
	ready     = "ready"
	published = "published"
)

// inTransit is the number of messages that are published in a second. Replicas hold about as many while they work on
// them, so a smaller change of the backlog says nothing: it comes with each answer, where no message waits too.
func inTransit(was, is map[string]float64) float64 { return max(was[published], is[published]) }

// visible are the known numbers of a status.
func visible(s v1alpha1.AutoscalingPolicyStatus) map[string]float64 {
	numbers := map[string]float64{}
	if s.Capacity != nil {
		numbers["capacity"] = s.Capacity.MessagesPerSecond.AsApproximateFloat64()
	}
	if s.Signals != nil && s.Signals.ReadyMessages != nil {
		numbers[ready] = float64(*s.Signals.ReadyMessages)
	}
	if s.Signals != nil && s.Signals.PublishRate != nil {
		numbers[published] = s.Signals.PublishRate.AsApproximateFloat64()
	}
	return numbers
}

// differsByTenth reports whether numbers differ by a tenth of the larger and by more than 1.
func differsByTenth(a, b float64) bool {
	gap := math.Abs(a - b)
	return gap > 1 && gap > max(a, b)/10
}
