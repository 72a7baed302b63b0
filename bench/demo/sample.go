// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/run"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// sample is a row of the table and a point of the charts. Of the replicas, those desired are the policy's decision, and
// those that are ready consume.
type sample struct {
	run.Sample

	// in is messages per second since the previous sample, and why the reason of the decision.
	in  float64
	why string
}

// observe takes a sample.
func observe(ctx context.Context, scene *stage.Stage, f *stage.Function, begun time.Time) sample {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	s := sample{Sample: run.Sample{ReadyReplicas: new(scene.Mesh.Running(stage.Namespace, f.Name))}}
	s = s.decided(f.Policy(ctx))
	replicas, err := f.Replicas(ctx)
	s = s.scaled(scene.Mesh.Started(stage.Namespace, f.Name), replicas.Spec, err)
	if recent := f.Score.Recent(); recent.Count > 0 {
		s.P50Seconds = new(rounded(recent.P50.Seconds()))
	}
	done := f.Score.Counts().Done
	s.Published, s.Done, s.Seconds = f.Published(), new(done), rounded(time.Since(begun).Seconds())
	return s
}

// decided is the sample with the decision of a policy, which is unknown without the API server.
func (s sample) decided(p *v1alpha1.AutoscalingPolicy, err error) sample {
	if s.why = why(p, err); err == nil && p.Status.DesiredReplicas != nil {
		s.DesiredReplicas = new(int(*p.Status.DesiredReplicas))
	}
	return s
}

// scaled is the sample with the pods of the target and its spec.replicas. Without the API server nothing changes their
// number, so that of the pods counts.
func (s sample) scaled(pods int, spec int64, err error) sample {
	s.Pods, s.SpecReplicas = &pods, new(int(spec))
	if err != nil {
		s.SpecReplicas, s.Problem = &pods, err.Error()
	}
	return s
}

// rounded is to milliseconds.
func rounded(seconds float64) float64 { return math.Round(1000*seconds) / 1000 }

// backlog is the number of published messages that are not processed. A replica may report before the publisher.
func (s sample) backlog() int64 { return max(0, s.Published-*s.Done) }

// isOne reports whether one replica is wanted and runs.
func (s sample) isOne() bool {
	return s.SpecReplicas != nil && *s.SpecReplicas == 1 && *s.ReadyReplicas == 1
}

// follows sets what needs the previous sample.
func (s sample) follows(before sample) sample {
	if seconds := s.Seconds - before.Seconds; seconds > 0 {
		s.in = float64(s.Published-before.Published) / seconds
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
