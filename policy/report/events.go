// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"maps"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// Reasons of events that are not the reason of a condition.
const (
	reasonDesiredReplicasChanged = "DesiredReplicasChanged"
	reasonLimitsChanged          = "ReplicaLimitsChanged"
	reasonReplicasReleased       = "ReplicasReleased"
)

// eventEvery is the minimum time between two events about one subject that changes with the load.
const eventEvery = time.Minute

// MaxNote is the longest note of an event that the API accepts, in bytes.
const MaxNote = 1024

// Event reports a change to the user.
type Event struct {
	// Type is Normal or Warning.
	Type   string
	Reason string
	// Action distinguishes events: within six minutes the recorder folds events of equal type, reason and action into a
	// series and keeps the text of the first.
	Action string
	Note   string
}

// eventHistory is what events have reported.
type eventHistory struct {
	// raise is the hold that keeps replicas below what the load needs.
	raise policy.Hold
	// unwritten is the status that first had the number of the last decision, until one is written; nil for none.
	unwritten *v1alpha1.AutoscalingPolicyStatus
	// reported by subject, which is the type of a condition or subjectRaise.
	reported map[string]reportedProblem
}

type reportedProblem struct {
	// reason of the problem; empty for none.
	reason string
	at     time.Time
}

// subjectRaise is the subject of holds that keep replicas below what the load needs.
const subjectRaise = "Raise"

// subject is a source of problems. Events report the start and the end of each problem.
type subject struct {
	name string
	// before and after are the problem; without a reason if there is none, and nil if that is unknown.
	before, after *policy.Hold
	// since is when the problem of before began.
	since time.Time
	// every is the minimum time between its events. The last change is reported then, if it persists.
	every time.Duration
	begin func(policy.Hold) Event
	end   func(was string) Event
}

// Events are the events of the step to the next status, and the history after them. Each problem is reported once, and
// so is its end. If the status is the same, Events returns the events that came too early before.
func Events(o plan.Observed, h History, after v1alpha1.AutoscalingPolicyStatus) ([]Event, History) {
	before := o.Policy.Status
	var all []Event
	if from, to, changed := desiredChange(before, after); changed {
		why := after.Decision
		if first := h.events.unwritten; first != nil && *first.DesiredReplicas == to {
			why = first.Decision // the last decision holds what that one changed
		}
		all = append(all, desiredReplicasChanged(from, to, why))
	}
	h.events.unwritten = nil
	if !equality.Semantic.DeepEqual(before.Limits, after.Limits) && o.BadSchedule == nil {
		all = append(all, limitsChanged(o))
	}
	for _, s := range append(conditionSubjects(before, after), raiseSubject(before, h.events.raise)) {
		last, kept := h.events.reported[s.name]
		if !kept && s.before != nil {
			last = reportedProblem{s.before.Reason, s.since} // by the process before
		}
		if s.after != nil && s.after.Reason != last.reason && o.Now.Sub(last.at) >= s.every {
			if s.after.Reason != "" {
				all = append(all, s.begin(*s.after))
			} else {
				all = append(all, s.end(last.reason))
			}
			last, kept = reportedProblem{s.after.Reason, o.Now}, false
		}
		if !kept {
			h.events = h.events.with(s.name, last)
		}
	}
	return all, h
}

// Unwritten is the history after a status that a later one reports.
func (h History) Unwritten(before, after v1alpha1.AutoscalingPolicyStatus) History {
	first := h.events.unwritten
	if _, to, changed := desiredChange(before, after); changed && (first == nil || *first.DesiredReplicas != to) {
		h.events.unwritten = &after
	}
	return h
}

// with is the history after a report. Earlier histories share the map, so it is copied.
func (h eventHistory) with(name string, last reportedProblem) eventHistory {
	reported := map[string]reportedProblem{}
	maps.Copy(reported, h.reported)
	reported[name] = last
	h.reported = reported
	return h
}

// conditionSubjects are the conditions for which a change is an event. The other conditions are parts of Ready.
func conditionSubjects(before, after v1alpha1.AutoscalingPolicyStatus) []subject {
	conditions := []struct {
		name  string
		every time.Duration
	}{
		{v1alpha1.ConditionReady, 0},
		{v1alpha1.ConditionSubscriptionVerified, 0},
		{v1alpha1.ConditionScalesWithoutRestart, 0},
		{v1alpha1.ConditionObjectiveAchievable, 0},
		{v1alpha1.ConditionScalingLimited, eventEvery},
		{v1alpha1.ConditionObjectiveMet, eventEvery},
	}
	all := make([]subject, 0, len(conditions)+1) // and that of holds
	for _, c := range conditions {
		was, is := meta.FindStatusCondition(before.Conditions, c.name), meta.FindStatusCondition(after.Conditions, c.name)
		s := subject{name: c.name, before: problemOf(was), after: problemOf(is), every: c.every}
		if was != nil {
			s.since = was.LastTransitionTime.Time
		}
		s.begin = func(p policy.Hold) Event {
			return Event{corev1.EventTypeWarning, p.Reason, "Check" + c.name, p.Message}
		}
		s.end = func(was string) Event {
			return Event{
				corev1.EventTypeNormal, is.Reason, "Recover" + c.name,
				fmt.Sprintf("%s is no longer %s: %s", c.name, was, is.Message),
			}
		}
		all = append(all, s)
	}
	return all
}

// problemOf is the problem of a condition; nil if it is unknown.
func problemOf(c *metav1.Condition) *policy.Hold {
	switch {
	case c == nil || c.Status == metav1.ConditionUnknown:
		return nil
	case c.Type == v1alpha1.ConditionScalingLimited && limits(*c),
		c.Type != v1alpha1.ConditionScalingLimited && c.Status == metav1.ConditionFalse:
		return &policy.Hold{Reason: c.Reason, Message: c.Message}
	default:
		return &policy.Hold{}
	}
}

// raiseSubject is the subject of holds. The status does not show whether a hold kept replicas below what the load
// needs.
func raiseSubject(before v1alpha1.AutoscalingPolicyStatus, raise policy.Hold) subject {
	s := subject{name: subjectRaise, after: &raise, every: eventEvery}
	if d := before.Decision; d != nil && d.Hold != nil && d.Hold.Reason == raise.Reason {
		s.before, s.since = &raise, d.Time.Time
	}
	s.begin = func(p policy.Hold) Event {
		return Event{corev1.EventTypeNormal, v1alpha1.ReasonReplicasHeld, "Hold" + p.Reason, p.Reason + ": " + p.Message}
	}
	s.end = func(was string) Event {
		return Event{
			corev1.EventTypeNormal, reasonReplicasReleased, "Release" + was,
			"the replicas are no longer held: " + was,
		}
	}
	return s
}

// decided is the history after a decision. Without a reading it is unknown whether more replicas are needed.
func (h eventHistory) decided(o plan.Observed, d policy.Decision) eventHistory {
	switch {
	case o.Paused() != "":
		h.raise = policy.Hold{}
	case o.Reading != nil:
		h.raise = heldRaise(o.Limited().Spec, d)
	}
	return h
}

// heldRaise is the hold that keeps replicas below what the load needs. External limits are no such holds:
// ScalingLimited reports them.
func heldRaise(spec v1alpha1.AutoscalingPolicySpec, d policy.Decision) policy.Hold {
	switch {
	case d.Hold == nil || externalLimit(d.Hold.Reason) || d.Replicas >= spec.MaxReplicas:
		return policy.Hold{}
	case d.Hold.Reason == policy.HoldUnverified || d.Hold.Reason == policy.HoldDiscounted ||
		d.Hold.Reason == policy.HoldWakeBackoff:
		return *d.Hold
	case d.Wanted > d.Replicas:
		return policy.Hold{Reason: d.Hold.Reason, Message: fmt.Sprintf("%s; the load needs %d replicas, and %d are kept",
			d.Hold.Message, d.Wanted, d.Replicas)}
	default:
		return policy.Hold{}
	}
}

func desiredReplicasChanged(from, to int32, decision *v1alpha1.Decision) Event {
	note := fmt.Sprintf("%d -> %d", from, to)
	if why := explain(decision); why != "" {
		note += ": " + why
	}
	return Event{corev1.EventTypeNormal, reasonDesiredReplicasChanged, fmt.Sprintf("Scale%dTo%d", from, to), note}
}

// limitsChanged reports that schedules became active or ended, with the limits that hold now.
func limitsChanged(o plan.Observed) Event {
	active, spec := "no schedule is active", o.Limited().Spec
	if o.Limits != nil {
		active = "active schedules: " + names(o.Limits.Schedules)
	}
	least, most := policy.MinReplicas(spec), spec.MaxReplicas
	return Event{
		corev1.EventTypeNormal, reasonLimitsChanged, fmt.Sprintf("Limit%dTo%d", least, most),
		fmt.Sprintf("%d to %d replicas: %s", least, most, active),
	}
}

// names of schedules, for a sentence.
func names(schedules []v1alpha1.ScheduleName) string {
	texts := make([]string, len(schedules))
	for i, name := range schedules {
		texts[i] = string(name)
	}
	return strings.Join(texts, ", ")
}

// desiredChange returns the change of the decided number. A first decision counts from the replicas that run.
func desiredChange(before, after v1alpha1.AutoscalingPolicyStatus) (from, to int32, changed bool) {
	origin := before.DesiredReplicas
	if origin == nil {
		origin = after.SpecReplicas
	}
	if origin == nil || after.DesiredReplicas == nil {
		return 0, 0, false
	}
	return *origin, *after.DesiredReplicas, *origin != *after.DesiredReplicas
}

// explain is the equation of a decision, with the hold and the bound that changed its result.
func explain(decision *v1alpha1.Decision) string {
	if decision == nil {
		return ""
	}
	text := decision.Equation
	if decision.Hold != nil {
		if text != "" {
			text += "; "
		}
		text += decision.Hold.Message
	}
	if decision.CappedBy != "" {
		text += " (capped by " + decision.CappedBy + ")"
	}
	return text
}
