// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// TestActuatorsAreExchangedUnderLoadWithoutAJump switches from the HorizontalPodAutoscaler to KEDA, to the adapter
// itself while KEDA's operator is gone, and back. The ScaledObject stays until KEDA removes its finalizer, and replicas
// do not change. It runs before the parallel tests, which need the operator.
func TestActuatorsAreExchangedUnderLoadWithoutAJump(t *testing.T) {
	onStage(t)
	const name = "transferred"
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 20 * time.Millisecond, Replicas: maxLoaded})
	f.Load(t, load.Constant(loadedRate))
	rate := v1alpha1.RatePerReplica{MessagesPerSecond: resource.MustParse("20")}
	p := newPolicy(name, v1alpha1.Strategy{Type: v1alpha1.StrategyRatePerReplica, RatePerReplica: &rate})
	p.Spec.MaxReplicas, p.Spec.Actuator = maxLoaded, v1alpha1.ActuatorHPA
	addPolicy(t, p)
	awaitScaling(t, f, v1alpha1.ActuatorHPA, v1alpha1.KindAutoscalingPolicy)
	f.AwaitReplicas(t, maxLoaded, maxLoaded)
	since := time.Now()

	o := scene.ScaledObject(plan.AutoscalerName(name))
	patchPolicy(t, name, `{"spec":{"actuator":"KEDA"}}`)
	awaitScaledObject(t, o, true)
	awaitScaling(t, f, v1alpha1.ActuatorKEDA, "ScaledObject")
	awaitReconciles(t, 1) // one may have begun before
	before := metricLines(t, "applies_total{")
	awaitReconciles(t, 5)
	require.Equal(t, before, metricLines(t, "applies_total{"), "a ScaledObject as KEDA leaves it is not written again")

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
	awaitScaling(t, f, v1alpha1.ActuatorHPA, v1alpha1.KindAutoscalingPolicy)
	f.AwaitDone(t, 200)
	require.Equal(t, []int{maxLoaded}, scene.Mesh.Desired(stage.Namespace, name, since))
}

// awaitScaling waits until the actuator scales the Function, by a HorizontalPodAutoscaler of the owner's kind.
func awaitScaling(t *testing.T, f *stage.Function, actuator v1alpha1.Actuator, owner string) {
	t.Helper()
	f.AwaitPolicy(t, fmt.Sprint(actuator, " to scale"), func(p *v1alpha1.AutoscalingPolicy) bool {
		return p.Status.Actuator != nil && p.Status.Actuator.Type == actuator
	})
	f.AwaitConditions(t, "Ready=True/Scaling", "ScalingActive=True/ValidMetricFound")
	scene.Await(t, "a HorizontalPodAutoscaler of the "+owner, func(ctx context.Context) (bool, string, error) {
		hpa, err := f.Autoscaler(ctx)
		if err != nil || hpa == nil {
			return false, "none", err
		}
		owners := hpa.OwnerReferences
		return len(owners) == 1 && owners[0].Kind == owner, fmt.Sprint(owners), nil
	})
}

// awaitReconciles waits for that many more reconciles of the adapter. There is one policy.
func awaitReconciles(t *testing.T, more int) {
	t.Helper()
	for range more {
		before := metricLines(t, "policy_reconciles_total{")
		scene.Await(t, "a reconcile", func(context.Context) (bool, string, error) {
			return !slices.Equal(before, metricLines(t, "policy_reconciles_total{")), fmt.Sprint(before), nil
		})
	}
}

// metricLines are the lines of the adapter's metrics that contain a text.
func metricLines(t *testing.T, text string) (lines []string) {
	t.Helper()
	scene.Await(t, "metrics with "+text, func(ctx context.Context) (bool, string, error) {
		metrics, err := scene.Ask(ctx, scene.Adapter, "/metrics")
		lines = nil // of the look before
		for line := range strings.Lines(string(metrics)) {
			if strings.Contains(line, text) {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
		return len(lines) > 0, "there are none", err
	})
	return lines
}
