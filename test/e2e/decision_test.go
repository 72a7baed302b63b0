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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// awaitDrained waits until the backlog is at most a second of the given arrivals.
func awaitDrained(t *testing.T, f *stage.Function, perSecond int64) {
	t.Helper()
	f.Await(t, "the backlog to be worked off", func(context.Context) (bool, string, error) {
		done, _ := f.Score.Totals()
		published := f.Published()
		return published-int64(done) <= perSecond, fmt.Sprintf("%d published, %d done", published, done), nil
	})
}

func TestScalingALoadStepTakesTwoRaisesAtMost(t *testing.T) {
	t.Parallel()
	const name, each, low, high, replicas = "stepped", 5, 10, 30, 3
	f := addFunction(t, stage.FunctionConfig{
		Name: name, ServiceTime: time.Second / each, Replicas: replicas, StartDelay: 5 * time.Second, Objective: objective,
	})
	addPolicy(t, newPolicy(name))
	rate := newDial(t, f, low)
	awaitLearned(t, f)
	f.Await(t, "40 s of calm", func(context.Context) (bool, string, error) {
		return f.Published() >= 40*low, fmt.Sprint(f.Published()), nil
	})
	f.AwaitReplicas(t, replicas, replicas)
	before, turned := f.Published(), time.Now()
	rate.turn(high)
	f.AwaitReplicas(t, high/each+1, 20)
	awaitDrained(t, f, high)
	// A recommended scale-up stays for 45 s, so that repeated scale-ups show within 75 s.
	f.Await(t, "messages of 75 s after the step", func(context.Context) (bool, string, error) {
		done, _ := f.Score.Totals()
		return int64(done) >= before+75*high, fmt.Sprint(done), nil
	})
	raises, most := raisesSince(f, turned)
	require.Positive(t, raises)
	require.LessOrEqual(t, raises, 2, "%+v", scene.Mesh.Timeline(stage.Namespace, name))
	// The rate after a step is known to a tenth, and the backlog after a start needs as much again.
	require.LessOrEqual(t, most, 2*(high*11/10/each+1)+1)
	_, late := f.Score.Totals()
	require.Zero(t, late, "messages that took longer than the objective of %s", objective)
}

func TestFaultAFunctionAndAnAdapterThatAreKilledKeepWhatWasLearned(t *testing.T) {
	const name, perSecond = "killed-too", 5
	f := addFunction(t, stage.FunctionConfig{
		Name: name, ServiceTime: time.Second / perSecond, StartDelay: 6 * time.Second, Replicas: 3,
	})
	addPolicy(t, newPolicy(name))
	publish(t, f, load.Constant(3*perSecond-1))
	learned := awaitLearned(t, f)
	require.InEpsilon(t, perSecond, learned.MessagesPerSecond.AsApproximateFloat64(), 0.15)
	since := time.Now()

	scene.Adapter.Kill()
	require.NoError(t, scene.Client.DeleteAllOf(t.Context(), &corev1.Pod{},
		client.InNamespace(stage.Namespace), client.MatchingLabels{mesh.Group + "/name": name}, client.GracePeriodSeconds(0)))
	f.AwaitHPA(t, "ScalingActive=False")
	require.NoError(t, scene.Adapter.Start(t.Context(), scene))
	f.AwaitHPA(t, "ScalingActive=True")
	setMode(t, f, v1alpha1.ModeRecommend) // which it reports once it has the Lease of the killed one
	f.AwaitConditions(t, "Ready=True/Recommending")
	setMode(t, f, v1alpha1.ModeAuto)
	f.AwaitConditions(t, "Ready=True/Scaling")
	after := awaitLearned(t, f)
	require.GreaterOrEqual(t, after.Observations, learned.Observations, "what was learned survives")
	// Messages published meanwhile keep the new replicas busy, so that their capacity is learned.
	before, _ := f.Score.Totals()
	f.Await(t, "10 s of work to be done", func(context.Context) (bool, string, error) {
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
