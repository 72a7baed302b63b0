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

// observation is what was seen at one time.
type observation struct {
	at time.Duration // since the load began
	// published and done are messages since the load began; wait is the median from publish to done of those done since
	// the last observation, if any.
	published, done int64
	wait            time.Duration
	anyDone         bool
	// policy and replicas are the API server's; each has an error instead when it did not answer.
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
	// in and out are messages per second since the sample before.
	in, out float64
	// wait is unknown, false, when no message was done.
	wait      time.Duration
	waitKnown bool
	// desired is the policy's decision, current the Function's spec.replicas.
	desired, current count
	running          int
	why              string
}

// backlog is what was published and is not done. A replica may tell first.
func (s sample) backlog() int64 { return max(0, s.published-s.done) }

// next makes a sample of an observation; rates need the sample before.
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

// why is the reason of the decision in as few words as a row has room for.
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
	case policy.HoldStabilizing: // the equation is of now, and the replicas are those of the largest in the window
		needed, _, _ := strings.Cut(decision.Hold.Message, ",")
		return "kept: " + needed
	case policy.HoldLearning:
		return "learning what a replica can do"
	default:
		return decision.Hold.Reason + ": " + decision.Hold.Message
	}
}

func undecided(conditions []metav1.Condition) string {
	if c := meta.FindStatusCondition(conditions, v1alpha1.ConditionReady); c != nil {
		return c.Message
	}
	return "no decision yet"
}

// terse drops the words of an equation that the columns of the table say already.
func terse(equation string) string {
	return strings.NewReplacer("/s arriving", "/s", " backlog / ", "/", "/s per replica", "/s").Replace(equation)
}
