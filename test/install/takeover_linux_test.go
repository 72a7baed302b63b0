// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// TestUninstallWithTakeOver deletes a policy before the release, which restores the autoscaler that it suspended, and
// one after it: that policy keeps its finalizer, and the suspended autoscaler in its status, until an adapter runs.
func TestUninstallWithTakeOver(t *testing.T) {
	s := openAll(t)
	s.createNamespace(t, namespace)
	f := s.addFunction(t, "taken", 20*time.Millisecond)
	users := &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: stage.Namespace, Name: "taken-by-hand"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{
				APIVersion: "compute.functionmesh.io/v1alpha1", Kind: "Function", Name: f.Name,
			},
			MaxReplicas: 9,
		},
	}
	require.NoError(t, s.Client.Create(t.Context(), users.DeepCopy()))
	before := s.objects(t)

	notes := s.install(t, "rbac.takeOver=true")
	require.Contains(t, notes, "Before you uninstall, delete policies with conflictPolicy TakeOver")
	s.awaitMetricsAPI(t)
	p := s.takeOver(t, f, users)
	require.NoError(t, s.Client.Delete(t.Context(), p))
	s.awaitRestored(t, p, users)

	p = s.takeOver(t, f, users)
	s.uninstall(t)
	require.NoError(t, s.Client.Delete(t.Context(), p))
	p, err := f.Policy(t.Context())
	require.NoError(t, err, "it waits")
	require.Equal(t, []string{plan.Finalizer}, p.Finalizers)
	require.Len(t, p.Status.TakenOver.HorizontalPodAutoscalers, 1)
	require.Contains(t, p.Status.TakenOver.HorizontalPodAutoscalers[0], users.Name)
	replicas, err := f.Replicas(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(1), replicas.Spec)

	s.install(t, "rbac.takeOver=true")
	s.awaitRestored(t, p, users)
	s.uninstall(t)
	s.requireNamespacesGo(t, "after-takeover")
	s.requireLeft(t, before, definitions()...)
	require.NoError(t, s.Client.Delete(t.Context(), users))
	s.removeNamespace(t, namespace)
}

// takeOver applies a policy and returns it once it has suspended the autoscaler.
func (s *scene) takeOver(t *testing.T, f *stage.Function, users client.Object) *v1alpha1.AutoscalingPolicy {
	t.Helper()
	p := stage.NewPolicy(f.Name, 1, maxReplicas, objective)
	p.Spec.ConflictPolicy = v1alpha1.ConflictTakeOver
	require.NoError(t, s.Client.Create(t.Context(), p))
	ours := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{
		Namespace: stage.Namespace, Name: plan.AutoscalerName(f.Name),
	}}
	s.Await(t, "the policy to take over", func(ctx context.Context) (bool, string, error) {
		created, err := s.exists(ctx, ours)
		active, errUsers := s.exists(ctx, users)
		current, errPolicy := f.Policy(ctx)
		if err := errors.Join(err, errUsers, errPolicy); err != nil {
			return false, "", err
		}
		return created && !active, fmt.Sprint(current.Status.Conditions), nil
	})
	return p
}

// awaitRestored returns once the policy is gone, and the user's autoscaler is as it was.
func (s *scene) awaitRestored(t *testing.T, p *v1alpha1.AutoscalingPolicy,
	users *autoscalingv2.HorizontalPodAutoscaler,
) {
	t.Helper()
	s.AwaitGone(t, p)
	restored := users.DeepCopy()
	require.NoError(t, s.Client.Get(t.Context(), client.ObjectKeyFromObject(users), restored))
	require.Equal(t, users.Spec.ScaleTargetRef, restored.Spec.ScaleTargetRef)
	require.Equal(t, users.Spec.MaxReplicas, restored.Spec.MaxReplicas)
}
