// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// leaving bounds a clean-up, which outlives the test's own context.
func leaving(t *testing.T, leave func(ctx context.Context) error) {
	t.Helper()
	t.Cleanup(func() {
		require.NoError(t, leave(context.WithoutCancel(t.Context())))
	})
}

// addFunction adds a Function to the stage and deletes it after the test.
func addFunction(t *testing.T, config stage.FunctionConfig) *stage.Function {
	t.Helper()
	onStage(t)
	return scene.TestFunction(t, config)
}

// addScaledObject creates a ScaledObject and deletes it after the test, before its target.
func addScaledObject(t *testing.T, config stage.ScaledObjectConfig) *stage.ScaledObject {
	t.Helper()
	o, err := scene.AddScaledObject(t.Context(), config)
	require.NoError(t, err)
	leaving(t, o.Remove)
	return o
}

// newPolicy decides for the Function of its name by one strategy, from 0 to 10 replicas, and scales to zero 3 s after
// the last message.
func newPolicy(name string, strategy v1alpha1.Strategy) *v1alpha1.AutoscalingPolicy {
	short := int32(3)
	p := stage.NewPolicy(name, 0, 10, time.Minute)
	p.Spec.Strategies = []v1alpha1.Strategy{strategy}
	p.Spec.Behavior = &v1alpha1.Behavior{ScaleDown: &v1alpha1.ScaleDownRules{
		StabilizationWindowSeconds: &short, CooldownPeriodSeconds: &short,
	}}
	return p
}

// addPolicy creates a policy and deletes it with the Function.
func addPolicy(t *testing.T, p *v1alpha1.AutoscalingPolicy) {
	t.Helper()
	require.NoError(t, scene.Client.Create(t.Context(), p))
}

// patchPolicy changes the policy by a JSON merge patch.
func patchPolicy(t *testing.T, name, patch string) {
	t.Helper()
	p := &v1alpha1.AutoscalingPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: stage.Namespace, Name: name}}
	require.NoError(t, scene.Client.Patch(t.Context(), p, client.RawPatch(types.MergePatchType, []byte(patch))))
}

// awaitCondition waits until a condition of the ScaledObject has a status and a reason, and returns its message.
func awaitCondition(t *testing.T, o *stage.ScaledObject, conditionType string, status metav1.ConditionStatus,
	reason string,
) (message string) {
	t.Helper()
	what := fmt.Sprintf("%s=%s/%s of ScaledObject %s", conditionType, status, reason, o.Name)
	scene.Await(t, what, func(ctx context.Context) (bool, string, error) {
		read, err := o.Status(ctx)
		if err != nil {
			return false, "", err
		}
		for _, c := range read.Conditions {
			if c.Type == conditionType {
				message = c.Message
				return c.Status == status && c.Reason == reason, fmt.Sprintf("%+v", read.Conditions), nil
			}
		}
		return false, "no such condition", nil
	})
	return message
}

// awaitActiveAgain waits until KEDA has seen the trigger active that long after since.
func awaitActiveAgain(t *testing.T, o *stage.ScaledObject, since time.Time) {
	t.Helper()
	scene.Await(t, "KEDA to see "+o.Name+" active", func(ctx context.Context) (bool, string, error) {
		status, err := o.Status(ctx)
		return status.LastActiveTime.After(since),
			fmt.Sprintf("%s, and now it is %s: %+v", status.LastActiveTime, time.Now(), status.Conditions), err
	})
}

// tellTimeline logs the timeline for go test -v.
func tellTimeline(t *testing.T, name string, since time.Time) {
	t.Helper()
	for _, sample := range scene.Mesh.Timeline(stage.Namespace, name) {
		t.Logf("%6.2fs desired %d, started %d, ready %d", sample.Time.Sub(since).Seconds(), sample.Desired, sample.Started,
			sample.Ready)
	}
}

// fromZero is the timeline from the first zero on: watchers see changes later than the API server.
func fromZero(t *testing.T, name string, since time.Time) []int {
	t.Helper()
	desired := scene.Mesh.Desired(stage.Namespace, name, since)
	at := slices.Index(desired, 0)
	require.NotEqual(t, -1, at, "it was never at zero: %v", desired)
	return desired[at:]
}
