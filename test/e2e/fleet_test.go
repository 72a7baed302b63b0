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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// fleetName and fleetLabel are of the fleet of this test.
const (
	fleetName  = "herd"
	fleetLabel = "herd.example.com/member"
)

// member puts a Function there; with the label, the fleet selects it.
func member(t *testing.T, name string, labelled bool) *stage.Function {
	t.Helper()
	return addFunction(t, stage.FunctionConfig{
		Name: name, ServiceTime: 20 * time.Millisecond,
		Edit: func(object *unstructured.Unstructured) {
			if labelled {
				object.SetLabels(map[string]string{fleetLabel: "yes"})
			}
		},
	})
}

// childName is what the fleet calls its policy for a Function.
func childName(function string) string {
	return plan.ChildName(fleetName,
		v1alpha1.ScaleTargetRef{APIVersion: mesh.GroupVersion().String(), Kind: mesh.KindFunction, Name: function})
}

// awaitOnStage waits for something about a fleet, and shows its policies when it does not come.
func awaitOnStage(t *testing.T, what string, holds func(ctx context.Context) (bool, string, error)) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := cluster.WaitFor(ctx, what, 200*time.Millisecond, holds); err != nil {
		t.Fatalf("%v\nfleet: %+v", err, fleetStatus(t))
	}
}

func fleetStatus(t *testing.T) v1alpha1.AutoscalingPolicyStatus {
	t.Helper()
	var p v1alpha1.AutoscalingPolicy
	require.NoError(t, scene.Client.Get(t.Context(), client.ObjectKey{Namespace: stage.Namespace, Name: fleetName}, &p))
	return p.Status
}

// awaitFleet waits until the fleet says of how many Functions it governs how many, and that they are Ready.
func awaitFleet(t *testing.T, target string) {
	t.Helper()
	awaitOnStage(t, "the fleet to govern "+target, func(context.Context) (bool, string, error) {
		status := fleetStatus(t)
		for _, c := range status.Conditions {
			if c.Type == v1alpha1.ConditionReady {
				return status.Target == target &&
					c.Status == metav1.ConditionTrue, fmt.Sprintf("%s, %s: %s", status.Target, c.Status, c.Message), nil
			}
		}
		return false, "no condition", nil
	})
}

// awaitGone waits until a policy and its HorizontalPodAutoscaler are no more.
func awaitGone(t *testing.T, name string) {
	t.Helper()
	for _, object := range []client.Object{
		&v1alpha1.AutoscalingPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: plan.AutoscalerName(name)}},
	} {
		awaitOnStage(t, object.GetName()+" to go", func(ctx context.Context) (bool, string, error) {
			err := scene.Client.Get(ctx, client.ObjectKey{Namespace: stage.Namespace, Name: object.GetName()}, object)
			return err != nil && client.IgnoreNotFound(err) == nil, "still there", client.IgnoreNotFound(err)
		})
	}
}

func specReplicas(t *testing.T, f *stage.Function) int64 {
	t.Helper()
	replicas, err := f.Replicas(t.Context())
	require.NoError(t, err)
	return replicas.Spec
}

func TestFleetGovernsEachFunctionByItself(t *testing.T) {
	t.Parallel()
	onStage(t)
	fleet := newPolicy(fleetName)
	fleet.Spec.ScaleTargetRef = v1alpha1.ScaleTargetRef{}
	fleet.Spec.MinReplicas = new(int32(2)) // so that the quiet ones move too
	fleet.Spec.TargetSelector = &v1alpha1.TargetSelector{
		Kind: mesh.KindFunction, LabelSelector: metav1.LabelSelector{MatchLabels: map[string]string{fleetLabel: "yes"}},
	}
	t.Cleanup(func() {
		require.NoError(t, client.IgnoreNotFound(scene.Client.Delete(context.WithoutCancel(t.Context()), fleet)))
	})
	busy, calm := member(t, "herd-busy", true), member(t, "herd-calm", true)
	named, stray := member(t, "herd-named", true), member(t, "herd-stray", false)
	addPolicy(t, newPolicy(named.Name)) // at least 1
	require.NoError(t, scene.Client.Create(t.Context(), fleet))
	publish(t, busy, load.Constant(150))

	awaitReplicas(t, busy, 4, 20, time.Minute)
	awaitReplicas(t, calm, 2, 2, time.Minute)
	awaitFleet(t, "2 of 3 Functions")
	require.Equal(t, int64(1), specReplicas(t, named), "which its own policy governs")
	require.Equal(t, int64(1), specReplicas(t, stray), "which nobody governs")
	for _, f := range []*stage.Function{busy, calm} {
		var hpa autoscalingv2.HorizontalPodAutoscaler
		key := client.ObjectKey{Namespace: stage.Namespace, Name: plan.AutoscalerName(childName(f.Name))}
		require.NoError(t, scene.Client.Get(t.Context(), key, &hpa))
		require.Equal(t, f.Name, hpa.Spec.ScaleTargetRef.Name)
	}
	err := scene.Client.Get(t.Context(), client.ObjectKey{Namespace: stage.Namespace, Name: childName(named.Name)},
		&v1alpha1.AutoscalingPolicy{})
	require.NoError(t, client.IgnoreNotFound(err))
	require.Error(t, err, "a policy that names the Function goes first")

	handOver(t, calm)
	relabel(t, calm.Name, nil)
	awaitGone(t, childName(calm.Name))
	awaitFleet(t, "1 of 2 Functions")

	require.NoError(t, scene.Client.Delete(t.Context(), fleet))
	awaitGone(t, childName(busy.Name))
	require.GreaterOrEqual(t, specReplicas(t, busy), int64(4))
	require.Equal(t, int64(2), specReplicas(t, calm))
}

// handOver writes a policy of the Function's own, which takes over from the fleet, and takes it away again.
func handOver(t *testing.T, f *stage.Function) {
	t.Helper()
	own := newPolicy(f.Name)
	own.Spec.MinReplicas = new(int32(2))
	addPolicy(t, own)
	awaitGone(t, childName(f.Name))
	awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionTrue, "Scaling")
	require.NoError(t, scene.Client.Delete(t.Context(), own))
	awaitFleet(t, "2 of 3 Functions")
	for _, sample := range scene.Mesh.Timeline(stage.Namespace, f.Name) {
		require.LessOrEqual(t, sample.Desired, 2, "no jump when a Function changes hands")
	}
}

// relabel gives a Function other labels.
func relabel(t *testing.T, name string, labels map[string]string) {
	t.Helper()
	function := &unstructured.Unstructured{}
	function.SetGroupVersionKind(mesh.GroupVersion().WithKind(mesh.KindFunction))
	require.NoError(t, scene.Client.Get(t.Context(), client.ObjectKey{Namespace: stage.Namespace, Name: name}, function))
	before := function.DeepCopy()
	function.SetLabels(labels)
	require.NoError(t, scene.Client.Patch(t.Context(), function, client.MergeFrom(before)))
}
