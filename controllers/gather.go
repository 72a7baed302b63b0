// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// gather reads all that a decision about the policy rests on, except the backlog.
func (r *PolicyReconciler) gather(ctx context.Context, p *v1alpha1.AutoscalingPolicy) (plan.Observed, error) {
	world := plan.Observed{Policy: p, Capabilities: r.config.Abilities()}
	found, err := r.config.Targets.Finder.Find(ctx, p.Namespace, p.Spec)
	if err != nil {
		return world, fmt.Errorf("finding the target: %w", err)
	}
	world.Unsupported = found.Unsupported
	if world.Sharers, err = r.config.Targets.Sharers.Of(ctx, p.Namespace, found.Target); err != nil {
		return world, fmt.Errorf("finding what shares the subscription: %w", err)
	}
	if world.Target, err = r.config.Targets.Finder.Describe(ctx, p.Namespace, found.Target); err != nil {
		return world, fmt.Errorf("finding what a change of replicas would do: %w", err)
	}
	if err := r.gatherRivals(ctx, &world); err != nil {
		return world, err
	}
	return world, r.gatherFirst(ctx, &world)
}

// scaledKeys are the keys of all whose autoscalers would be rivals; before the target is found, those that the policy
// tells.
func scaledKeys(p *v1alpha1.AutoscalingPolicy, target *plan.Target) []string {
	if target == nil {
		return targetKeys(p)
	}
	var keys []string
	for _, ref := range target.Scaled {
		keys = append(keys, scaleTarget(ref.APIVersion, ref.Kind, ref.Name))
	}
	if target.Scaling != plan.BySubresource {
		keys = append(keys, scaleTarget(v1alpha1.GroupVersion().String(), v1alpha1.KindAutoscalingPolicy, p.Name))
	}
	return keys
}
