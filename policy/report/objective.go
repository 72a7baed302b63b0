// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// objectiveMet reports whether messages have met the objective for objectiveFor, and otherwise the reason. It does not
// change until the opposite has lasted as long. Its messages have no numbers of the load: each change of a condition is
// a write.
func (o outcome) objectiveMet(trouble *metav1.Condition, limited metav1.Condition) metav1.Condition {
	switch {
	case o.decision == nil && trouble != nil && lastObjective(o.Policy) == metav1.ConditionFalse:
		return No(trouble.Reason, unknownObjective)
	case o.decision == nil:
		return Unsure(v1alpha1.ReasonNotChecked, "there is no decision")
	case o.Target.NeverAcknowledges:
		return Unsure(v1alpha1.ReasonNeverAcknowledged,
			"a window function leaves its messages in the backlog, which does not show how long they wait")
	}
	switch status := meetsObjective(o); {
	case status == metav1.ConditionTrue:
		return Yes(v1alpha1.ReasonWithinObjective, "messages meet the latency objective")
	case status == metav1.ConditionFalse:
		return No(o.missedReason(trouble, limited))
	case o.Reading == nil:
		return Unsure(v1alpha1.ReasonNotChecked, "the backlog must be known first")
	default:
		return Unsure(v1alpha1.ReasonPending, "it is measured for 30 s whether messages meet the latency objective")
	}
}

// unknownObjective is the message of an objective that was missed when it was last known.
const unknownObjective = "it is unknown whether messages meet the latency objective, see condition Ready"

// lastObjective is whether messages met the objective when the last status was written.
func lastObjective(p *v1alpha1.AutoscalingPolicy) metav1.ConditionStatus {
	if c := meta.FindStatusCondition(p.Status.Conditions, v1alpha1.ConditionObjectiveMet); c != nil {
		return c.Status
	}
	return metav1.ConditionUnknown
}

// meetsObjective is whether messages meet the objective.
func meetsObjective(o outcome) metav1.ConditionStatus {
	f, last := o.findings, lastObjective(o.Policy)
	now := metav1.ConditionFalse
	if f.met {
		now = metav1.ConditionTrue
	}
	switch {
	case o.Reading == nil && backlogKnown(o.Observed).Status != metav1.ConditionFalse:
		return metav1.ConditionUnknown
	case o.Reading == nil:
		known := meta.FindStatusCondition(o.Policy.Status.Conditions, v1alpha1.ConditionBacklogKnown)
		long := known != nil && known.Status == metav1.ConditionFalse &&
			o.Now.Sub(known.LastTransitionTime.Time) >= objectiveFor
		if long || last == metav1.ConditionFalse {
			return metav1.ConditionFalse
		}
		return metav1.ConditionUnknown
	case f.uncertain.lasted(objectiveFor):
		return metav1.ConditionFalse
	case f.served.since.IsZero():
		return last
	case f.served.lasted(objectiveFor) || (f.met && last == metav1.ConditionUnknown):
		return now
	default:
		return last
	}
}

// uncertain reports whether the known part of a reading is not sufficient to compare messages with the objective.
func uncertain(r *backlog.Reading, s policy.Service) bool {
	return partlyKnown(r) && s.Objective == policy.ObjectiveUnknown
}

// missedReason is the reason that messages miss the objective, the one to fix first. While Ready is not True it has the
// same reason.
func (o outcome) missedReason(trouble *metav1.Condition, limited metav1.Condition) (reason, message string) {
	const late = "messages wait longer than the latency objective: "
	switch {
	case trouble != nil && o.Reading == nil:
		return trouble.Reason, unknownObjective
	case trouble != nil && uncertain(o.Reading, o.decision.Service):
		return trouble.Reason, "it is unknown whether messages meet the latency objective: " +
			o.Reading.Coverage.Err().Error()
	case trouble != nil:
		return trouble.Reason, late + "see condition Ready"
	case o.Paused() != "":
		return v1alpha1.ReasonPaused, late + "the policy is paused, so nothing scales its target"
	case o.Policy.Spec.Mode == v1alpha1.ModeRecommend:
		return v1alpha1.ReasonRecommending, late + "mode is Recommend, so decisions are not carried out"
	}
	reason, message = o.limit(limited)
	return reason, late + message
}

// limit is what keeps messages from meeting the objective while the autoscaler does its job.
func (o outcome) limit(limited metav1.Condition) (reason, message string) {
	d, queues := o.decision, lateInQueues(o)
	held := ""
	if d.Hold != nil {
		held = d.Hold.Reason
	}
	switch {
	case o.Reading.Blocked:
		return v1alpha1.ReasonDispatchBlocked, "dispatch is blocked until consumers acknowledge messages"
	case o.Reading.Throttled:
		return v1alpha1.ReasonDispatchThrottled, "a dispatch rate limit of Pulsar throttles them"
	case d.Service.Failing || o.findings.stuck.lasted(stuckFor) || held == policy.HoldWakeBackoff:
		return v1alpha1.ReasonMessagesFail, "replicas do not process what they receive: look at their logs"
	case unconnected(o):
		return v1alpha1.ReasonMissingConsumers, "running replicas have too few consumers, see condition SubscriptionVerified"
	case queues.starve():
		return v1alpha1.ReasonReplicasStarved, queues.starvedMessage()
	case o.atLimit(limited):
		return limited.Reason, limited.Message
	case o.starting():
		return v1alpha1.ReasonReplicasStarting, "replicas are starting"
	case holdsBack(held):
		return v1alpha1.ReasonReplicasHeld, "the replicas are held (" + held + "), see status.decision.hold"
	default:
		return v1alpha1.ReasonCatchingUp, queues.drained()
	}
}

// limits reports whether a ScalingLimited names a bound above the replicas.
func limits(limited metav1.Condition) bool {
	return limited.Status == metav1.ConditionTrue && limited.Reason != v1alpha1.ReasonTooFewReplicas
}

// atLimit reports whether the target has the replicas that a bound allows.
func (o outcome) atLimit(limited metav1.Condition) bool {
	return limits(limited) && o.decision.Replicas <= *o.Target.Replicas
}

// starting reports whether decided replicas do not consume yet.
func (o outcome) starting() bool {
	running := running(o.Target, o.Pods)
	opens := o.state.Start.Open && o.state.Start.Replicas > o.state.Start.From
	return o.decision.Replicas > *o.Target.Replicas || o.Target.Unfollowed != "" || opens ||
		(running != nil && *running < *o.Target.Replicas)
}

// holdsBack reports whether a hold may keep replicas below what the objective needs.
func holdsBack(hold string) bool {
	switch hold {
	case "", policy.HoldStabilizing, policy.HoldWithinObjective:
		return false
	default:
		return true
	}
}

const (
	// learnedStarts of replicas are enough to compare their time with the objective.
	learnedStarts = 2
	// achievableMargin is how much longer than needed an objective is that counts as achievable again, and that the
	// message recommends, rounded up to recommendedStep: the learned time varies.
	achievableMargin, recommendedStep = 1.25, 5 * time.Second
)

// objectiveAchievable warns of an objective that is shorter than the time until new replicas consume. The controller
// still scales: a slow rise of the load is within the headroom.
func (o outcome) objectiveAchievable() metav1.Condition {
	switch {
	case o.decision == nil:
		return Unsure(v1alpha1.ReasonNotChecked, "there is no decision")
	case o.state.Start.Count < learnedStarts:
		return Unsure(v1alpha1.ReasonPending, "the time that a replica takes to start is not learned yet")
	}
	start := time.Duration(o.state.Start.Seconds * float64(time.Second)).Round(time.Second)
	needed, sync := start+o.PollInterval, ""
	if o.Actuator.Type != v1alpha1.ActuatorDirect {
		lag := plan.Input(o.Observed).Sync()
		needed, sync = needed+lag, ", sync of the autoscaler "+duration.HumanDuration(lag)
	}
	objective := policy.LatencyObjective(o.Policy.Spec)
	enough := time.Duration(achievableMargin * float64(needed))
	short := meta.IsStatusConditionFalse(o.Policy.Status.Conditions, v1alpha1.ConditionObjectiveAchievable)
	if needed <= objective && (!short || enough <= objective) {
		return Yes(v1alpha1.ReasonAchievable, "latencyObjective leaves time for new replicas to start")
	}
	when := "when the load rises fast"
	if policy.MinReplicas(o.Policy.Spec) == 0 && !o.Target.NeverZero {
		when += " or replicas wake from zero"
	}
	return No(v1alpha1.ReasonObjectiveTooShort, fmt.Sprintf("replicas consume %s after they are needed (start %s, poll "+
		"interval %s%s), and latencyObjective is %s: messages wait longer %s. Set latencyObjective to %s or more, or make "+
		"replicas start faster",
		duration.HumanDuration(needed), duration.HumanDuration(start), duration.HumanDuration(o.PollInterval), sync,
		duration.HumanDuration(objective), when,
		duration.HumanDuration((enough+recommendedStep-1).Truncate(recommendedStep)))+fasterStart(o.lastStart))
}
