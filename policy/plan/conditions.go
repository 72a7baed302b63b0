// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"strings"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// outcome is the observed state and the result of the writes, as conditions report them.
type outcome struct {
	Observed
	// decision is nil if there is none.
	decision *policy.Decision
	// starts is true while replicas of the last scale-up do not consume yet.
	starts                   bool
	applyFailed, scaleFailed error
}

// after the writes.
func (o Observed) after(r Result) outcome {
	o.Autoscaler, o.ScaledObject = r.Autoscaler, r.ScaledObject
	if r.Violation != nil {
		o.Violation = r.Violation
	}
	return outcome{Observed: o, applyFailed: r.ApplyFailed, scaleFailed: r.ScaleFailed}
}

// conditions are the updated conditions of the policy.
func (o outcome) conditions() []metav1.Condition {
	before := o.Policy.Status.Conditions
	if o.Policy.Spec.Mode == v1alpha1.ModePaused {
		return o.pausedConditions()
	}
	after := append([]metav1.Condition(nil), before...)
	set := func(c metav1.Condition) {
		c.ObservedGeneration = o.Policy.Generation
		c.LastTransitionTime = metav1.NewTime(o.Now)
		// The API server refuses a status with a text that is too long, and texts of other systems have any length.
		c.Message = Shorten(c.Message, maxMessage)
		meta.SetStatusCondition(&after, c)
	}
	target, known := targetFound(o.Observed), backlogKnown(o.Observed)
	applied, active := o.autoscalerApplied(), scalingActive(o.Observed)
	trouble, limited := o.trouble(target, known, applied, active), o.scalingLimited()
	objective := o.objectiveMet(trouble, limited)
	set(o.ready(trouble, active, objective, limited))
	for _, c := range []metav1.Condition{
		objective, limited, target, known, applied, subscriptionVerified(o),
		scalesWithoutRestart(o.Observed),
	} {
		set(c)
	}
	if active != nil {
		set(*active)
	} else {
		meta.RemoveStatusCondition(&after, v1alpha1.ConditionScalingActive)
	}
	return withStalled(after, o.Policy.Generation, o.Now)
}

// pausedConditions are Ready, and TargetFound while a FunctionMesh entry makes it False: in mode Paused all other
// conditions would be outdated.
func (o outcome) pausedConditions() []metav1.Condition {
	var after []metav1.Condition
	if last := meta.FindStatusCondition(o.Policy.Status.Conditions, v1alpha1.ConditionReady); last != nil {
		after = append(after, *last)
	}
	if missing := childMissing(o.Observed); missing != nil && missing.Status == metav1.ConditionFalse {
		if last := meta.FindStatusCondition(o.Policy.Status.Conditions, missing.Type); last != nil {
			after = append(after, *last)
		}
		missing.ObservedGeneration, missing.LastTransitionTime = o.Policy.Generation, metav1.NewTime(o.Now)
		meta.SetStatusCondition(&after, *missing)
	}
	meta.SetStatusCondition(&after, metav1.Condition{
		Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonPaused,
		ObservedGeneration: o.Policy.Generation,
		LastTransitionTime: metav1.NewTime(o.Now), Message: "mode is Paused: nothing is measured, decided or changed",
	})
	return after
}

func targetFound(o Observed) metav1.Condition {
	if v := o.Violation; v != nil && v.Condition == v1alpha1.ConditionTargetFound {
		return metav1.Condition{Type: v.Condition, Status: metav1.ConditionFalse, Reason: v.Reason, Message: v.Message}
	}
	if missing := childMissing(o); missing != nil {
		return *missing
	}
	return metav1.Condition{
		Type: v1alpha1.ConditionTargetFound, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonFound,
		Message: Name(o.Policy.Spec) + " exists and can be scaled",
	}
}

func (o outcome) autoscalerApplied() metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionAutoscalerApplied, Status: metav1.ConditionTrue}
	switch {
	case o.Violation != nil && o.Violation.Condition == c.Type:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, o.Violation.Reason, o.Violation.Message
	case o.Violation != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, v1alpha1.ReasonNotChecked, targetNotFoundYet
	case o.applyFailed != nil:
		c.Status, c.Reason = metav1.ConditionUnknown, v1alpha1.ReasonApplyFailed
		c.Message = "retrying after an error: " + o.applyFailed.Error()
	case o.scaleFailed != nil:
		c.Status, c.Reason = metav1.ConditionUnknown, v1alpha1.ReasonScaleFailed
		c.Message = "retrying after an error: " + o.scaleFailed.Error()
	case o.Policy.Spec.Mode == v1alpha1.ModeRecommend:
		c.Reason, c.Message = v1alpha1.ReasonRecommendOnly, "mode is Recommend: no HorizontalPodAutoscaler is created"
	case byKEDA(o.Observed) != nil:
		return *byKEDA(o.Observed)
	case o.Actuator.Type == v1alpha1.ActuatorDirect:
		c.Reason, c.Message = v1alpha1.ReasonDirect, "the controller writes the number of replicas itself: "+o.Actuator.Reason
	case o.Autoscaler == nil && !o.Target.mayHaveAutoscaler(o.Policy.Spec):
		c.Status, c.Reason = metav1.ConditionUnknown, v1alpha1.ReasonPending
		c.Message = "the HorizontalPodAutoscaler would bring the replicas within bounds, so it is created when they may " +
			"change: " + o.Target.Frozen.Message
	case o.Autoscaler == nil && o.Unknown != nil:
		c.Status, c.Reason = metav1.ConditionUnknown, v1alpha1.ReasonPending
		c.Message = "the HorizontalPodAutoscaler is created after the first answer from Pulsar"
	case o.Autoscaler != nil && !ToleranceHonoured(o.Autoscaler):
		c.Reason, c.Message = v1alpha1.ReasonToleranceUnsupported, toleranceIsDropped
	default:
		c.Reason = v1alpha1.ReasonApplied
		c.Message = "HorizontalPodAutoscaler " + AutoscalerName(o.Policy.Name) + " is up to date"
	}
	return c
}

const (
	toleranceIsDropped = "this Kubernetes version drops the tolerance of a HorizontalPodAutoscaler, which then ignores " +
		"changes of up to 10 %"
	targetNotFoundYet = "the target must be found first"
)

// scalesWithoutRestart warns of targets that restart their replicas when the number changes. The controller still
// scales them, in fewer and larger steps.
func scalesWithoutRestart(o Observed) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionScalesWithoutRestart}
	target := o.Target
	switch {
	case target == nil || (o.Violation != nil && o.Violation.Condition == v1alpha1.ConditionTargetFound):
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, v1alpha1.ReasonNotChecked, targetNotFoundYet
	case len(target.Disturbances) == 0:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonUndisturbed
		c.Message = "a change of the number of replicas restarts none that run"
	default:
		var messages []string
		for _, d := range target.Disturbances {
			messages = append(messages, d.Message)
		}
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, target.Disturbances[0].Reason, Shorten(strings.Join(messages,
			"; "), maxMessage)
	}
	return c
}

// scalingActive mirrors the condition of the policy's HPA or of KEDA; nil if there is none.
func scalingActive(o Observed) *metav1.Condition {
	if o.Policy.Spec.Mode == v1alpha1.ModeRecommend || o.Violation != nil {
		return nil
	}
	c := metav1.Condition{
		Type: v1alpha1.ConditionScalingActive, Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonPending,
		Message: "the HorizontalPodAutoscaler has not run yet",
	}
	switch {
	case SwitchedOff(o):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonSwitchedOff, switchedOff(o)
		return &c
	case o.keptReset() != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonReplicasReset, o.keptReset().Message
		return &c
	case o.Actuator.Type == v1alpha1.ActuatorKEDA && o.ownScaledObject() != nil &&
		o.ownScaledObject().Paused:
		return paused(o.ownScaledObject())
	case *o.Target.Replicas == 0:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonScaledToZero
		c.Message = "scaled to zero: a backlog wakes replicas"
		return &c
	case o.Actuator.Type == v1alpha1.ActuatorDirect:
		c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonDirect
		c.Message = "the controller writes the number of replicas itself"
		return &c
	case o.Actuator.Type == v1alpha1.ActuatorKEDA:
		c = kedaScales(o)
		return &c
	case o.Autoscaler == nil:
		return &c
	}
	c = mirrored(o, c, o.Autoscaler.Status.Conditions)
	return &c
}

// mirrored is the condition that a HorizontalPodAutoscaler reports of itself.
func mirrored(o Observed, c metav1.Condition,
	conditions []autoscalingv2.HorizontalPodAutoscalerCondition,
) metav1.Condition {
	for _, theirs := range conditions {
		switch {
		case theirs.Type != autoscalingv2.ScalingActive:
		case theirs.Reason == reasonScalingDisabled:
			// The HPA is disabled at zero replicas. There are some now, so it has not synced since.
			c.Status, c.Reason = metav1.ConditionTrue, v1alpha1.ReasonScaling
			c.Message = "replicas woke from zero; the HorizontalPodAutoscaler resumes at its next sync"
		default:
			c.Status, c.Reason, c.Message = metav1.ConditionStatus(theirs.Status), cmp.Or(theirs.Reason,
				v1alpha1.ReasonScaling), theirs.Message
			if theirs.Reason == reasonAmbiguousSelector {
				c.Message = ambiguousSelectorMessage(o, theirs.Message)
			}
		}
	}
	return c
}
