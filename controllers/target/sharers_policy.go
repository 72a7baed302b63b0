// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// IndexSubscription is the index of policies by the subscription that they name.
const IndexSubscription = indexSubscription

// IndexDeclared is the function of that index.
func IndexDeclared(object client.Object) []string {
	p, ok := object.(*v1alpha1.AutoscalingPolicy)
	if !ok || p.Spec.Subscription == nil {
		return nil
	}
	subscription, _, invalid := declared(p.Spec.Subscription)
	if invalid != "" {
		return nil
	}
	return indexKeys(subscription)
}

// declaredSharers are the targets of other policies that name a subscription which the target consumes too, such as
// "Deployment media/crop". Their objects do not name it.
func (s *Sharers) declaredSharers(ctx context.Context, namespace string, target *plan.Target) ([]string, error) {
	var all []*v1alpha1.AutoscalingPolicy
	for _, key := range overlapKeys(target.Subscription) {
		var list v1alpha1.AutoscalingPolicyList
		if err := s.reader.reader.List(ctx, &list, client.MatchingFields{IndexSubscription: key},
			client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing policies by their subscription: %w", err)
		}
		for i := range list.Items {
			if p := &list.Items[i]; p.DeletionTimestamp == nil && !hasTarget(p, namespace, target.Ref) {
				all = append(all, p)
			}
		}
	}
	slices.SortFunc(all, func(a, b *v1alpha1.AutoscalingPolicy) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	var found []string
	for _, p := range all[:min(len(all), maxCandidates)] {
		if s.policyShares(ctx, p, target) {
			ref := p.Spec.ScaleTargetRef
			found = append(found, fmt.Sprintf("%s %s/%s", ref.Kind, p.Namespace, ref.Name))
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// hasTarget reports whether the policy scales that object.
func hasTarget(p *v1alpha1.AutoscalingPolicy, namespace string, ref v1alpha1.ScaleTargetRef) bool {
	own := p.Spec.ScaleTargetRef
	return p.Namespace == namespace && Key(own.APIVersion, own.Kind, own.Name) == Key(ref.APIVersion, ref.Kind, ref.Name)
}

// policyShares reports whether the policy names the target's subscription, on the same cluster.
func (s *Sharers) policyShares(ctx context.Context, p *v1alpha1.AutoscalingPolicy, target *plan.Target) bool {
	subscription, _, invalid := declared(p.Spec.Subscription)
	with := target.Subscription
	if invalid != "" || subscription.Name != with.Name || !overlap(subscription, with) {
		return false
	}
	cluster, invalid, err := s.clusters.find(ctx, p.Spec.Pulsar, types.NamespacedName{})
	return err == nil && invalid == "" && cluster.AdminURL == with.Cluster.AdminURL
}
