// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// observation is the state at one time.
type observation struct {
	at time.Duration // since the start of the load
	// published and done are messages since the start of the load; wait is the median latency of those processed since the
	// previous observation, if any.
	published, done int64
	wait            time.Duration
	anyDone         bool
	// policy and replicas are from the API server, or each has the error of the request.
	policy      *v1alpha1.AutoscalingPolicy
	policyErr   error
	replicas    stage.Replicas
	replicasErr error
	// running replicas consume.
	running int
}

// count is a whole number that may be unknown.
type count struct {
	value int64
	known bool
}

func known(value int64) count { return count{value: value, known: true} }

// sample is a row of the table and a point of the plot.
type sample struct {
	at              time.Duration
	published, done int64
	// in and out are messages per second since the previous sample.
	in, out float64
	// wait is unknown, false, if no message was processed.
	wait      time.Duration
	waitKnown bool
	// desired is the policy's decision, current the Function's spec.replicas.
	desired, current count
	running          int
	why              string
}

// backlog is the number of published messages that are not processed. A replica may report before the publisher.
func (s sample) backlog() int64 { return max(0, s.published-s.done) }

// next makes a sample of an observation; rates need the previous sample.
func next(before sample, o observation) sample {
	s := sample{
		at: o.at, published: o.published, done: o.done, wait: o.wait, waitKnown: o.anyDone,
		running: o.running, why: why(o.policy, o.policyErr),
	}
	if seconds := (o.at - before.at).Seconds(); seconds > 0 {
		s.in = float64(o.published-before.published) / seconds
		s.out = float64(o.done-before.done) / seconds
	}
	if o.policyErr == nil && o.policy.Status.DesiredReplicas != nil {
		s.desired = known(int64(*o.policy.Status.DesiredReplicas))
	}
	if o.replicasErr == nil {
		s.current = known(o.replicas.Spec)
	}
	return s
}

// why is the reason of the decision, shortened to the width of the column.
func why(p *v1alpha1.AutoscalingPolicy, err error) string {
	if err != nil {
		return err.Error()
	}
	decision := p.Status.Decision
	if decision == nil {
		return undecided(p.Status.Conditions)
	}
	equation := terse(decision.Equation)
	if decision.CappedBy != "" {
		equation += ", " + strings.TrimSuffix(decision.CappedBy, "Replicas")
	}
	if decision.Hold == nil {
		return equation
	}
	switch decision.Hold.Reason {
	case policy.HoldStabilizing: // the equation is the current one; the replicas are the maximum of the window
		return "kept: " + stabilizing(decision.Hold.Message)
	case policy.HoldLearning:
		return "measuring the capacity of a replica"
	default:
		return decision.Hold.Reason + ": " + decision.Hold.Message
	}
}

// stabilizing shortens the message of a hold. It drops ages, which are those of the last write of the status.
func stabilizing(message string) string {
	if replicas, _, isStart := strings.Cut(message, " have been starting for "); isStart {
		return replicas + " are starting"
	}
	needed, window, isWindow := strings.Cut(message, " ago, within ")
	if !isWindow {
		short, _, _ := strings.Cut(message, ",")
		return short
	}
	replicas, _, _ := strings.Cut(needed, " ")
	window, _, _ = strings.Cut(strings.TrimPrefix(window, "the stabilization window of "), ":")
	return replicas + " were needed in the last " + window
}

func undecided(conditions []metav1.Condition) string {
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); c != nil {
		return c.Message
	}
	return "no decision yet"
}

// terse removes the words of an equation that are in the table's header.
func terse(equation string) string {
	return strings.NewReplacer("/s arriving", "/s", " backlog / ", "/", "/s per replica", "/s").Replace(equation)
}
