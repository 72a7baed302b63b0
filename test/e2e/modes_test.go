// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// awaitNoAutoscaler waits until the policy's autoscaler is deleted.
func awaitNoAutoscaler(t *testing.T, f *stage.Function) {
	t.Helper()
	await(t, f, "our HPA to be gone", patience, func(ctx context.Context) (bool, string, error) {
		hpa, err := f.Autoscaler(ctx)
		return hpa == nil, "it is there", err
	})
}

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
		awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionTrue, reason)
		awaitNoAutoscaler(t, f)
		p, err := f.Policy(t.Context())
		require.NoError(t, err)
		require.NotNil(t, p.Status.Capacity, "what was learned stays")
		if mode == v1alpha1.ModePaused {
			require.Nil(t, p.Status.DesiredReplicas)
			require.Nil(t, p.Status.Signals)
		}
		processesOn(t, f)
		setMode(t, f, v1alpha1.ModeAuto)
		awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionTrue, v1alpha1.ReasonScaling)
		processesOn(t, f)
	}
	p, err := f.Policy(t.Context())
	require.NoError(t, err)
	require.NoError(t, scene.Client.Delete(t.Context(), p))
	awaitNoAutoscaler(t, f)
	processesOn(t, f)
	require.Empty(t, desiredSince(f.Name, since), "nothing moved")
	require.Equal(t, int64(3), replicasOf(t, f.Name))
}

func TestModesZeroByHandSwitchesScalingOff(t *testing.T) {
	t.Parallel()
	f := settled(t, "by-hand")
	scaleByHand(t, f.Name, 0)
	said := awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionFalse, v1alpha1.ReasonSwitchedOff)
	require.Contains(t, said, "set them to 1 or more")
	awaitEvent(t, f.Name, "ReplicasChangedExternally", "3 -> 0 was written to the scale subresource")
	waiting := f.Published()
	await(t, f, "messages to wait", patience, func(context.Context) (bool, string, error) {
		return f.Published() > waiting+300, "few", nil
	})
	require.Zero(t, replicasOf(t, f.Name))
	scaleByHand(t, f.Name, 1)
	awaitReplicas(t, f, 3, 20, patience)
}
