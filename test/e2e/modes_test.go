// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

func TestCoreModesPauseAndResumeWithoutAJumpAndDeletionLeavesReplicas(t *testing.T) {
	t.Parallel()
	f := settled(t, "modes")
	since := time.Now()
	for _, mode := range []v1alpha1.Mode{v1alpha1.ModeRecommend, v1alpha1.ModePaused} {
		reason := map[v1alpha1.Mode]string{
			v1alpha1.ModeRecommend: v1alpha1.ReasonRecommending,
			v1alpha1.ModePaused:    v1alpha1.ReasonPaused,
		}[mode]
		setMode(t, f, mode)
		f.AwaitConditions(t, "Ready=True/"+reason)
		scene.AwaitGone(t, autoscalerNamed(plan.AutoscalerName(f.Name)))
		p, err := f.Policy(t.Context())
		require.NoError(t, err)
		require.NotNil(t, p.Status.Capacity, "what was learned stays")
		if mode == v1alpha1.ModePaused {
			require.Nil(t, p.Status.DesiredReplicas)
			require.Nil(t, p.Status.Signals)
		}
		f.AwaitDone(t, 100)
		setMode(t, f, v1alpha1.ModeAuto)
		f.AwaitConditions(t, "Ready=True/Scaling")
		f.AwaitDone(t, 100)
	}
	p, err := f.Policy(t.Context())
	require.NoError(t, err)
	require.NoError(t, scene.Client.Delete(t.Context(), p))
	scene.AwaitGone(t, autoscalerNamed(plan.AutoscalerName(f.Name)))
	f.AwaitDone(t, 100)
	require.Empty(t, desiredSince(f.Name, since), "nothing moved")
	require.Equal(t, int64(3), replicasOf(t, f.Name))
}
