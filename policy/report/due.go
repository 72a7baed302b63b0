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
// autoscaler reads a number from it, which one of the user may in mode Recommend, no new spec is answered, and it did
// not wait for refreshEvery.
func MayWait(o plan.Observed, h History, after v1alpha1.AutoscalingPolicyStatus, since time.Time) bool {
	before := o.Policy.Status
	_, _, changed := desiredChange(before, after)
	return (!changed || o.Applies() && o.Actuator.Type == v1alpha1.ActuatorDirect) &&
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

// reasonsDiffer reports whether a condition has another status or reason or asks the user for something else, or a
// decision another hold, cap or strategy.
func reasonsDiffer(before, after v1alpha1.AutoscalingPolicyStatus) bool {
	return decidedBy(before.Decision) != decidedBy(after.Decision) || len(before.Conditions) != len(after.Conditions) ||
		slices.ContainsFunc(after.Conditions, func(c metav1.Condition) bool {
			was := meta.FindStatusCondition(before.Conditions, c.Type)
			return was == nil || was.Status != c.Status || was.Reason != c.Reason ||
				was.Message != c.Message && asksUser(c)
		})
}

// asksUser reports whether the message names an object to correct: once it is, the next one has the same reason.
func asksUser(c metav1.Condition) bool {
	return c.Status == metav1.ConditionFalse &&
		(c.Type == v1alpha1.ConditionTargetFound || c.Type == v1alpha1.ConditionAutoscalerApplied)
}

// decidedBy has the reasons of a decision: its strategy, cap and hold.
func decidedBy(d *v1alpha1.Decision) [3]string {
	d = cmp.Or(d, &v1alpha1.Decision{})
	return [3]string{string(d.Strategy), d.CappedBy, cmp.Or(d.Hold, &v1alpha1.Hold{}).Reason}
}

// signalsMoved reports whether the visible numbers changed by more than a tenth, and the backlog by more than the
// messages of a second: replicas hold about as many while they work on them, so a smaller change says nothing. It comes
// with each answer, where no message waits too.
func signalsMoved(before, after v1alpha1.AutoscalingPolicyStatus) bool {
	b, a := cmp.Or(before.Signals, &v1alpha1.Signals{}), cmp.Or(after.Signals, &v1alpha1.Signals{})
	capacityWas, readyWas, publishedWas := visible(before)
	capacityIs, readyIs, publishedIs := visible(after)
	inTransit := max(*cmp.Or(publishedWas, new(0.0)), *cmp.Or(publishedIs, new(0.0)))
	return moved(capacityWas, capacityIs, 0) || moved(publishedWas, publishedIs, 0) ||
		moved(readyWas, readyIs, inTransit) || (before.Signals == nil) != (after.Signals == nil) ||
		!equality.Semantic.DeepEqual(before.RunningReplicas, after.RunningReplicas) ||
		!equality.Semantic.DeepEqual(before.LastScaleDown, after.LastScaleDown) ||
		!equality.Semantic.DeepEqual(b.Coverage, a.Coverage) ||
		!equality.Semantic.DeepEqual(b.UsefulReplicas, a.UsefulReplicas)
}

// visible are the numbers of a status that users see; nil if they are unknown.
func visible(s v1alpha1.AutoscalingPolicyStatus) (capacity, ready, published *float64) {
	if s.Capacity != nil {
		capacity = new(s.Capacity.MessagesPerSecond.AsApproximateFloat64())
	}
	signals := cmp.Or(s.Signals, &v1alpha1.Signals{})
	if signals.ReadyMessages != nil {
		ready = new(float64(*signals.ReadyMessages))
	}
	if signals.PublishRate != nil {
		published = new(signals.PublishRate.AsApproximateFloat64())
	}
	return capacity, ready, published
}

// moved reports whether a number became known or unknown, or changed by more than a tenth of the larger value, than 1
// and than least.
func moved(was, is *float64, least float64) bool {
	if was == nil || is == nil {
		return was != is
	}
	return math.Abs(*was-*is) > max(1, least, max(*was, *is)/10)
}
