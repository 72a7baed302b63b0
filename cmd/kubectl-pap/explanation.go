// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	decide "github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// explanation is a policy and when it was read. Its sections are fields of the policy: no text is parsed.
type explanation struct {
	policy *v1alpha1.AutoscalingPolicy
	now    time.Time
}

func (e explanation) sections() []section {
	return []section{
		e.head(), e.measured(), e.learned(), e.decided(), e.changes(), e.written(), e.running(), e.attention(),
	}
}

func (e explanation) head() section {
	p := e.policy
	s := section{title: "POLICY", note: p.Namespace + "/" + p.Name}
	s.add("target", "%s", cmp.Or(p.Status.Target, "unknown"))
	limits := e.limits()
	s.add("replicas", "%d to %d", limits.MinReplicas, limits.MaxReplicas)
	for _, name := range limits.Schedules {
		s.add("schedule", "%s is active", name)
	}
	s.add("objective", "%s", short(decide.LatencyObjective(p.Spec)))
	s.add("mode", "%s", p.Spec.Mode)
	if seen := p.Status.ObservedGeneration; seen != 0 && seen != p.Generation {
		s.add("status", "it describes generation %d of the spec, which has generation %d by now", seen, p.Generation)
	}
	return s
}

// limits of replicas: those of active schedules, or of the spec.
func (e explanation) limits() v1alpha1.Limits {
	if limits := e.policy.Status.Limits; limits != nil {
		return *limits
	}
	return v1alpha1.Limits{MinReplicas: decide.MinReplicas(e.policy.Spec), MaxReplicas: e.policy.Spec.MaxReplicas}
}

func (e explanation) measured() section {
	signals := e.policy.Status.Signals
	if signals == nil {
		return section{title: "MEASURED", note: "nothing"}
	}
	s := section{title: "MEASURED", note: e.age(signals.MeasuredAt)}
	backlog := number(signals.ReadyMessages, "messages")
	if discounted := signals.DiscountedMessages; discounted != nil && signals.ReadyMessages != nil {
		backlog += fmt.Sprintf(", of which %d do not count as work", *discounted)
	}
	s.add("backlog", "%s", backlog)
	s.add("arriving", "%s", rate(signals.PublishRate))
	s.add("processed", "%s", rate(signals.ProcessRate))
	s.add("window", "rates cover the --rate-window of the adapter until then")
	s.add("consumers", "%s", number(signals.Consumers, "connected replicas"))
	objective := decide.LatencyObjective(e.policy.Spec)
	if wait := signals.Wait; wait != nil {
		s.add("wait", "%s for a message published now, %.0f%% of the objective", short(wait.Duration),
			100*wait.Seconds()/objective.Seconds())
	} else {
		s.add("wait", "unknown")
	}
	if c := signals.Coverage; c == nil {
		s.add("topics", "all are known")
	} else {
		s.add("topics", "%d of %d are known, so the numbers are lower bounds", c.KnownTopics, c.Topics)
		for _, topic := range c.Missing {
			s.add("missing", "%s: %s", topic.Name, topic.Message)
		}
	}
	return s
}

func (e explanation) learned() section {
	c := e.policy.Status.Capacity
	if c == nil {
		return section{title: "LEARNED", note: "nothing yet"}
	}
	s := section{title: "LEARNED", note: e.age(c.LearnedAt)}
	capacity := rate(&c.MessagesPerSecond) + " by a replica that is busy"
	if c.UncertaintyPercent != nil {
		capacity += fmt.Sprintf(", ±%d%% (one standard deviation)", *c.UncertaintyPercent)
	}
	s.add("capacity", "%s, from %d observations", capacity, c.Observations)
	if c.MeasuredBusyPercent != nil {
		s.add("busy", "a replica that always has work reports to be busy %d%% of the time", *c.MeasuredBusyPercent)
	}
	return s
}

func (e explanation) decided() section {
	status := e.policy.Status
	d := status.Decision
	if d == nil {
		return section{title: "DECIDED", note: "nothing"}
	}
	s := section{title: "DECIDED", note: e.age(d.Time)}
	s.add("replicas", "%s", number(status.DesiredReplicas, ""))
	if d.Strategy != "" {
		s.add("strategy", "%s", d.Strategy)
	}
	if d.Equation != "" {
		s.add("equation", "%s", d.Equation)
	}
	switch d.CappedBy {
	case "":
	case decide.CappedByMax:
		s.add("limited by", "maxReplicas, which is %d", e.limits().MaxReplicas)
	case decide.CappedByMin:
		s.add("limited by", "minReplicas, which is %d", e.limits().MinReplicas)
	default:
		s.add("limited by", "%s", d.CappedBy)
	}
	if f := status.Forecast; f != nil {
		s.add("expected", "%s at %s, %s earlier or later: %d of the last %d came when they were expected",
			rate(&f.PublishRate), f.Time.UTC().Format(time.DateTime), short(f.Within.Duration), f.Foreseen, f.Of)
	}
	if d.Hold != nil {
		s.add("held by", "%s: %s", d.Hold.Reason, d.Hold.Message)
	} else {
		s.add("held by", "nothing")
	}
	return s
}

// changes are what would give another number of replicas.
func (e explanation) changes() section {
	s := section{title: "TO CHANGE IT"}
	d := e.policy.Status.Decision
	if d == nil {
		s.note = "there is no decision: see ATTENTION"
		return s
	}
	switch d.CappedBy {
	case decide.CappedByMax, decide.CappedByMin:
		s.add(d.CappedBy, "without this limit the load alone decides")
	case decide.CappedByPartitions:
		s.add(d.CappedBy, "add partitions: each keeps one replica busy")
	}
	if d.Hold != nil {
		switch d.Hold.Reason {
		case decide.HoldScaleUpStabilized:
			s.add("behavior", "a shorter scaleUp.stabilizationWindowSeconds adds replicas earlier")
		case decide.HoldScaleUpLimit, decide.HoldScaleDownLimit:
			s.add("behavior", "its policies limit how fast replicas change")
		default:
			s.add("hold", "it ends with its cause: Special cases in docs/algorithm.md has all")
		}
	}
	switch d.Strategy {
	case v1alpha1.StrategyBacklogPerReplica, v1alpha1.StrategyRatePerReplica, v1alpha1.StrategyUtilization:
		s.add("strategies", "fewer replicas with a larger number in the parameters of %s", d.Strategy)
	default:
		s.add("objective", "longer than %s needs fewer replicas to drain a backlog, and shorter needs more: "+
			"kubectl pap plan %s compares their costs", short(decide.LatencyObjective(e.policy.Spec)), e.policy.Name)
		s.add("capacity", "fewer replicas are enough if each processes more: look at their CPU, and what they wait for")
	}
	return s
}

// written is what writes the replicas.
func (e explanation) written() section {
	status := e.policy.Status
	s := section{title: "WRITTEN BY", note: "nothing"}
	ready := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionReady)
	switch mode := e.policy.Spec.Mode; {
	case ready != nil && ready.Reason == v1alpha1.ReasonPaused:
		s.add("reason", "%s", ready.Message)
	case !mode.IsAuto():
		s.add("reason", "mode is %s", mode)
	case status.Actuator != nil:
		s.note = string(status.Actuator.Type)
		if status.HorizontalPodAutoscaler != "" {
			s.add("object", "HorizontalPodAutoscaler %s", status.HorizontalPodAutoscaler)
		}
		if status.ScaledObject != "" {
			s.add("object", "ScaledObject %s", status.ScaledObject)
		}
		s.add("reason", "%s", cmp.Or(status.Actuator.Reason, "unknown"))
	}
	if t := status.TakenOver; t != nil {
		if t.MaxReplicas != nil {
			s.add("suspended", "Function Mesh's autoscaler, with maxReplicas %d", *t.MaxReplicas)
		}
		if n := len(t.HorizontalPodAutoscalers); n > 0 {
			s.add("suspended", "%d HorizontalPodAutoscalers, see status.takenOver", n)
		}
		for _, name := range t.ScaledObjects {
			s.add("suspended", "ScaledObject %s", name)
		}
	}
	return s
}

func (e explanation) running() section {
	status := e.policy.Status
	s := section{title: "REPLICAS"}
	s.add("decided", "%s", number(status.DesiredReplicas, ""))
	s.add("in the spec", "%s", number(status.SpecReplicas, ""))
	s.add("running", "%s", number(status.RunningReplicas, ""))
	var consumers *int32
	if status.Signals != nil {
		consumers = status.Signals.Consumers
	}
	s.add("consuming", "%s", number(consumers, ""))
	if start := status.Start; start != nil {
		s.add("start", "%ds, median of %d: scheduling %ds, init containers %ds, containers %ds, program %ds",
			start.TotalSeconds, start.Replicas, start.SchedulingSeconds, start.InitContainersSeconds, start.ContainersSeconds,
			start.ProgramSeconds)
	}
	if last := status.LastScaleDown; last != nil {
		s.add("removed", "%d, %s ago; redelivered: %s", last.RemovedReplicas, ago(last.Time.Time, e.now),
			number(last.RedeliveredMessages, "messages"))
	}
	return s
}

// attention are the conditions that are not as they should be. Of those that say the same, the first is there.
func (e explanation) attention() section {
	s := section{title: "ATTENTION"}
	var unchecked []string
	seen := map[line]bool{}
	for _, c := range e.policy.Status.Conditions {
		said := line{c.Reason, c.Message}
		switch {
		case asItShould(c) || seen[said]:
			continue
		case c.Status == metav1.ConditionUnknown && c.Reason == v1alpha1.ReasonNotChecked:
			unchecked = append(unchecked, c.Type)
			continue
		}
		seen[said] = true
		since := ""
		if c.LastTransitionTime.Unix() > 0 { // the API server's default has no time
			since = " for " + ago(c.LastTransitionTime.Time, e.now)
		}
		s.add(c.Type, "%s%s (%s): %s", c.Status, since, c.Reason, c.Message)
	}
	if len(unchecked) > 0 {
		s.add("not checked", "%s", strings.Join(unchecked, ", "))
	}
	switch {
	case len(e.policy.Status.Conditions) == 0:
		s.note = "the policy has no status: check that the adapter runs"
	case len(s.lines) == 0:
		s.note = "nothing: all conditions are as they should be"
	}
	return s
}

// asItShould reports whether a condition needs no attention.
func asItShould(c metav1.Condition) bool {
	switch c.Type {
	case v1alpha1.ConditionScalingLimited, v1alpha1.ConditionStalled:
		return c.Status == metav1.ConditionFalse
	default:
		return c.Status == metav1.ConditionTrue
	}
}

// age is how long ago something was, and when.
func (e explanation) age(at metav1.Time) string {
	return ago(at.Time, e.now) + " ago, at " + at.UTC().Format(time.RFC3339)
}

func number[T int32 | int64](value *T, unit string) string {
	if value == nil {
		return "unknown"
	}
	return strings.TrimRight(fmt.Sprintf("%d %s", *value, unit), " ")
}

func rate(r *v1alpha1.Rate) string {
	if r == nil {
		return "unknown"
	}
	return r.String() + " messages/s"
}
