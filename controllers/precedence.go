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
)

// observePrecedence names the policy that goes first of those that scale the same target, unless it is this one. One
// that only recommends scales nothing.
func (o observer) observePrecedence(ctx context.Context, observed *plan.Observed) error {
	p := observed.Policy
	keys := target.Keys(p)
	if len(keys) == 0 {
		return nil
	}
	var list v1alpha1.AutoscalingPolicyList
	var where client.InNamespace
	if p.Spec.PulsarFunctionRef.Name == "" {
		where = client.InNamespace(p.Namespace) // what a worker runs is in none
	}
	if err := o.client.List(ctx, &list, where, client.MatchingFields{target.IndexScaleTarget: keys[0]}); err != nil {
		return fmt.Errorf("listing policies: %w", err)
	}
	first := p
	for i := range list.Items {
		other := &list.Items[i]
		if !o.targets.SameCluster(ctx, p, other) || (other.Namespace != p.Namespace && !mayScale(other)) {
			continue
		}
		if givesBackFirst(p, other) {
			observed.Restoring = other.Name
		}
		if staysToScale(other) && byRank(other, first) < 0 {
			first = other
		}
	}
	if first.Name != p.Name || first.Namespace != p.Namespace {
		observed.OlderPolicy, observed.OlderNames = first.Name, selected(p) > selected(first)
		if first.Namespace != p.Namespace {
			observed.OlderPolicy = first.Namespace + "/" + first.Name
		}
	}
	return nil
}

// staysToScale says that the policy scales and is not being deleted.
func staysToScale(p *v1alpha1.AutoscalingPolicy) bool {
	return p.Spec.Mode.IsAuto() && p.DeletionTimestamp == nil
}

// givesBackFirst says that another policy holds what it took over and is about to give it back: it is being deleted or
// refuses by now, or an AutoscalingPolicySet made it and it gives way to this one, which the user wrote.
func givesBackFirst(p, other *v1alpha1.AutoscalingPolicy) bool {
	switch {
	case other.UID == p.UID:
		return false
	case other.DeletionTimestamp != nil || selected(other) > selected(p):
		return slices.Contains(other.Finalizers, plan.Finalizer)
	default:
		return plan.MustRestore(other)
	}
}

// byRank says which of two policies on one target takes precedence: one that a user wrote before one that an
// AutoscalingPolicySet made, then the older, then by name where two are of the same second.
func byRank(a, b *v1alpha1.AutoscalingPolicy) int {
	return cmp.Or(selected(a)-selected(b), plan.ByAge(a, b))
}

// selected is 1 for a policy that an AutoscalingPolicySet made.
func selected(p *v1alpha1.AutoscalingPolicy) int {
	if plan.PolicySetOf(p) != nil {
		return 1
	}
	return 0
}

// mayScale says that a policy of another namespace counts when it comes to who goes first: it was not found that it
// cannot scale what it names, for want of credentials as a rule. Else everybody could keep functions of others from
// being scaled.
func mayScale(other *v1alpha1.AutoscalingPolicy) bool {
	return !meta.IsStatusConditionFalse(other.Status.Conditions, v1alpha1.ConditionTargetFound)
}
