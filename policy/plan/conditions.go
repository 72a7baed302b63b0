// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// outcome is the observed state and the result of the writes, as conditions report them.
type outcome struct {
	Observed
	// decision is nil if there is none.
	decision *policy.Decision
	// start is what was learned about starts of replicas.
	start                    policy.Start
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
		scalesWithoutRestart(o.Observed), o.objectiveAchievable(),
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

// unknownReasons maps the error of a missing reading to the reason of the condition.
func unknownReasons() []struct {
	err    error
	reason string
} {
	return []struct {
		err    error
		reason string
	}{
		// ErrStale wraps its cause, so it comes first.
		{backlog.ErrStale, v1alpha1.ReasonStale},
		{backlog.ErrNotTracked, v1alpha1.ReasonNotTracked},
		{backlog.ErrNoData, v1alpha1.ReasonNoDataYet},
		{backlog.ErrPartial, v1alpha1.ReasonPulsarUnavailable}, // no partition answered
		{backlog.ErrTopicNotFound, v1alpha1.ReasonTopicNotFound},
		{backlog.ErrSubscriptionNotFound, v1alpha1.ReasonSubscriptionNotFound},
		{backlog.ErrFunctionNotFound, v1alpha1.ReasonFunctionNotFound},
		{backlog.ErrNoWorker, v1alpha1.ReasonNoFunctionWorker},
		{backlog.ErrUnauthenticated, v1alpha1.ReasonCredentialsRefused},
		{backlog.ErrHostNotAllowed, v1alpha1.ReasonHostNotAllowed},
		{backlog.ErrForbidden, v1alpha1.ReasonPermissionMissing},
		{backlog.ErrUnreachable, v1alpha1.ReasonPulsarUnreachable},
		{backlog.ErrUnavailable, v1alpha1.ReasonPulsarUnavailable},
		{backlog.ErrProtocol, v1alpha1.ReasonUnexpectedAnswer},
		{backlog.ErrImplausible, v1alpha1.ReasonImplausibleAnswer},
		{backlog.ErrUnsupported, v1alpha1.ReasonUnsupported},
		{backlog.ErrTooManyTopics, v1alpha1.ReasonTooManyTopics},
	}
}

// UnknownReason is the condition reason for a missing reading.
func UnknownReason(err error) string {
	for _, row := range unknownReasons() {
		if errors.Is(err, row.err) {
			return row.reason
		}
	}
	return v1alpha1.ReasonUnknown
}

// backlogKnown is Unknown rather than False until the first answer, and while Pulsar is not polled.
func backlogKnown(o Observed) metav1.Condition {
	c := metav1.Condition{Type: v1alpha1.ConditionBacklogKnown}
	switch {
	case o.Violation != nil && o.Violation.Condition == v1alpha1.ConditionTargetFound:
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, v1alpha1.ReasonNotChecked, targetNotFoundYet
	case partlyKnown(o):
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonPartialAnswer, partialAnswer(o)
	case outdated(o) != nil:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, v1alpha1.ReasonStale, outdated(o).Error()
	case o.Unknown == nil:
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, v1alpha1.ReasonMeasured, wholeAnswer(o)
	case errors.Is(o.Unknown, backlog.ErrNoData) || errors.Is(o.Unknown, backlog.ErrNotTracked):
		c.Status, c.Reason, c.Message = metav1.ConditionUnknown, UnknownReason(o.Unknown), o.Unknown.Error()
	default:
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, UnknownReason(o.Unknown), o.Unknown.Error()
	}
	return c
}

// partlyKnown reports whether topics are missing, beyond the first answer of new ones.
func partlyKnown(o Observed) bool {
	return o.Reading != nil && !o.Reading.Coverage.Complete() && !o.Reading.Coverage.FirstAnswers()
}

// outdated is why the last two polls failed, such as a broker that hangs; nil if they did not. Decisions use the last
// answer for longer. The second poll fails when the answer is two poll intervals old, and after a timeout.
func outdated(o Observed) error {
	const polls = 2.25
	if o.Reading == nil || o.Reading.Trouble == nil ||
		o.Now.Sub(o.Reading.At).Seconds() < polls*o.pollInterval().Seconds() {
		return nil
	}
	return fmt.Errorf("%w: no good answer since %s: %w", backlog.ErrStale, o.Reading.At.UTC().Format(time.RFC3339),
		o.Reading.Trouble)
}

// pollInterval is a third of FreshFor.
func (o Observed) pollInterval() time.Duration { return o.FreshFor / 3 }

// partialAnswer names the topics that are missing.
func partialAnswer(o Observed) string {
	return o.Reading.Coverage.Err().Error() + "; replicas are added for the known ones, and none is removed"
}

// wholeAnswer reports that all topics are known, and which inputs are left out.
func wholeAnswer(o Observed) string {
	const all, mostNamed = "Pulsar answers for every input topic", 5
	if o.Target == nil {
		return all
	}
	leftOut := o.Target.Subscription.NonPersistent()
	if len(leftOut) == 0 {
		return all
	}
	names := strings.Join(leftOut[:min(len(leftOut), mostNamed)], ", ")
	if more := len(leftOut) - mostNamed; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return all + " that is persistent; the others keep no backlog and are left out: " + names
}
