// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"maps"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/forecast"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// none is the actuator of a policy that changes no replicas.
const none = "None"

// Record is what the last reconcile of a policy observed and decided. It is never modified. It has only numbers and
// short texts: a process keeps one for each policy.
type Record struct {
	namespace, name                    string
	targetKind, target, mode, actuator string
	minReplicas, maxReplicas           int32
	objective                          time.Duration
	desired, spec, running, wanted     backlog.Measurement
	signals                            signals
	capacity, uncertainty, coverage    backlog.Measurement
	next                               *forecast.Next
	held, limited                      string
	conditions                         []condition
	met, starved, burn                 backlog.Measurement
	decidedAt, readAt                  time.Time
	totals                             totals
	raise                              raise
	lag                                backlog.Measurement
}

// signals are the measurements of a decision.
type signals struct {
	ready, publishRate, processRate, wait              backlog.Measurement
	consumers, discounted, delayed, unacked, age, busy backlog.Measurement
	redelivered                                        backlog.Measurement
}

// condition is one with an unexpected status.
type condition struct{ name, status, reason string }

// totals since this process reconciles the policy.
type totals struct {
	at time.Time
	// late reports whether messages missed the objective at that time.
	late                        bool
	lateSeconds, replicaSeconds float64
	// changes of spec.replicas; never modified.
	changes map[change]float64
}

type change struct{ by, direction string }

func (c change) compare(other change) int {
	return cmp.Or(cmp.Compare(c.by, other.by), cmp.Compare(c.direction, other.direction))
}

// Next returns the record after another reconcile, with the status that it reports; the decision is nil without one.
// The previous record is nil for the first one of this process. Messages were late at the last conclusive reading, if
// late is true.
func (r *Record) Next(o plan.Observed, d *policy.Decision, after v1alpha1.AutoscalingPolicyStatus, late bool) *Record {
	spec := o.Limited().Spec
	next := &Record{
		namespace: o.Policy.Namespace, name: o.Policy.Name, mode: string(cmp.Or(spec.Mode, v1alpha1.ModeAuto)),
		actuator: none, minReplicas: policy.MinReplicas(spec), maxReplicas: spec.MaxReplicas,
		objective: policy.LatencyObjective(spec),
		desired:   count(after.DesiredReplicas), spec: count(after.SpecReplicas), running: count(after.RunningReplicas),
		conditions: unexpected(after.Conditions), met: objectiveMet(after.Conditions), limited: limitOf(after.Conditions),
	}
	next.starved = starved(o.Reading, after.Conditions)
	next.targetKind, next.target = splitTarget(plan.ShortName(spec))
	if after.Actuator != nil {
		next.actuator = string(after.Actuator.Type)
		if lag := after.Actuator.Lag; lag != nil && after.Actuator.Type != v1alpha1.ActuatorDirect {
			next.lag = backlog.Known(lag.Seconds())
		}
	}
	if c := after.Capacity; c != nil {
		next.capacity = backlog.Known(c.MessagesPerSecond.AsApproximateFloat64())
		if c.UncertaintyPercent != nil {
			next.uncertainty = backlog.Known(float64(*c.UncertaintyPercent) / 100)
		}
	}
	next.measure(o, d)
	switch {
	case o.Paused() != "":
		next.mode = string(v1alpha1.ModePaused)
	case d != nil:
		next.decide(*d)
	case r != nil && after.DesiredReplicas != nil: // the last decision is still served
		next.decidedAt = r.decidedAt
	}
	next.totals = r.total(o, next.spec, late)
	next.raise = r.actuate(next)
	return next
}

func (r *Record) compare(other *Record) int {
	return cmp.Or(cmp.Compare(r.namespace, other.namespace), cmp.Compare(r.name, other.name))
}

func (r *Record) measure(o plan.Observed, d *policy.Decision) {
	if o.Reading == nil || d == nil {
		return
	}
	reading := o.Reading
	r.readAt, r.next, r.burn = reading.At, d.Next, d.BurnRate(o.Policy.Spec)
	r.signals = signals{
		ready: reading.Ready, publishRate: reading.PublishRate, processRate: reading.ProcessRate, wait: d.Wait,
		consumers: reading.Consumers, discounted: backlog.Known(d.Discounted), delayed: reading.Delayed,
		unacked: reading.Unacked, age: reading.OldestAge, busy: reading.Instances.Busy, redelivered: reading.Redelivered,
	}
	if c := reading.Coverage; c.Topics > 0 {
		r.coverage = backlog.Known(float64(c.Known) / float64(c.Topics))
	}
}

func (r *Record) decide(d policy.Decision) {
	r.decidedAt = d.Time
	if d.Strategy != "" { // otherwise no strategy could compute a number
		r.wanted = backlog.Known(float64(d.Wanted))
	}
	if d.Hold != nil {
		r.held = d.Hold.Reason
	}
}

// total adds the time since the previous record, at most the age limit of a reading, by the state found then: a change
// counts from when it is found.
func (r *Record) total(o plan.Observed, spec backlog.Measurement, late bool) totals {
	next := totals{at: o.Now, late: o.Reading != nil && late}
	if r == nil {
		return next
	}
	next.lateSeconds, next.replicaSeconds, next.changes = r.totals.lateSeconds, r.totals.replicaSeconds, r.totals.changes
	elapsed := min(max(0, o.Now.Sub(r.totals.at)), policy.FreshPolls*o.PollInterval).Seconds()
	if r.totals.late {
		next.lateSeconds += elapsed
	}
	if running, err := r.running.Value(); err == nil {
		next.replicaSeconds += running * elapsed
	}
	from, unknown := r.spec.Value()
	if to, err := spec.Value(); err == nil && unknown == nil && from != to {
		c := change{o.ScaledBy, "Up"}
		if to < from {
			c.direction = "Down"
		}
		next.changes = maps.Clone(next.changes)
		if next.changes == nil {
			next.changes = map[change]float64{}
		}
		next.changes[c]++
	}
	return next
}

func count(replicas *int32) backlog.Measurement {
	if replicas == nil {
		return backlog.Measurement{}
	}
	return backlog.Known(float64(*replicas))
}

// splitTarget splits Function/resize into kind and name.
func splitTarget(short string) (kind, name string) {
	at := strings.IndexAny(short, "/:")
	if at < 0 {
		return "", short
	}
	return short[:at], short[at+1:]
}

// unexpected returns the conditions with an unexpected status; none for a healthy policy.
func unexpected(conditions []metav1.Condition) []condition {
	var found []condition
	for _, c := range conditions {
		expected := metav1.ConditionTrue
		if c.Type == v1alpha1.ConditionScalingLimited || c.Type == v1alpha1.ConditionStalled {
			expected = metav1.ConditionFalse
		}
		if c.Status != expected {
			found = append(found, condition{c.Type, string(c.Status), c.Reason})
		}
	}
	return found
}

func objectiveMet(conditions []metav1.Condition) backlog.Measurement {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionObjectiveMet)
	switch {
	case c == nil || c.Status == metav1.ConditionUnknown:
		return backlog.Measurement{}
	case c.Status == metav1.ConditionTrue:
		return backlog.Known(1)
	default:
		return backlog.Known(0)
	}
}

// starved is the number of replicas without messages while condition ObjectiveMet reports them; else 0.
func starved(reading *backlog.Reading, conditions []metav1.Condition) backlog.Measurement {
	if reading == nil {
		return backlog.Measurement{}
	}
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionObjectiveMet)
	if c == nil || c.Reason != v1alpha1.ReasonReplicasStarved {
		return backlog.Known(0)
	}
	consumers, unknown := reading.Consumers.Value()
	holding, err := reading.Holding.Value()
	if unknown != nil || err != nil {
		return backlog.Measurement{}
	}
	return backlog.Known(consumers - holding)
}

// limitOf is the bound that condition ScalingLimited reports; empty for none.
func limitOf(conditions []metav1.Condition) string {
	c := meta.FindStatusCondition(conditions, v1alpha1.ConditionScalingLimited)
	if c == nil || c.Status != metav1.ConditionTrue {
		return ""
	}
	switch c.Reason {
	case v1alpha1.ReasonTooManyReplicas:
		return policy.CappedByMax
	case v1alpha1.ReasonTooFewReplicas:
		return policy.CappedByMin
	case v1alpha1.ReasonTooFewPartitions:
		return policy.CappedByPartitions
	default:
		return limitedExternally
	}
}

// limitedExternally is the limit of a policy for which more replicas would process no more messages.
const limitedExternally = "external"
