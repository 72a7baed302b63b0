// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// ErrUndecided is why a policy has no number to serve: nothing was decided yet, or what it would rest on is unknown.
var ErrUndecided = errors.New("nothing is decided")

// Published is a decision as autoscalers are told it.
type Published struct {
	// Replicas from 0 on, within the policy's present minReplicas and maxReplicas.
	Replicas int32
	// MeasuredAt is when what they rest on was measured, or when they were decided where that is not known.
	MeasuredAt time.Time
	// HeldSince is since when what they rest on has been unknown; zero while it is known.
	HeldSince time.Time
	// Held is why, in words for the user; empty while it is known.
	Held string
}

// Decided returns what was decided for the policy, or why an autoscaler that keeps its replicas on an error is to be
// told nothing: ErrUndecided, in words for the user.
//
// A status of an older generation counts: its target is the same, since scaleTargetRef cannot change, and the number
// is brought within the present bounds, so that a change of maxReplicas acts at once instead of freezing the
// autoscaler until the next decision. The mode does not matter: in Recommend no autoscaler of ours follows it.
func Decided(p *v1alpha1.AutoscalingPolicy) (Published, error) {
	served, err := LastDecided(p)
	if err == nil && served.Held != "" {
		return Published{}, because(ErrUndecided, served.Held)
	}
	return served, err
}

// LastDecided returns the same while what it rests on is unknown: for autoscalers that might take an error for nothing
// to do. Decide keeps replicas where they are then, so the number is no guess.
func LastDecided(p *v1alpha1.AutoscalingPolicy) (Published, error) {
	status := p.Status
	var served Published
	if known := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionBacklogKnown); known != nil &&
		known.Status == metav1.ConditionFalse {
		served.HeldSince, served.Held = known.LastTransitionTime.Time, wordsOf(known)
	}
	switch {
	case status.DesiredReplicas == nil && served.Held != "":
		return Published{}, because(ErrUndecided, served.Held)
	case status.DesiredReplicas == nil:
		return Published{}, because(ErrUndecided, "no decision yet: "+undecidedBecause(p))
	case status.Signals != nil && !status.Signals.MeasuredAt.IsZero():
		served.MeasuredAt = status.Signals.MeasuredAt.Time
	case status.Decision != nil && !status.Decision.Time.IsZero():
		served.MeasuredAt = status.Decision.Time.Time
	default:
		return Published{}, because(ErrUndecided, "no decision yet: the status does not say when its signals were measured")
	}
	served.Replicas = max(0, min(max(*status.DesiredReplicas, policy.MinReplicas(p.Spec)), p.Spec.MaxReplicas))
	return served, nil
}

// wakeWithin is how long the controller may take to write the first replicas: milliseconds where all is well, and this
// long where the API server has to be asked again.
const wakeWithin = 10 * time.Second

// BeingWoken says that the controller is about to write all replicas that were decided to a target that has none. KEDA
// would write 1 at the same time, were it told that there is something to do, and of two writes the later one stands.
// When the controller has not done it in time, it is KEDA's turn.
func BeingWoken(p *v1alpha1.AutoscalingPolicy, now time.Time) bool {
	status := p.Status
	return (p.Spec.Mode == v1alpha1.ModeAuto || p.Spec.Mode == "") &&
		status.Actuator != nil && status.Actuator.Type == v1alpha1.ActuatorKEDA &&
		status.DesiredReplicas != nil && *status.DesiredReplicas > 0 && status.SpecReplicas != nil &&
		*status.SpecReplicas == 0 &&
		status.Decision != nil && now.Sub(status.Decision.Time.Time) < wakeWithin
}

// undecidedBecause says in the words of the status why there is no decision.
func undecidedBecause(p *v1alpha1.AutoscalingPolicy) string {
	if p.Spec.Mode == v1alpha1.ModePaused {
		return "mode is Paused, so nothing is decided: set it to Auto or Recommend"
	}
	for _, name := range []string{v1alpha1.ConditionTargetFound, v1alpha1.ConditionReady} {
		if c := meta.FindStatusCondition(p.Status.Conditions, name); c != nil && c.Status == metav1.ConditionFalse {
			return wordsOf(c)
		}
	}
	if d := p.Status.Decision; d != nil && d.Hold != nil && d.Hold.Reason == policy.HoldSwitchedOff {
		return d.Hold.Message // Recommend is Ready even so
	}
	return "the policy is new, the first one takes two answers of Pulsar"
}

// wordsOf a condition: its message, or its reason when it has none.
func wordsOf(c *metav1.Condition) string {
	if c.Message != "" {
		return c.Message
	}
	return c.Type + " is " + string(c.Status) + ": " + c.Reason
}

// reasoned is an error with a text for users and the reason for programs.
type reasoned struct {
	reason error
	text   string
}

func (r *reasoned) Error() string { return r.text }

func (r *reasoned) Unwrap() error { return r.reason }

func because(reason error, text string) error { return &reasoned{reason, text} }
