// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// trouble is why the autoscaler does not do its job; nil if it does. It is the first condition that is not True, in the
// order in which a user fixes them. ScalingActive comes late, since it is False if an earlier one is.
//
// The job is to know the backlog, to decide, and to have the decided replicas running. Other limits, such as
// maxReplicas or a limit behind the Function, leave Ready True: ScalingLimited and ObjectiveMet report them. So while
// Ready is True, ObjectiveMet is never False because of the autoscaler itself.
func (o outcome) trouble(target, known, applied metav1.Condition, active *metav1.Condition) *metav1.Condition {
	if target.Status == metav1.ConditionFalse {
		return &target
	}
	for _, part := range []*metav1.Condition{
		operatorFollows(o), &target, &known, &applied, active, autoscalerFollows(o),
		replicasStart(o),
	} {
		if part != nil && part.Status != metav1.ConditionTrue {
			return part
		}
	}
	return nil
}

// ready is True while there is no trouble, or the policy is paused: other conditions show trouble then. Its message
// names what else keeps messages from meeting the objective, without numbers: each change of a condition is a write.
func (o outcome) ready(trouble, active *metav1.Condition, objective, limited metav1.Condition) metav1.Condition {
	var c metav1.Condition
	switch {
	case o.Paused() != "":
		c = Yes(v1alpha1.ReasonPaused, o.Paused())
	case trouble != nil:
		return *trouble
	case o.Policy.Spec.Mode == v1alpha1.ModeRecommend:
		c = Yes(v1alpha1.ReasonRecommending, "mode is Recommend: decisions are shown and not carried out")
	case active != nil && active.Reason == v1alpha1.ReasonScaledToZero:
		c = Yes(v1alpha1.ReasonScaledToZero, active.Message)
	default:
		c = Yes(v1alpha1.ReasonScaling, o.progress())
	}
	switch {
	case objective.Status == metav1.ConditionFalse:
		c.Message += fmt.Sprintf("; messages wait longer than the latency objective (%s)", objective.Reason)
	case o.atLimit(limited):
		c.Message += "; " + limited.Message
	}
	return c
}

// progress is how far the last decision is carried out.
func (o outcome) progress() string {
	running := running(o.Target, o.Pods)
	switch d := o.decision; {
	case d != nil && d.Hold != nil:
		return "the replicas are held (" + d.Hold.Reason + "), see status.decision.hold"
	case (d != nil && d.Replicas != *o.Target.Replicas) || o.Target.Unfollowed != "":
		return "the target is about to follow a new decision"
	case running != nil && *running < *o.Target.Replicas:
		return "the target follows the decisions, and replicas are starting"
	default:
		return "the target follows the decisions"
	}
}

// scalingLimited names the bound that limits the replicas to a number that the load does not need. Its messages have no
// numbers of the load: each change of a condition is a write.
func (o outcome) scalingLimited() metav1.Condition {
	d := o.decision
	switch {
	case d == nil || o.Paused() != "":
		return Unsure(v1alpha1.ReasonNotChecked, "there is no decision")
	case o.Reading == nil:
		return Unsure(v1alpha1.ReasonNotChecked, "the backlog must be known first")
	case d.Hold != nil && externalLimit(d.Hold.Reason):
		return Yes(v1alpha1.ReasonExternalLimit, "more replicas would process no more messages ("+d.Hold.Reason+
			"), see status.decision.hold")
	case d.CappedBy == policy.CappedByMax:
		return Yes(v1alpha1.ReasonTooManyReplicas, "the load needs more replicas than maxReplicas"+
			ofSchedules(o.Limits, o.Limited().Spec.MaxReplicas, o.Policy.Spec.MaxReplicas))
	case d.CappedBy == policy.CappedByMin:
		return Yes(v1alpha1.ReasonTooFewReplicas, "the load needs fewer replicas than minReplicas"+
			ofSchedules(o.Limits, policy.MinReplicas(o.Limited().Spec), policy.MinReplicas(o.Policy.Spec)))
	case d.CappedBy == policy.CappedByPartitions && o.state.Type.Is == backlog.Exclusive:
		return Yes(v1alpha1.ReasonTooFewPartitions, "the load needs more replicas than the one consumer of an Exclusive "+
			"subscription")
	case d.CappedBy == policy.CappedByPartitions:
		return Yes(v1alpha1.ReasonTooFewPartitions, "the load needs more replicas than the subscription has partitions or "+
			"segments for")
	default:
		return No(v1alpha1.ReasonDesiredWithinRange, "no bound limits the desired replicas")
	}
}

// ofSchedules names the active schedules if they set a limit; empty if the spec does.
func ofSchedules(limits *v1alpha1.Limits, now, own int32) string {
	if now == own {
		return ""
	}
	return fmt.Sprintf(" %d of the active schedules (%s)", now, names(limits.Schedules))
}

// externalLimit reports whether the limit of a hold is outside the Function.
func externalLimit(hold string) bool {
	return hold == policy.HoldIneffective || hold == policy.HoldDispatchLimited
}

// stalledAfter is how long a condition has to be False before the policy is stalled. What is applied together with a
// policy, such as its target, exists by then.
const stalledAfter = time.Minute

// WithStalled adds condition Stalled to those of a policy or a set while only a user can fix one, or removes it.
//
// Source: github.com/fluxcd/cli-utils v1.2.2, pkg/kstatus/status/generic.go: Stalled fails a deployment at once, and
// Ready that is not True is waited for.
func WithStalled(conditions []metav1.Condition, generation int64, now time.Time) []metav1.Condition {
	after := slices.Clone(conditions)
	for _, name := range []string{
		v1alpha1.ConditionTargetFound, v1alpha1.ConditionAutoscalerApplied, v1alpha1.ConditionPoliciesApplied,
	} {
		c := meta.FindStatusCondition(after, name)
		if c == nil || c.Status != metav1.ConditionFalse || isTransient(c.Reason) ||
			now.Sub(c.LastTransitionTime.Time) < stalledAfter {
			continue
		}
		meta.SetStatusCondition(&after, metav1.Condition{
			Type: v1alpha1.ConditionStalled, Status: metav1.ConditionTrue, Reason: c.Reason, Message: c.Message,
			ObservedGeneration: generation, LastTransitionTime: metav1.NewTime(now),
		})
		return after
	}
	meta.RemoveStatusCondition(&after, v1alpha1.ConditionStalled)
	return after
}

// isTransient reports whether a False condition with this reason may become True without a user.
func isTransient(reason string) bool {
	switch reason {
	case v1alpha1.ReasonTakingOver, v1alpha1.ReasonTakeOverFailed, v1alpha1.ReasonRestoring,
		v1alpha1.ReasonScaledObjectStays,
		// Pulsar's function worker answers late or wrongly.
		v1alpha1.ReasonNoDataYet, v1alpha1.ReasonStale, v1alpha1.ReasonPulsarUnreachable,
		v1alpha1.ReasonPulsarUnavailable, v1alpha1.ReasonUnexpectedAnswer, v1alpha1.ReasonImplausibleAnswer,
		v1alpha1.ReasonUnknown:
		return true
	default:
		return false
	}
}

// scalingActive mirrors the condition of the policy's HPA or of KEDA; nil if there is none.
func scalingActive(o plan.Observed) *metav1.Condition {
	if !o.Applies() || o.Violation != nil {
		return nil
	}
	c := Unsure(v1alpha1.ReasonPending, "the HorizontalPodAutoscaler has not run yet")
	switch ours := o.OwnScaledObject(o.Policy); {
	case o.SwitchedOff() != nil:
		c = No(v1alpha1.ReasonSwitchedOff, o.SwitchedOff().Message)
	case o.KeptReset() != nil:
		c = No(v1alpha1.ReasonReplicasReset, o.KeptReset().Message)
	case o.Actuator.Type == v1alpha1.ActuatorKEDA && ours != nil && ours.Paused:
		c = No(v1alpha1.ReasonScaledObjectPaused, fmt.Sprintf("ScaledObject %s is paused by an annotation "+
			"(autoscaling.keda.sh/paused or paused-replicas), which switches scaling off: remove it to resume", ours.Name))
	case *o.Target.Replicas == 0:
		c = Yes(v1alpha1.ReasonScaledToZero, "scaled to zero: a backlog wakes replicas")
	case o.Actuator.Type == v1alpha1.ActuatorDirect:
		c = Yes(v1alpha1.ReasonDirect, "the controller writes the number of replicas itself")
	case o.Actuator.Type == v1alpha1.ActuatorKEDA:
		c = kedaScales(o)
	case o.Autoscaler != nil:
		c = mirrored(o, c, o.Autoscaler.Status.Conditions)
	}
	return &c
}

// mirrored is the condition that a HorizontalPodAutoscaler reports of itself.
func mirrored(o plan.Observed, c metav1.Condition,
	conditions []autoscalingv2.HorizontalPodAutoscalerCondition,
) metav1.Condition {
	for _, theirs := range conditions {
		switch {
		case theirs.Type != autoscalingv2.ScalingActive:
		case theirs.Reason == reasonScalingDisabled:
			// The HPA is disabled at zero replicas. There are some now, so it has not synced since.
			c = Yes(v1alpha1.ReasonScaling, "replicas woke from zero; the HorizontalPodAutoscaler resumes at its next sync")
		case theirs.Reason == reasonFailedMetric && knownAgain(o):
			c = Yes(v1alpha1.ReasonScaling, "the backlog is known; the HorizontalPodAutoscaler resumes at its next sync")
		default:
			c.Status, c.Reason, c.Message = metav1.ConditionStatus(theirs.Status), cmp.Or(theirs.Reason,
				v1alpha1.ReasonScaling), theirs.Message
			if theirs.Reason == reasonAmbiguousSelector {
				c.Message = ambiguousSelectorMessage(o.Policy, theirs.Message)
			}
		}
	}
	return c
}

// knownAgain reports whether the backlog became known so lately that the HorizontalPodAutoscaler has not synced since.
func knownAgain(o plan.Observed) bool {
	last := meta.FindStatusCondition(o.Policy.Status.Conditions, v1alpha1.ConditionBacklogKnown)
	return o.Reading != nil && last != nil &&
		(last.Status != metav1.ConditionTrue || o.Now.Sub(last.LastTransitionTime.Time) < plan.SlowAfter)
}

// Reasons of a HorizontalPodAutoscaler.
const (
	// reasonFailedMetric: it got no metric. None is served while the backlog is unknown.
	reasonFailedMetric = "FailedGetObjectMetric"
	// reasonScalingDisabled: its target is at zero.
	reasonScalingDisabled = "ScalingDisabled"
	// reasonAmbiguousSelector: another one selects the same pods, which stops both.
	reasonAmbiguousSelector = "AmbiguousSelector"
)

// ambiguousSelectorMessage names the other autoscalers of a message such as "pods by selector ... are controlled by
// multiple HPAs: [media/ours media/theirs]".
//
// Source: Kubernetes 1.36, pkg/controller/podautoscaler/horizontal.go, validateAndParseSelector.
func ambiguousSelectorMessage(p *v1alpha1.AutoscalingPolicy, theirs string) string {
	begin, end := strings.LastIndexByte(theirs, '['), strings.LastIndexByte(theirs, ']')
	if begin < 0 || end < begin {
		return theirs
	}
	ours := p.Namespace + "/" + plan.AutoscalerName(p.Name)
	others := slices.DeleteFunc(strings.Fields(theirs[begin+1:end]), func(name string) bool { return name == ours })
	if len(others) == 0 {
		return theirs
	}
	return fmt.Sprintf(
		"HorizontalPodAutoscaler %s selects the same pods, which stops both: delete it, or give its pods labels of their own",
		strings.Join(others, ", "))
}
