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
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// TestActuatorKEDAGoesToZeroAndBack: the adapter wakes the target with the replicas for the backlog, before KEDA sets
// 1.
func TestActuatorKEDAGoesToZeroAndBack(t *testing.T) {
	t.Parallel()
	const name = "woken"
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 500 * time.Millisecond, StartDelay: 3 * time.Second})
	p := newPolicy(name, v1alpha1.Strategy{
		Type: v1alpha1.StrategyBacklogPerReplica, BacklogPerReplica: &v1alpha1.BacklogPerReplica{Messages: perReplica},
	})
	p.Spec.Actuator = v1alpha1.ActuatorKEDA
	addPolicy(t, p)
	o := scene.ScaledObject(plan.AutoscalerName(name))
	awaitScaledObject(t, o, true)
	f.AwaitConditions(t, "Ready=True/ScaledToZero")
	awaitCondition(t, o, "Ready", metav1.ConditionTrue, "ScaledObjectReady")
	awaitCondition(t, o, "Active", metav1.ConditionFalse, "ScalerNotActive") // else KEDA may activate it once more
	f.AwaitReplicas(t, 0, 0)

	since := time.Now()
	require.NoError(t, f.PublishBurst(t.Context(), burst))
	f.AwaitReplicas(t, 3, 10)
	woken := wake(t, f, since)
	require.NoError(t, f.AwaitAllDone(t.Context()))
	desired := fromZero(t, name, since) // KEDA may activate it once more after the end
	f.AwaitReplicas(t, 0, 0)
	tellTimeline(t, name, since)
	require.Equal(t, int(woken), desired[1], "activation and first size are one move: %v", desired)
	require.NotContains(t, desired[1:], 0, "it went back while there was work: %v", desired)
	require.NoError(t, scene.Client.Delete(t.Context(), p))
	awaitScaledObject(t, o, false)
}

// wake is the last decision since then for the Function at zero replicas. Its event is posted after the replicas.
func wake(t *testing.T, f *stage.Function, since time.Time) (to int32) {
	t.Helper()
	scene.Await(t, "an event about a change from 0", func(ctx context.Context) (bool, string, error) {
		var list eventsv1.EventList
		if err := scene.Client.List(ctx, &list, client.InNamespace(stage.Namespace)); err != nil {
			return false, "", err
		}
		slices.SortFunc(list.Items, func(a, b eventsv1.Event) int { return b.EventTime.Compare(a.EventTime.Time) })
		for _, e := range list.Items {
			if e.Regarding.Name != f.Name || e.Reason != "DesiredReplicasChanged" || !e.EventTime.After(since) {
				continue
			}
			if n, _ := fmt.Sscanf(e.Note, "0 -> %d", &to); n == 1 {
				return true, "", nil
			}
		}
		return false, fmt.Sprintf("%+v", list.Items), nil
	}, f.Name)
	return to
}

// awaitScaledObject waits until a ScaledObject exists, or does not.
func awaitScaledObject(t *testing.T, o *stage.ScaledObject, there bool) {
	t.Helper()
	scene.Await(t, fmt.Sprintf("ScaledObject %s to be there: %t", o.Name, there),
		func(ctx context.Context) (bool, string, error) {
			is, err := o.Exists(ctx)
			return is == there, fmt.Sprint(is), err
		})
}
