// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// TestHPAScalesACustomResourceByAnAggregatedMetric down to 1 replica. The controller is the only writer at zero, also
// where HPAs may scale to zero: one with minReplicas 1 does nothing there, whatever its metric.
func TestHPAScalesACustomResourceByAnAggregatedMetric(t *testing.T) {
	const gate = "--feature-gates=HPAScaleToZero=true"
	c := startCluster(t, Config{
		HPASyncPeriod: time.Second, CRDs: []string{workerCRD}, APIServerArgs: []string{gate},
		ControllerManagerArgs: []string{gate},
	})
	require.NoError(t, c.ApplyFiles(t.Context(), workerObjects))
	metrics := startMetricsServer(t, c)
	setStatusReplicas(t, c, 1)

	metrics.set(7)
	require.NoError(t, c.Client.Create(t.Context(), workerHPA("counter")))
	requireReplicas(t, c, 7)
	setStatusReplicas(t, c, 7)
	metrics.set(2)
	requireReplicas(t, c, 2)
	worker := workerOf("counter")
	require.NoError(t, c.Client.Get(t.Context(), client.ObjectKeyFromObject(worker), worker))
	writer, err := plan.LastWriter(worker.GetManagedFields(), []string{"spec", "replicas"})
	require.NoError(t, err)
	require.Equal(t, "a HorizontalPodAutoscaler (manager kube-controller-manager, Update, subresource scale)",
		writer.String())
	require.Equal(t, map[string]bool{"system:serviceaccount:kube-system:horizontal-pod-autoscaler": true},
		metrics.callers(), "the HPA controller must ask as its own service account")

	setStatusReplicas(t, c, 2)
	metrics.set(0)
	requireReplicas(t, c, 1)
	setStatusReplicas(t, c, 1)
	metrics.set(4)
	requireReplicas(t, c, 4)
	setStatusReplicas(t, c, 4)
	scaleWorker(t, c, 0)
	requireScalingActive(t, c, corev1.ConditionFalse, "ScalingDisabled") // the words that the adapter matches
	requireReplicas(t, c, 0)
	scaleWorker(t, c, 3)
	requireScalingActive(t, c, corev1.ConditionTrue, "ValidMetricFound")
	requireReplicas(t, c, 4)
}

// scaleWorker writes spec.replicas as kubectl scale does.
func scaleWorker(t *testing.T, c *Cluster, replicas int) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	require.NoError(t, c.Client.SubResource("scale").Patch(t.Context(), workerOf("counter"), patch))
}

func requireScalingActive(t *testing.T, c *Cluster, status corev1.ConditionStatus, reason string) {
	t.Helper()
	require.NoError(t,
		WaitFor(t.Context(), "ScalingActive "+reason, 100*time.Millisecond, func(ctx context.Context) (bool, string, error) {
			hpa := workerHPA("counter")
			if err := c.Client.Get(ctx, client.ObjectKeyFromObject(hpa), hpa); err != nil {
				return false, "", err
			}
			for _, one := range hpa.Status.Conditions {
				if one.Type == autoscalingv2.ScalingActive {
					return one.Status == status && one.Reason == reason, one.Reason, nil
				}
			}
			return false, "no condition", nil
		}))
}
