// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// TestDeploymentThroughKEDAGoesToZeroAndBack: KEDA creates its HorizontalPodAutoscaler for the Deployment, and the
// adapter scales it to zero and back.
func TestDeploymentThroughKEDAGoesToZeroAndBack(t *testing.T) {
	t.Parallel()
	const name = "payments"
	f := addFunction(t, stage.FunctionConfig{
		Name: name, Deployment: true, ServiceTime: 500 * time.Millisecond, StartDelay: 3 * time.Second,
		ReceiverQueueSize: 10,
	})
	p := f.Consumes(newPolicy(name, v1alpha1.Strategy{
		Type: v1alpha1.StrategyBacklogPerReplica, BacklogPerReplica: &v1alpha1.BacklogPerReplica{Messages: perReplica},
	}))
	p.Spec.Actuator = v1alpha1.ActuatorKEDA
	addPolicy(t, p)
	o := scene.ScaledObject(plan.AutoscalerName(name))
	awaitScaledObject(t, o, true)
	f.AwaitReplicas(t, 0, 0)
	f.AwaitConditions(t, "Ready=True/ScaledToZero")
	awaitCondition(t, o, "Ready", metav1.ConditionTrue, "ScaledObjectReady")

	require.NoError(t, f.PublishBurst(t.Context(), burst))
	f.AwaitReplicas(t, 3, 10)
	hpa, err := f.Autoscaler(t.Context())
	require.NoError(t, err)
	require.NotNil(t, hpa)
	require.Equal(t, "Deployment "+name, hpa.Spec.ScaleTargetRef.Kind+" "+hpa.Spec.ScaleTargetRef.Name)
	require.NoError(t, f.AwaitAllDone(t.Context()))
	f.AwaitReplicas(t, 0, 0)
	require.NoError(t, scene.Client.Delete(t.Context(), p))
	awaitScaledObject(t, o, false)
}
