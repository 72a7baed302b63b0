// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	require.Equal(t, []int{replicas}, scene.Mesh.Desired(stage.Namespace, f.Name, time.Time{}))
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
	create(t, deployment)
	other := cpuAutoscaler(name+"-by-labels",
		autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name})
	create(t, other)
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
