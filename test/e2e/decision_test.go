// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// awaitStatus waits until the policy's status is as expected, and logs each decision meanwhile.
func awaitStatus(t *testing.T, f *stage.Function, what string, limit time.Duration,
	holds func(v1alpha1.AutoscalingPolicyStatus) bool,
) {
	t.Helper()
	last := ""
	await(t, f, what, limit, func(ctx context.Context) (bool, string, error) {
		last = tellDecision(ctx, t, f, last)
		p, err := f.Policy(ctx)
		return err == nil && holds(p.Status), last, err
	})
}

// tellDecision logs a new decision for go test -v; without a policy there is none.
func tellDecision(ctx context.Context, t *testing.T, f *stage.Function, last string) string {
	t.Helper()
	p, err := f.Policy(ctx)
	if err != nil {
		return last
	}
	said := decided(p.Status)
	if said != last {
		t.Log(said)
	}
	return said
}

// decided formats a decision.
func decided(s v1alpha1.AutoscalingPolicyStatus) string {
	if s.Decision == nil || s.SpecReplicas == nil || s.DesiredReplicas == nil {
		return "nothing decided"
	}
	said := fmt.Sprintf("%s %d -> %d: %s", s.Decision.Time.UTC().Format(time.TimeOnly), *s.SpecReplicas,
		*s.DesiredReplicas, s.Decision.Equation)
	if c := s.Capacity; c != nil {
		said += fmt.Sprintf("; a replica does %s/s after %d observations", &c.MessagesPerSecond, c.Observations)
	}
	if h := s.Decision.Hold; h != nil {
		said += "; " + h.Reason + ": " + h.Message
	}
	return said
}

// awaitDrained waits until the backlog is at most a second of the given arrivals.
func awaitDrained(t *testing.T, f *stage.Function, perSecond int64, limit time.Duration) {
	t.Helper()
	await(t, f, "the backlog to be worked off", limit, func(context.Context) (bool, string, error) {
		done, _ := f.Score.Totals()
		published := f.Published()
		return published-int64(done) <= perSecond, fmt.Sprintf("%d published, %d done", published, done), nil
	})
}

func TestScalingALoadStepTakesTwoRaisesAtMost(t *testing.T) {
	t.Parallel()
	const name, low, high, replicas = "stepped", 50, 150, 3
	f := addFunction(t, stage.FunctionConfig{
		Name: name, ServiceTime: 40 * time.Millisecond, Replicas: replicas, StartDelay: 5 * time.Second, Objective: objective,
	})
	addPolicy(t, newPolicy(name))
	begun, rate := time.Now(), newDial(low)
	publish(t, f, rate.profile)
	awaitLearned(t, f)
	await(t, f, "40 s of calm", patience, func(context.Context) (bool, string, error) {
		return f.Published() >= 40*low, fmt.Sprint(f.Published()), nil
	})
	require.Equal(t, replicas, replicasAt(f, time.Now()), "replicas before the step")
	rate.turn(high)
	before := f.Published()
	awaitStatus(t, f, "replicas for the step", patience, func(s v1alpha1.AutoscalingPolicyStatus) bool {
		return s.SpecReplicas != nil && *s.SpecReplicas > high/25
	})
	awaitDrained(t, f, high, objective+30*time.Second)
	// A recommended scale-up stays for 45 s, so that repeated scale-ups show within 75 s.
	await(t, f, "messages of 75 s after the step", patience, func(context.Context) (bool, string, error) {
		done, _ := f.Score.Totals()
		return int64(done) >= before+75*high, fmt.Sprint(done), nil
	})
	raises, most := raisesSince(f, begun)
	require.Positive(t, raises)
	require.LessOrEqual(t, raises, 2, "%+v", scene.Mesh.Timeline(stage.Namespace, name))
	// The rate after a step is planned with a trend of a tenth, and the backlog after a start needs as much again.
	require.LessOrEqual(t, most, 2*(high*11/10/25+1)+1)
	_, late := f.Score.Totals()
	require.Zero(t, late, "messages that took longer than the objective of %s", objective)
}

// replicasAt is spec.replicas at a time.
func replicasAt(f *stage.Function, at time.Time) (replicas int) {
	for _, sample := range scene.Mesh.Timeline(stage.Namespace, f.Name) {
		if sample.Time.Before(at) {
			replicas = sample.Desired
		}
	}
	return replicas
}

func TestFaultAFunctionAndAnAdapterThatAreKilledKeepWhatWasLearned(t *testing.T) {
	const name, perSecond = "killed-too", 25
	f := addFunction(t,
		stage.FunctionConfig{Name: name, ServiceTime: time.Second / perSecond, StartDelay: 6 * time.Second})
	addPolicy(t, newPolicy(name))
	publish(t, f, load.Constant(3*perSecond-5))
	awaitReplicas(t, f, 3, 20, patience)
	// the receive queue of the first replica had the whole backlog: 40 s of work
	awaitDrained(t, f, 3*perSecond, patience)
	learned := awaitLearned(t, f)
	require.InEpsilon(t, perSecond, learned.MessagesPerSecond.AsApproximateFloat64(), 0.15)
	since := time.Now()

	scene.Adapter.Kill()
	require.NoError(t, scene.Client.DeleteAllOf(t.Context(), &corev1.Pod{},
		client.InNamespace(stage.Namespace), client.MatchingLabels{mesh.Group + "/name": name}, client.GracePeriodSeconds(0)))
	awaitAutoscaler(t, f, corev1.ConditionFalse)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, scene.Adapter.Start(ctx, scene))
	awaitAutoscaler(t, f, corev1.ConditionTrue)
	awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionTrue, "Scaling")
	after := awaitLearned(t, f)
	require.GreaterOrEqual(t, after.Observations, learned.Observations, "what was learned survives")
	// Messages published meanwhile keep the new replicas busy, so that their capacity is learned.
	before, _ := f.Score.Totals()
	await(t, f, "10 s of work to be done", patience, func(context.Context) (bool, string, error) {
		done, _ := f.Score.Totals()
		return done > before+10*3*perSecond, fmt.Sprint(done-before, " more"), nil
	})
	for _, sample := range scene.Mesh.Timeline(stage.Namespace, name) {
		if sample.Time.After(since) {
			require.GreaterOrEqual(t, sample.Desired, 3, "fewer than the arrivals need")
		}
	}
	after = awaitLearned(t, f)
	tell(t, f, &v1alpha1.AutoscalingPolicy{Status: v1alpha1.AutoscalingPolicyStatus{Capacity: after}})
	require.InEpsilon(t, perSecond, after.MessagesPerSecond.AsApproximateFloat64(), 0.15,
		"what it missed is not held against a replica")
}
