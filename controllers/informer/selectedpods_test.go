// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// podOf is a pod of a Deployment, in a phase.
func podOf(app, name string, phase corev1.PodPhase) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "media", Name: name, Labels: map[string]string{"app": app},
			CreationTimestamp: metav1.NewTime(time.Unix(1_800_000_000, 0)),
		},
		Status: corev1.PodStatus{Phase: phase},
	}
	if phase == corev1.PodRunning {
		pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}
	}
	return pod
}

func TestSelectedPods(t *testing.T) {
	ends := podOf("orders", "ends", corev1.PodRunning)
	ends.Finalizers, ends.DeletionTimestamp = []string{"a/b"}, &metav1.Time{Time: time.Unix(1_800_000_000, 0)}
	crashed := podOf("orders", "crashed", corev1.PodRunning)
	crashed.Status.Conditions[0].Status = corev1.ConditionFalse
	crashed.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{
		Waiting: &corev1.ContainerStateWaiting{Reason: reasonCrashLoop},
	}}}
	now := time.Unix(1_800_000_100, 0)
	var listed int
	var fails error
	p := &Pods{
		selections: newSelections(func() time.Time { return now }),
		direct: fake.NewClientBuilder().WithObjects(ends, crashed, podOf("orders", "well", corev1.PodRunning),
			podOf("orders", "pending", corev1.PodPending), podOf("orders", "done", corev1.PodSucceeded),
			podOf("billing", "other", corev1.PodRunning)).WithInterceptorFuncs(interceptor.Funcs{
			List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
				listed++
				if fails != nil {
					return fails
				}
				return c.List(ctx, list, options...)
			},
		}).Build(),
	}
	for range 3 {
		pods, err := p.Selected("media", "app=orders")
		require.NoError(t, err)
		require.Equal(t, int32(3), *pods.Running, "a terminating pod still consumes")
		require.Equal(t, int32(1), pods.CrashLooping)
		require.Equal(t, int32(2), pods.Unready, "pending and crashed: one that is done has been replaced")
	}
	require.Equal(t, 1, listed, "the health is cached")
	none, err := p.Selected("video", "app=orders")
	require.NoError(t, err)
	require.Zero(t, *none.Running)

	now = now.Add(selectedTTL)
	fails = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
	_, err = p.Selected("media", "app=orders")
	require.ErrorIs(t, err, backlog.ErrForbidden)
	_, err = p.Selected("media", "app in (orders")
	require.ErrorContains(t, err, "reading the selector of pods")
	fails = errors.New("no route to host")
	_, err = p.Selected("shop", "app=orders")
	require.ErrorContains(t, err, `listing the pods that "app=orders" selects in namespace shop: no route to host`)
}
