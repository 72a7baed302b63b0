// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// plainHPA is an HorizontalPodAutoscaler of a user without a policy, on ready messages per replica.
func plainHPA(name string, messages int64) *autoscalingv2.HorizontalPodAutoscaler {
	function := autoscalingv2.CrossVersionObjectReference{
		APIVersion: mesh.GroupVersion().String(), Kind: mesh.KindFunction, Name: name,
	}
	noWindow := int32(0)
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: stage.Namespace, Name: name + "-by-hand"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: function, MaxReplicas: 5,
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ObjectMetricSourceType,
				Object: &autoscalingv2.ObjectMetricSource{
					DescribedObject: function,
					Metric:          autoscalingv2.MetricIdentifier{Name: "pulsar_function_backlog_ready_messages"},
					Target: autoscalingv2.MetricTarget{
						Type: autoscalingv2.AverageValueMetricType, AverageValue: resource.NewQuantity(messages, resource.DecimalSI),
					},
				},
			}},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{
				ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: &noWindow},
			},
		},
	}
}

func TestScalingAPlainHPAWithoutAPolicyFollowsTheBacklogOfAFunction(t *testing.T) {
	t.Parallel()
	const name, perReplica = "plain", 200
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 10 * time.Millisecond})
	require.NoError(t, scene.Client.Create(t.Context(), plainHPA(name, perReplica)))
	t.Cleanup(func() {
		require.NoError(t, scene.Client.Delete(context.WithoutCancel(t.Context()), plainHPA(name, perReplica)))
	})
	// One replica processes 100/s, so 250/s need 3. The backlog grows until the third one runs.
	stop := publish(t, f, load.Constant(250))
	f.AwaitReplicas(t, 3, 5)
	stop()
	require.NoError(t, f.AwaitAllDone(t.Context()))
	f.AwaitReplicas(t, 1, 1)

	f.Await(t, "an HPA without a problem", func(ctx context.Context) (bool, string, error) {
		hpa := autoscalerNamed(name + "-by-hand")
		if err := scene.Client.Get(ctx, client.ObjectKeyFromObject(hpa), hpa); err != nil {
			return false, "", err
		}
		for _, c := range hpa.Status.Conditions {
			// An empty backlog recommends 0, and minReplicas is 1.
			if c.Type != autoscalingv2.ScalingLimited && c.Status != corev1.ConditionTrue {
				return false, fmt.Sprintf("%s: %s: %s", c.Type, c.Reason, c.Message), nil
			}
		}
		return len(hpa.Status.Conditions) > 0, "no condition", nil
	})
	policies, err := f.Policy(t.Context())
	require.Error(t, err, "there is no policy: %v", policies)
}
