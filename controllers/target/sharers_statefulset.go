// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// indexStatefulSet is indexWorkload for StatefulSets: only those of the function worker have keys.
func indexStatefulSet(object client.Object) []string {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	_, subscription, ok := consumedBySet(u)
	if !ok {
		return nil
	}
	return indexKeys(subscription)
}

// consumedBySet is what a StatefulSet of the function worker runs and consumes; not ok for any other, and when its
// command cannot be decoded.
func consumedBySet(object *unstructured.Unstructured) (f function.Function, consumed backlog.Subscription, ok bool) {
	if !IsOfWorker(object) {
		return f, consumed, false
	}
	s, err := decodeStatefulSet(object.Object)
	if err != nil {
		return f, consumed, false
	}
	f, invalid := s.instance()
	if invalid != "" {
		return f, consumed, false
	}
	consumed, _, err = f.Subscription()
	return f, consumed, err == nil
}

// setShares is shares for StatefulSets. They do not name their Pulsar, so the policy that scales one does. A
// StatefulSet in another namespace may run the target's own function: that one is no other consumer.
func (s *Sharers) setShares(ctx context.Context, object *unstructured.Unstructured, target *plan.Target) bool {
	f, subscription, ok := consumedBySet(object)
	with := target.Subscription
	if !ok || subscription.Name != with.Name || !overlap(subscription, with) ||
		target.Scaling == plan.ByWorker && f.FullName() == target.Component {
		return false
	}
	connection, err := ConnectionOf(ctx, s.reader.reader, object.GetNamespace(), v1alpha1.ScaleTargetRef{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(), Name: object.GetName(),
	})
	if err != nil {
		return false
	}
	cluster, _, err := s.clusters.find(ctx, connection, types.NamespacedName{})
	return err == nil && cluster.AdminURL == with.Cluster.AdminURL
}
