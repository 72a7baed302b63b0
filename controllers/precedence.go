// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/set"
)

// observePrecedence records the policy that takes precedence on the same target, unless it is this one. Policies that
// only recommend do not count.
func (o observer) observePrecedence(ctx context.Context, p *v1alpha1.AutoscalingPolicy, found *plan.Autoscalers) error {
	keys := target.Keys(p)
	if len(keys) == 0 {
		return nil
	}
	var list v1alpha1.AutoscalingPolicyList
	var where client.InNamespace
	if p.Spec.PulsarFunctionRef.Name == "" {
		where = client.InNamespace(p.Namespace) // a function of a worker belongs to no namespace
	}
	if err := o.config.Client.List(ctx, &list, where, client.MatchingFields{target.IndexScaleTarget: keys[0]},
		client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing policies: %w", err)
	}
	first := p
	for i := range list.Items {
		other := o.latest(&list.Items[i])
		if !o.config.Targets.SameWorker(ctx, p, other) || (other.Namespace != p.Namespace && !mayScale(other)) {
			continue
		}
		if restoresFirst(p, other) {
			found.Restoring = other.Name
		}
		if staysToScale(other) && byRank(other, first) < 0 {
			first = other
		}
	}
	if first.Name != p.Name || first.Namespace != p.Namespace {
		found.OlderPolicy, found.OlderNames = first.Name, selected(p) > selected(first)
		if first.Namespace != p.Namespace {
			found.OlderPolicy = first.Namespace + "/" + first.Name
		}
	}
	return nil
}

func staysToScale(p *v1alpha1.AutoscalingPolicy) bool {
	return p.Spec.Mode.IsAuto() && p.DeletionTimestamp == nil
}

// restoresFirst reports whether another policy has suspended autoscalers and is about to restore them: it is being
// deleted, no longer takes over, or an AutoscalingPolicySet created it and it defers to this policy of a user.
func restoresFirst(p, other *v1alpha1.AutoscalingPolicy) bool {
	switch {
	case other.UID == p.UID:
		return false
	case other.DeletionTimestamp != nil || selected(other) > selected(p):
		return slices.Contains(other.Finalizers, plan.Finalizer)
	default:
		return plan.MustRestore(other)
	}
}

// byRank orders policies on one target by precedence: those of users before those of AutoscalingPolicySets, then by
// age, then by name.
func byRank(a, b *v1alpha1.AutoscalingPolicy) int {
	return cmp.Or(selected(a)-selected(b), set.ByAge(a, b))
}

// selected is 1 for a policy of an AutoscalingPolicySet.
func selected(p *v1alpha1.AutoscalingPolicy) int {
	if set.Of(p) != nil {
		return 1
	}
	return 0
}

// mayScale reports whether a policy of another namespace counts for precedence: one that cannot scale its target,
// usually for lack of credentials, does not. Otherwise any tenant could block the policies of others.
func mayScale(other *v1alpha1.AutoscalingPolicy) bool {
	return !meta.IsStatusConditionFalse(other.Status.Conditions, v1alpha1.ConditionTargetFound)
}
