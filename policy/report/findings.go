// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

const (
	// unfollowedFor is how long the operator of a target may take to act on a change, usually about 40 ms.
	unfollowedFor = 30 * time.Second
	// An autoscaler may take two syncs of 15 s to set the decided number, and longer beside many others: with
	// kube-controller-manager's default limits each takes 50 ms. After longestUnscaled it is overloaded.
	unscaledFor, unscaledEach, longestUnscaled = 30 * time.Second, 100 * time.Millisecond, 2 * time.Minute
	// notStartingFor is how long pods must crash, and missingFor how long too few must run. policy.NotStarting gives
	// pending pods the same time.
	notStartingFor, missingFor = 30 * time.Second, 5 * time.Minute
	// consumersFor is how long there may be too few consumers, of programs that start, or too many: those of terminating
	// pods disconnect after a grace period, and those of a lost node after a keep-alive of the broker.
	consumersFor = 2 * time.Minute
	// missingShare of the replicas must be missing.
	missingShare = 0.2
	// objectiveFor is how long messages must miss, or meet, the objective.
	objectiveFor = 30 * time.Second
	// stuckFor is how long the same message must be the oldest: from one age to the next, 30 s later. In a queue that
	// replicas drain, the oldest message changes.
	stuckFor = 20 * time.Second
)

// period is a time in which every reconcile had the same finding. It is zero while there is no finding.
type period struct{ since, until time.Time }

// next is the period after another reconcile. It ends when there was no finding for the grace period.
func (s period) next(found bool, now time.Time, grace time.Duration) period {
	switch {
	case found && s.since.IsZero():
		return period{since: now, until: now}
	case found:
		return period{since: s.since, until: now}
	case now.Sub(s.until) < grace:
		return s
	default:
		return period{}
	}
}

func (s period) lasted(d time.Duration) bool { return !s.since.IsZero() && s.until.Sub(s.since) >= d }

// History is what earlier reconciles of a policy in this process found and reported, as far as later ones depend on it.
type History struct {
	// findings are how long the target has not followed, and how long messages have met or missed the objective.
	findings findings
	// events that were recorded.
	events eventHistory
	// reportedAt is when the status was last written. changesUntil grows with each status that changes only reasons.
	reportedAt, changesUntil time.Time
}

// findings are the basis of the conditions Ready and ObjectiveMet, each with its start.
type findings struct {
	// replicas of the target at the last reconcile; nil before the first.
	replicas *int32
	// unfollowed: the operator has not acted on a change. unscaled: the autoscaler has not set the decided number.
	unfollowed, unscaled period
	// actuator had to set that number. lagging: it could, see maySet.
	actuator v1alpha1.Actuator
	lagging  period
	// notStarting: pods are pending or crash. missing: too few replicas run. unconnected: those have too few consumers.
	// surplus: too many.
	notStarting, missing, unconnected, surplus period
	// served is whether messages met the objective throughout the period.
	served period
	met    bool
	// uncertain: a part is unknown, and the known part does not show whether messages meet the objective.
	uncertain period
	// stalledSince is when the backlog stopped being processed; zero if it is processed.
	stalledSince time.Time
	// oldest is a message that is late although others are not, and stuck the time for which it has been the same one.
	oldest time.Time
	stuck  period
	// scaleDown is the last one.
	scaleDown scaleDown
}

// Decided is the history after a decision; nil if there was none. Status needs it.
func (h History) Decided(o plan.Observed, d *policy.Decision) History {
	if d == nil {
		h.findings = findings{}
		return h
	}
	f, current := h.findings, *o.Target.Replicas
	if f.replicas != nil && *f.replicas != current {
		f.unscaled, f.lagging, f.missing = period{}, period{}, period{} // something scales the target
	}
	if f.actuator != o.Actuator.Type {
		f.actuator, f.unscaled, f.lagging = o.Actuator.Type, period{}, period{}
	}
	f.scaleDown = f.scaleDown.next(o, f.replicas)
	f.replicas = &current
	f.unfollowed = f.unfollowed.next(o.Target.Unfollowed != "" && o.Target.Frozen == nil, o.Now, 0)
	unset := unscaled(o, *d)
	f.unscaled = f.unscaled.next(unset, o.Now, 0)
	f.lagging = f.watched(o).next(unset && maySet(o, d.Replicas), o.Now, 0)
	stuck := policy.NotStarting(o.Pods, o.Now) != ""
	f.notStarting = f.notStarting.next(stuck, o.Now, notStartingFor)
	f.missing = f.missing.next(missing(o.Target, o.Pods), o.Now, 0)
	in := plan.Input(o)
	f.unconnected = f.unconnected.next(in.MissingConsumers() > 0, o.Now, 0)
	if o.Unknown == nil {
		f.surplus = f.surplus.next(in.SurplusConsumers() > 0, o.Now, 0)
	}
	h.findings, h.events = f.serve(o, d.Service), h.events.decided(o, *d)
	return h
}

// serve adds the comparison of a reading with the objective. An unknown comparison changes nothing.
func (f findings) serve(o plan.Observed, s policy.Service) findings {
	objective := policy.LatencyObjective(o.Policy.Spec)
	if moved := s.Oldest.Sub(f.oldest).Abs(); moved > time.Second/2 {
		f.oldest, f.stuck = s.Oldest, period{}
	}
	f.stuck = f.stuck.next(!s.Oldest.IsZero(), s.At, 0)
	f.uncertain = f.uncertain.next(uncertain(o.Reading, s), o.Now, 0)
	met, since := s.Objective == policy.ObjectiveMet, s.At
	switch s.Objective {
	case policy.ObjectiveUnknown:
		return f
	case policy.ObjectiveStalled:
		if f.stalledSince.IsZero() {
			f.stalledSince = s.At
		}
		if since = f.stalledSince.Add(objective); since.After(s.At) {
			return f
		}
	default:
		f.stalledSince = time.Time{}
	}
	if f.met != met || f.served.since.IsZero() {
		f.met, f.served = met, period{since: since}
	}
	if s.At.After(f.served.until) {
		f.served.until = s.At
	}
	return f
}

// Late reports whether messages missed the objective at the last conclusive reading. One with unknown parts may be
// inconclusive.
func (h History) Late() bool {
	f := h.findings
	return !f.served.since.IsZero() && !f.met && f.uncertain.since.IsZero()
}

// Unset is the decided number that the autoscaler had to set at the last reconcile.
func (h History) Unset(o plan.Observed) plan.Unset {
	lagging := h.findings.watched(o)
	if lagging.since.IsZero() {
		return plan.Unset{}
	}
	return plan.Unset{Since: lagging.since, Replicas: *h.findings.replicas}
}

// watched is how long the autoscaler has lagged. Without reconciles, such as while the API server was unavailable, it
// may have had no decision to follow.
func (f findings) watched(o plan.Observed) period {
	if o.Now.Sub(f.lagging.until) > policy.FreshPolls*o.PollInterval {
		return period{}
	}
	return f.lagging
}

// unscaled reports whether an autoscaler has yet to set the decided number, and nothing prevents it.
func unscaled(o plan.Observed, d policy.Decision) bool {
	current := *o.Target.Replicas
	return d.Replicas != current && plan.Scales(o) && !o.CreatesChild() &&
		!o.OwnScaledObject(o.Policy).Forbids(current, d.Replicas) && !withinTolerance(o, current, d.Replicas)
}

// maySet reports whether a HorizontalPodAutoscaler could set the number: it has no error, the API server did not refuse
// to change it, and its own bounds, which a user may have edited, allow that.
func maySet(o plan.Observed, decided int32) bool {
	hpa := autoscalerOf(o)
	return hpa != nil && unable(hpa) == "" && o.Refused() == nil &&
		decided >= *cmp.Or(hpa.Spec.MinReplicas, new(int32(1))) && decided <= hpa.Spec.MaxReplicas
}

// withinTolerance reports whether an autoscaler without our tolerance ignores the change: up to a tenth.
func withinTolerance(o plan.Observed, current, decided int32) bool {
	hpa := autoscalerOf(o)
	return hpa != nil && !plan.ToleranceHonoured(hpa) && 10*max(current-decided, decided-current) <= current
}

// autoscalerOf is the HorizontalPodAutoscaler that sets the decided number; nil for none.
func autoscalerOf(o plan.Observed) *autoscalingv2.HorizontalPodAutoscaler {
	switch o.Actuator.Type {
	case v1alpha1.ActuatorDirect:
		return nil
	case v1alpha1.ActuatorKEDA:
		return o.KEDAAutoscaler
	default:
		return o.Autoscaler
	}
}

// missing reports whether far fewer replicas run than the target has, while no rollout replaces them.
func missing(target *plan.Target, pods *policy.Pods) bool {
	running, wanted := running(target, pods), float64(*target.Replicas)
	return running != nil && (pods == nil || !pods.Updating) && wanted-float64(*running) > missingShare*wanted
}

// operatorFollows reports an operator that does not act on a change of the target's replicas; nil if it does.
func operatorFollows(o outcome) *metav1.Condition {
	if !plan.Scales(o.Observed) {
		return nil
	}
	return o.lasting(o.findings.unfollowed, unfollowedFor, v1alpha1.ReasonNotFollowed, o.Target.Unfollowed)
}

// autoscalerFollows reports an autoscaler that does not set the decided number; nil if it does.
func autoscalerFollows(o outcome) *metav1.Condition {
	if !plan.Scales(o.Observed) {
		return nil
	}
	wait := min(max(unscaledFor, time.Duration(o.Policies)*unscaledEach), longestUnscaled)
	return o.lasting(o.findings.unscaled, wait, v1alpha1.ReasonNotFollowed, unscaledMessage(o.Observed))
}

// replicasStart reports replicas that do not run; nil if they do, or are about to.
func replicasStart(o outcome) *metav1.Condition {
	if !plan.Scales(o.Observed) {
		return nil
	}
	f, name := o.findings, plan.Name(o.Policy.Spec)
	message := fmt.Sprintf("replicas of %s are pending, crash or are missing: look at the events of the object that "+
		"creates its pods, and at the events and logs of the pods", name)
	if c := o.lasting(f.notStarting, notStartingFor, v1alpha1.ReasonReplicasNotStarting, message); c != nil {
		return c
	}
	return o.lasting(f.missing, missingFor, v1alpha1.ReasonReplicasNotStarting, message)
}

// lasting is Ready with a reason if the finding has lasted. It also counts if the last status reported it, since
// another process may have made the finding.
func (o outcome) lasting(s period, least time.Duration, reason, message string) *metav1.Condition {
	last := meta.FindStatusCondition(o.Policy.Status.Conditions, v1alpha1.ConditionReady)
	reported := last != nil && last.Status == metav1.ConditionFalse && last.Reason == reason && last.Message == message
	if s.lasted(least) || (reported && !s.since.IsZero()) {
		return new(No(reason, message))
	}
	return nil
}

// unscaledMessage names the actuator that does not set the decided number, with the fix.
func unscaledMessage(o plan.Observed) string {
	const overloaded = "check that kube-controller-manager runs; with hundreds of autoscalers " + plan.RaiseLimits
	switch o.Actuator.Type {
	case v1alpha1.ActuatorDirect:
		return "the replicas that the controller writes do not stay: find out what else writes them, by the events " +
			"ReplicasChangedExternally of the policy"
	case v1alpha1.ActuatorKEDA:
		return fmt.Sprintf("KEDA does not set the decided replicas%s: check that its operator and metrics server run; %s",
			unable(o.KEDAAutoscaler), overloaded)
	default:
		return fmt.Sprintf("HorizontalPodAutoscaler %s does not set the decided replicas%s: %s",
			plan.AutoscalerName(o.Policy.Name), unable(o.Autoscaler), overloaded)
	}
}

// unable is the reason that a HorizontalPodAutoscaler reports for not scaling; empty for none.
func unable(hpa *autoscalingv2.HorizontalPodAutoscaler) string {
	if hpa == nil {
		return ""
	}
	for _, c := range hpa.Status.Conditions {
		if c.Type != autoscalingv2.ScalingLimited && c.Status == corev1.ConditionFalse && c.Reason != reasonScalingDisabled {
			return " (" + c.Reason + ")"
		}
	}
	return ""
}
