// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// TestAnOperatorThatIsGoneHoldsUpATransferAndNothingElse: the ScaledObject stays until KEDA removes its finalizer, and
// replicas do not change. It runs before the parallel tests, which need the operator.
func TestAnOperatorThatIsGoneHoldsUpATransferAndNothingElse(t *testing.T) {
	onStage(t)
	const name, replicas = "transferred", 3
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 40 * time.Millisecond, Replicas: replicas})
	publish(t, f, 50)
	rate := v1alpha1.RatePerReplica{MessagesPerSecond: resource.MustParse("20")}
	p := newPolicy(name, v1alpha1.Strategy{Type: v1alpha1.StrategyRatePerReplica, RatePerReplica: &rate})
	p.Spec.Actuator = v1alpha1.ActuatorKEDA
	addPolicy(t, p)
	o := scene.ScaledObject(plan.AutoscalerName(name))
	awaitScaledObject(t, o, true)
	f.AwaitConditions(t, "ScalingActive=True/ValidMetricFound")
	f.AwaitReplicas(t, replicas, replicas)
	since := time.Now()

	before := applies(t)
	f.AwaitDone(t, 60*50) // a minute
	require.Equal(t, before, applies(t), "nothing is written again of a ScaledObject as KEDA leaves it")

	scene.KEDA.Operator.Kill()
	patchPolicy(t, name, `{"spec":{"actuator":"Direct"}}`)
	f.AwaitConditions(t, "AutoscalerApplied=False/ScaledObjectStays")
	is, err := o.Exists(t.Context())
	require.NoError(t, err)
	require.True(t, is)
	require.NoError(t, scene.KEDA.Operator.Restart(t.Context()))
	awaitScaledObject(t, o, false)
	f.AwaitConditions(t, "AutoscalerApplied=True/Direct")
	scene.Await(t, "KEDA's HorizontalPodAutoscaler to be gone", func(ctx context.Context) (bool, string, error) {
		hpa, err := f.Autoscaler(ctx)
		return hpa == nil, fmt.Sprint(hpa), err
	})

	patchPolicy(t, name, `{"spec":{"actuator":"HPA"}}`)
	f.AwaitConditions(t, "AutoscalerApplied=True/Applied")
	f.AwaitConditions(t, "ScalingActive=True/ValidMetricFound")
	f.AwaitDone(t, 200)
	require.Equal(t, []int{replicas}, desiredSince(name, since))
}

// applies are the lines of the adapter's metrics that count its applies.
func applies(t *testing.T) (lines []string) {
	t.Helper()
	text, err := scene.Ask(t.Context(), scene.Adapter, "/metrics")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "applies_total{") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	require.NotEmpty(t, lines)
	return lines
}
