// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package stage

import (
	"context"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
)

// NewPolicy is a policy for a Function of the same name, with bounds and an objective.
func NewPolicy(function string, minReplicas, maxReplicas int32, objective time.Duration) *v1alpha1.AutoscalingPolicy {
	return &v1alpha1.AutoscalingPolicy{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: function},
		Spec: v1alpha1.AutoscalingPolicySpec{
			ScaleTargetRef: v1alpha1.ScaleTargetRef{
				APIVersion: mesh.GroupVersion().String(), Kind: mesh.KindFunction, Name: function,
			},
			ScalingSpec: v1alpha1.ScalingSpec{
				MinReplicas: &minReplicas, MaxReplicas: maxReplicas,
				LatencyObjective: metav1.Duration{Duration: objective},
			},
		},
	}
}

// Policy reads the policy of the Function's name.
func (f *Function) Policy(ctx context.Context) (*v1alpha1.AutoscalingPolicy, error) {
	return f.stage.Policy(ctx, f.Name)
}

// Policy reads a policy.
func (s *Stage) Policy(ctx context.Context, name string) (*v1alpha1.AutoscalingPolicy, error) {
	p := &v1alpha1.AutoscalingPolicy{}
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: name}, p); err != nil {
		return nil, fmt.Errorf("reading the policy: %w", err)
	}
	return p, nil
}

// Autoscaler reads the HorizontalPodAutoscaler of the policy; nil if there is none yet.
func (f *Function) Autoscaler(ctx context.Context) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	return f.stage.autoscaler(ctx, f.Name)
}

func (s *Stage) autoscaler(ctx context.Context, policy string) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	return s.autoscalerNamed(ctx, plan.AutoscalerName(policy))
}

// autoscalerNamed reads a HorizontalPodAutoscaler; nil if there is none.
func (s *Stage) autoscalerNamed(ctx context.Context, name string) (*autoscalingv2.HorizontalPodAutoscaler, error) {
	hpa := &autoscalingv2.HorizontalPodAutoscaler{}
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: Namespace, Name: name}, hpa)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // no autoscaler is an answer here, and a common one
	case err != nil:
		return nil, fmt.Errorf("reading the autoscaler: %w", err)
	}
	return hpa, nil
}
