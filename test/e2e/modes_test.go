// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// heldAt3 is a Function at 15/s with 3 replicas of 25/s each. One is enough, and only the stabilization window keeps
// three: replicas would fall if the window was forgotten. A fourth is not needed on a machine five times slower either.
func heldAt3(t *testing.T, name string) *stage.Function {
	t.Helper()
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 40 * time.Millisecond, Replicas: 3})
	p := newPolicy(name)
	p.Spec.Behavior.ScaleDown.StabilizationWindowSeconds = new(int32(3600)) // longer than any test
	addPolicy(t, p)
	publish(t, f, load.Constant(15))
	awaitHeld(t, f, time.Now())
	return f
}

// awaitHeld waits for a decision that only the stabilization window keeps where it is, and for the HPA to follow it. It
// fails once replicas have moved since the given time.
func awaitHeld(t *testing.T, f *stage.Function, since time.Time) {
	t.Helper()
	f.AwaitConditions(t, "Ready=True/Scaling")
	f.Await(t, "the window to hold replicas", func(ctx context.Context) (bool, string, error) {
		if moved := scene.Mesh.Desired(stage.Namespace, f.Name, since); len(moved) > 1 {
			return false, "", fmt.Errorf("replicas moved to %v", moved)
		}
		p, err := f.Policy(ctx)
		if err != nil {
			return false, "", err
		}
		d := p.Status.Decision
		return p.Status.Capacity != nil && d != nil && d.Hold != nil && d.Hold.Reason == policy.HoldStabilizing,
			fmt.Sprintf("%+v", d), nil
	})
	f.AwaitHPA(t, "ScalingActive=True")
	f.AwaitDone(t, 50)
}

func TestCoreModesPauseAndResumeWithoutAJumpAndDeletionLeavesReplicas(t *testing.T) {
	t.Parallel()
	f := heldAt3(t, "modes")
	since := time.Now()
	for _, mode := range []v1alpha1.Mode{v1alpha1.ModeRecommend, v1alpha1.ModePaused} {
		reason := map[v1alpha1.Mode]string{
			v1alpha1.ModeRecommend: v1alpha1.ReasonRecommending,
			v1alpha1.ModePaused:    v1alpha1.ReasonPaused,
		}[mode]
		learned := awaitLearned(t, f)
		setMode(t, f, mode)
		f.AwaitConditions(t, "Ready=True/"+reason)
		scene.AwaitGone(t, autoscalerNamed(plan.AutoscalerName(f.Name)))
		f.AwaitPolicy(t, "what was learned and what is measured", func(p *v1alpha1.AutoscalingPolicy) bool {
			s := p.Status
			return s.Capacity != nil && s.Capacity.Observations >= learned.Observations && s.Signals != nil &&
				(mode == v1alpha1.ModePaused) == (s.DesiredReplicas == nil)
		})
		f.AwaitDone(t, 50)
		setMode(t, f, v1alpha1.ModeAuto)
		awaitHeld(t, f, since)
		require.GreaterOrEqual(t, awaitLearned(t, f).Observations, learned.Observations, "what was learned is continued")
	}
	p, err := f.Policy(t.Context())
	require.NoError(t, err)
	require.NoError(t, scene.Client.Delete(t.Context(), p))
	scene.AwaitGone(t, autoscalerNamed(plan.AutoscalerName(f.Name)))
	f.AwaitDone(t, 50)
	require.Len(t, scene.Mesh.Desired(stage.Namespace, f.Name, since), 1, "nothing moved")
	require.Equal(t, int64(3), replicasOf(t, f.Name))
}
