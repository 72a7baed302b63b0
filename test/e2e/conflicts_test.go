// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// cpuAutoscaler scales on CPU, which is unknown on the stage, so it never acts: from 1 to 9 replicas.
func cpuAutoscaler(name string,
	target autoscalingv2.CrossVersionObjectReference,
) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: stage.Namespace, Name: name, Labels: map[string]string{"by": "hand"}},
		Spec:       autoscalingv2.HorizontalPodAutoscalerSpec{ScaleTargetRef: target, MaxReplicas: 9},
	}
}

func statefulSetOf(name string) autoscalingv2.CrossVersionObjectReference {
	return autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: name + "-function"}
}

func functionNamed(name string) autoscalingv2.CrossVersionObjectReference {
	return autoscalingv2.CrossVersionObjectReference{
		APIVersion: mesh.GroupVersion().String(), Kind: mesh.KindFunction,
		Name: name,
	}
}

// scaledObject is a ScaledObject. KEDA does not run here.
func scaledObject(name string, target autoscalingv2.CrossVersionObjectReference) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": map[string]any{
			"namespace": stage.Namespace,
			"name":      name,
		},
		"spec": map[string]any{"scaleTargetRef": map[string]any{
			"apiVersion": target.APIVersion, "kind": target.Kind,
			"name": target.Name,
		}},
	}}
}

// place creates an object and deletes it after the test.
func place(t *testing.T, object client.Object) {
	t.Helper()
	require.NoError(t, scene.Client.Create(t.Context(), object))
	t.Cleanup(func() { remove(t, object) })
}

func remove(t *testing.T, object client.Object) {
	t.Helper()
	require.NoError(t, client.IgnoreNotFound(scene.Client.Delete(context.WithoutCancel(t.Context()), object)))
}

// requireNoAutoscaler checks that the policy has no autoscaler and that replicas never changed.
func requireNoAutoscaler(t *testing.T, f *stage.Function, replicas int) {
	t.Helper()
	hpa, err := f.Autoscaler(t.Context())
	require.NoError(t, err)
	require.Nil(t, hpa)
	requireUntouched(t, f, replicas)
}

// requireUntouched checks that the Function never had another number of replicas.
func requireUntouched(t *testing.T, f *stage.Function, replicas int) {
	t.Helper()
	for _, sample := range scene.Mesh.Timeline(stage.Namespace, f.Name) {
		require.Equal(t, replicas, sample.Desired, "at %s", sample.Time)
	}
}

func TestConflictsOnTheStatefulSetOfAFunctionAreFoundAndWrittenOfOnly(t *testing.T) {
	t.Parallel()
	const name, replicas = "disputed", 2
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 10 * time.Millisecond, Replicas: replicas})
	foreign := cpuAutoscaler(name+"-by-hand", statefulSetOf(name))
	place(t, foreign)
	p := newPolicy(name)
	p.Spec.MinReplicas = new(int32(replicas))
	addPolicy(t, p)
	said := f.AwaitConditions(t, "Ready=False/ConflictingAutoscaler")
	require.Contains(t, said, "HorizontalPodAutoscaler "+name+"-by-hand scales StatefulSet "+name+"-function")
	require.Contains(t, said, "AT EVERY SYNC")
	requireNoAutoscaler(t, f, replicas)

	t.Log("a ScaledObject instead, which its own events tell of")
	keda := scaledObject(name, statefulSetOf(name))
	place(t, keda)
	named := func(holds func(message, part string) bool) {
		f.Await(t, "the ScaledObject to be named", func(ctx context.Context) (bool, string, error) {
			said := f.AwaitConditions(t, "Ready=False/ConflictingAutoscaler")
			return holds(said, "ScaledObject "+name), said, ctx.Err()
		})
	}
	named(strings.Contains) // otherwise the controller may first see that nothing conflicts
	remove(t, foreign)
	named(strings.HasPrefix)
	requireNoAutoscaler(t, f, replicas)

	t.Log("one that is paused is in nobody's way")
	pause := client.RawPatch("application/merge-patch+json",
		[]byte(`{"metadata":{"annotations":{"autoscaling.keda.sh/paused":"true"}}}`))
	require.NoError(t, scene.Client.Patch(t.Context(), keda, pause))
	f.AwaitConditions(t, "Ready=True/Scaling")
	requireUntouched(t, f, replicas)
}

func TestConflictsThatOnlyTheHPAControllerSeesAreNamed(t *testing.T) {
	t.Parallel()
	const name = "ambiguous"
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 10 * time.Millisecond})
	addPolicy(t, newPolicy(name))
	f.AwaitConditions(t, "Ready=True/Scaling")

	// A Deployment without pods that has the selector of the Function's pods.
	labels := map[string]string{"name": name, "component": "function"}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: stage.Namespace, Name: name},
		Spec: appsv1.DeploymentSpec{
			Paused: true, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name:  "a",
					Image: "a",
				}}},
			},
		},
	}
	place(t, deployment)
	other := cpuAutoscaler(name+"-by-labels",
		autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name})
	place(t, other)
	said := f.AwaitConditions(t, "Ready=False/AmbiguousSelector")
	require.Contains(t, said, "HorizontalPodAutoscaler "+stage.Namespace+"/"+name+"-by-labels selects the same pods")
	remove(t, other)
	f.AwaitConditions(t, "Ready=True/Scaling")
}

// gone reports that an object does not exist.
func gone(ctx context.Context, object client.Object) (bool, error) {
	err := scene.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
	return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
}
