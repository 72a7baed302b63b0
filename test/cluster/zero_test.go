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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestHPAGoesToZeroAndBackWhereTheClusterLetsIt tests HPAs with minReplicas 0, to which the adapter leaves the scale to
// zero. No other writer is active.
func TestHPAGoesToZeroAndBackWhereTheClusterLetsIt(t *testing.T) {
	const gate = "--feature-gates=HPAScaleToZero=true"
	c := startCluster(t, Config{
		HPASyncPeriod: time.Second, CRDs: []string{workerCRD}, APIServerArgs: []string{gate},
		ControllerManagerArgs: []string{gate},
	})
	require.NoError(t, c.ApplyFiles(t.Context(), workerObjects))
	metrics := startMetricsServer(t, c)
	setStatusReplicas(t, c, 2)
	metrics.set(2)
	hpa := workerHPA()
	*hpa.Spec.MinReplicas = 0
	hpas := c.client.AutoscalingV2().HorizontalPodAutoscalers("default")
	_, err := hpas.Create(t.Context(), hpa, metav1.CreateOptions{})
	require.NoError(t, err)
	requireReplicas(t, c, 2)

	metrics.set(0)
	requireReplicas(t, c, 0)
	setStatusReplicas(t, c, 0)
	metrics.set(4)
	requireReplicas(t, c, 4) // at once to its size
	setStatusReplicas(t, c, 4)

	// The HPA stays at zero after another writer scales to zero, and reports it in the words that the adapter matches.
	scaleWorker(t, c, 0)
	requireScalingActive(t, c, corev1.ConditionFalse, "ScalingDisabled")
	requireReplicas(t, c, 0)
	scaleWorker(t, c, 4)
	requireScalingActive(t, c, corev1.ConditionTrue, "ValidMetricFound")
}

func TestHPATakesNoZeroWhereTheClusterDoesNotLetIt(t *testing.T) {
	c := startCluster(t, Config{CRDs: []string{workerCRD}})
	hpa := workerHPA()
	*hpa.Spec.MinReplicas = 0
	_, err := c.client.AutoscalingV2().HorizontalPodAutoscalers("default").Create(t.Context(), hpa,
		metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	require.ErrorContains(t, err, "must be greater than or equal to 1")
}

// scaleWorker writes spec.replicas as kubectl scale does.
func scaleWorker(t *testing.T, c *Cluster, replicas int) {
	t.Helper()
	_, err := c.dynamic.Resource(workers()).Namespace("default").Patch(
		t.Context(), "counter", types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`,
			replicas), metav1.PatchOptions{}, "scale")
	require.NoError(t, err)
}

func requireScalingActive(t *testing.T, c *Cluster, status corev1.ConditionStatus, reason string) {
	t.Helper()
	require.NoError(t,
		WaitFor(t.Context(), "ScalingActive "+reason, 100*time.Millisecond, func(ctx context.Context) (bool, string, error) {
			hpa, err := c.client.AutoscalingV2().HorizontalPodAutoscalers("default").Get(ctx, "counter", metav1.GetOptions{})
			if err != nil {
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
