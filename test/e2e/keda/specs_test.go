// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// TestAThresholdOfThePolicyReachesTheAutoscalerWhileTheScaledObjectStays: the target is streamed (StreamMetricSpec).
func TestAThresholdOfThePolicyReachesTheAutoscalerWhileTheScaledObjectStays(t *testing.T) {
	t.Parallel()
	const name = "retargeted"
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 500 * time.Millisecond})
	p := newPolicy(name, v1alpha1.Strategy{
		Type: v1alpha1.StrategyBacklogPerReplica, BacklogPerReplica: &v1alpha1.BacklogPerReplica{Messages: perReplica},
	})
	p.Spec.Mode = v1alpha1.ModeRecommend
	addPolicy(t, p)
	o := addScaledObject(t, stage.ScaledObjectConfig{
		Name: name, PollingSeconds: never, Metadata: map[string]string{
			"policy":   name,
			"strategy": string(v1alpha1.StrategyBacklogPerReplica),
		},
	})
	awaitTarget(t, o, perReplica)
	before, err := o.Read(t.Context())
	require.NoError(t, err)

	const more = 500
	since := time.Now()
	patchPolicy(t, name,
		fmt.Sprintf(`{"spec":{"strategies":[{"type":"BacklogPerReplica","backlogPerReplica":{"messages":%d}}]}}`, more))
	awaitTarget(t, o, more)
	t.Logf("%s after the policy was changed", time.Since(since).Round(time.Millisecond))
	after, err := o.Read(t.Context())
	require.NoError(t, err)
	require.Equal(t, before.GetGeneration(), after.GetGeneration())

	// KEDA keeps the streamed target, also after a restart of the scaler and a new poll.
	require.NoError(t,
		o.Patch(t.Context(), client.RawPatch(types.MergePatchType, []byte(`{"spec":{"pollingInterval":2}}`))))
	require.NoError(t, f.PublishBurst(t.Context(), 4))
	awaitActiveAgain(t, o, time.Now())
	awaitTarget(t, o, more)
}

// awaitTarget waits until KEDA's HorizontalPodAutoscaler has the average value as its target.
func awaitTarget(t *testing.T, o *stage.ScaledObject, messages int64) {
	t.Helper()
	scene.Await(t, fmt.Sprint("the target ", messages), func(ctx context.Context) (bool, string, error) {
		hpa, err := o.Autoscaler(ctx)
		if err != nil || hpa == nil {
			return false, "no HPA", err
		}
		metrics := hpa.Spec.Metrics
		if len(metrics) != 1 || metrics[0].External == nil || metrics[0].External.Target.AverageValue == nil {
			return false, fmt.Sprintf("%+v", metrics), nil
		}
		return metrics[0].External.Target.AverageValue.Value() == messages, fmt.Sprintf("%+v", metrics[0].External), nil
	})
}
