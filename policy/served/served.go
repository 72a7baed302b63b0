// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package served

import (
	"cmp"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// MetricDesiredReplicas is the metric through which the HorizontalPodAutoscaler reads a decision.
const MetricDesiredReplicas = "pulsar_function_desired_replicas"

// Number is the decision as autoscalers read it.
type Number struct {
	// Replicas within the policy's current minReplicas and maxReplicas.
	Replicas int32
	// MeasuredAt is when the input was measured, or the time of the decision if that is unknown.
	MeasuredAt time.Time
	// HeldSince is when the input became unknown; zero while it is known at least in part.
	HeldSince time.Time
	// Held is the reason for the user; empty while the input is known at least in part.
	Held string
}

// Desired returns the decision of a policy, or why there is none, as a text for the user. It suits autoscalers that
// hold replicas on an error.
//
// A status of an older generation counts, within the current bounds: the target cannot change, and a change of
// maxReplicas takes effect at once. The mode does not matter: no autoscaler of ours follows mode Recommend.
func Desired(p *v1alpha1.AutoscalingPolicy) (Number, error) {
	number, err := LastDesired(p)
	if err == nil && number.Held != "" {
		return Number{}, errors.New(number.Held)
	}
	return number, err
}

// LastDesired also returns a decision while its input is unknown, for autoscalers that treat an error as no work.
// Decide holds replicas then, so the number is no guess.
func LastDesired(p *v1alpha1.AutoscalingPolicy) (Number, error) {
	status := p.Status
	var number Number
	if known := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionBacklogKnown); known != nil &&
		known.Status == metav1.ConditionFalse && known.Reason != v1alpha1.ReasonPartialAnswer {
		number.HeldSince, number.Held = known.LastTransitionTime.Time, conditionText(known)
		// The condition may be False since a partial answer, and decisions were made on those until the last one.
		if s := status.Signals; s != nil && known.Reason != v1alpha1.ReasonUnsupported &&
			s.MeasuredAt.After(number.HeldSince) {
			number.HeldSince = s.MeasuredAt.Time
		}
	}
	switch {
	case status.DesiredReplicas == nil && number.Held != "":
		return Number{}, errors.New(number.Held)
	case status.DesiredReplicas == nil:
		return Number{}, errors.New("no decision yet: " + undecidedReason(p))
	case status.Signals != nil && !status.Signals.MeasuredAt.IsZero():
		number.MeasuredAt = status.Signals.MeasuredAt.Time
	case status.Decision != nil && !status.Decision.Time.IsZero():
		number.MeasuredAt = status.Decision.Time.Time
	default:
		return Number{}, errors.New("no decision yet: the status does not say when its signals were measured")
	}
	number.Replicas = max(0, min(max(*status.DesiredReplicas, policy.MinReplicas(p.Spec)), p.Spec.MaxReplicas))
	return number, nil
}

// Heartbeat is the maximum age of a written decision. Other processes take an older one as no longer made.
const Heartbeat = 5 * time.Minute

const (
	// servedIntervals is the maximum age of a decision in poll intervals: one failed reconcile and one late one are
	// normal.
	servedIntervals = 3
	// servedAtLeast is the maximum age for short intervals. A HorizontalPodAutoscaler reads every 15 s, and a holder of
	// the Lease that cannot reach the API server ends after 10 s by default, so a shorter time would only report hiccups.
	servedAtLeast = 15 * time.Second
	// clocksApart is the time of a write until all processes see it, and the maximum difference between their clocks.
	clocksApart = 30 * time.Second
)

// MaxAge is the maximum age of a decision that the deciding process serves.
func MaxAge(pollInterval time.Duration) time.Duration {
	return max(servedIntervals*pollInterval, servedAtLeast)
}

// MaxWrittenAge is the maximum age of status.decision.time if another process decides, which writes it once a
// heartbeat.
func MaxWrittenAge(pollInterval time.Duration) time.Duration {
	return Heartbeat + MaxAge(pollInterval) + clocksApart
}

// wakeWithin is how long the controller may take to write the first replicas: milliseconds, or this long with retries.
const wakeWithin = 10 * time.Second

// BeingWoken reports whether the controller is about to write the decided replicas to a target at zero. An active
// scaler would make KEDA write 1 at the same time, and the later write stays. After wakeWithin KEDA wakes the target:
// after the decision, or after the first write that failed if other numbers were decided since.
func BeingWoken(p *v1alpha1.AutoscalingPolicy, now time.Time) bool {
	status := p.Status
	failed := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAutoscalerApplied)
	if failed != nil && failed.Reason == v1alpha1.ReasonScaleFailed &&
		now.Sub(failed.LastTransitionTime.Time) >= wakeWithin {
		return false
	}
	return p.Spec.Mode.IsAuto() &&
		status.Actuator != nil && status.Actuator.Type == v1alpha1.ActuatorKEDA &&
		status.DesiredReplicas != nil && *status.DesiredReplicas > 0 && status.SpecReplicas != nil &&
		*status.SpecReplicas == 0 &&
		status.Decision != nil && now.Sub(status.Decision.Time.Time) < wakeWithin
}

// Paused reports whether the policy is paused, so that replicas stay.
func Paused(p *v1alpha1.AutoscalingPolicy) bool {
	ready := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionReady)
	return ready != nil && ready.Reason == v1alpha1.ReasonPaused
}

// undecidedReason is the reason that there is no decision, by the status.
func undecidedReason(p *v1alpha1.AutoscalingPolicy) string {
	for _, name := range []string{v1alpha1.ConditionTargetFound, v1alpha1.ConditionReady} {
		c := meta.FindStatusCondition(p.Status.Conditions, name)
		if c != nil && (c.Status == metav1.ConditionFalse || c.Reason == v1alpha1.ReasonPaused) {
			return conditionText(c)
		}
	}
	return cmp.Or(SwitchedOff(p), "the policy is new, the first one needs two answers from Pulsar")
}

// SwitchedOff is why the target stays at 0 replicas although minReplicas is more, with the fix; empty if it does not.
// In mode Recommend a policy is Ready despite that.
func SwitchedOff(p *v1alpha1.AutoscalingPolicy) string {
	if d := p.Status.Decision; d != nil && d.Hold != nil && d.Hold.Reason == policy.HoldSwitchedOff {
		return d.Hold.Message
	}
	return ""
}

// conditionText is the message of a condition, or its reason if it has none.
func conditionText(c *metav1.Condition) string {
	if c.Message != "" {
		return c.Message
	}
	return c.Type + " is " + string(c.Status) + ": " + c.Reason
}
