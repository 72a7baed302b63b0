// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// declared is the subscription that a policy names, without a cluster yet, or a plan.Violation.
func declared(s *v1alpha1.Subscription) (backlog.Subscription, backlog.SubscriptionType, error) {
	var topics []string
	for _, topic := range s.Topics {
		topics = append(topics, string(topic))
	}
	subscription := backlog.NewSubscription(backlog.Cluster{}, s.Name, topics...)
	kind := backlog.SubscriptionType(cmp.Or(s.Type, v1alpha1.SubscriptionShared))
	if s.TopicsPattern != "" {
		pattern, err := backlog.ParsePattern(s.TopicsPattern)
		if err != nil {
			return backlog.Subscription{}, kind, Invalidf("spec.subscription.topicsPattern: %s", err)
		}
		subscription = subscription.WithPatterns(pattern)
	}
	return subscription, kind, nil
}

// SubscriptionOf is the subscription that a policy names, without a cluster, or a plan.Violation.
func SubscriptionOf(s *v1alpha1.Subscription) (backlog.Subscription, error) {
	subscription, _, err := declared(s)
	return subscription, err
}

// Declared is the subscription that a policy names, with its cluster. A plan.Violation is what the user has to fix, any
// other is worth a retry. It reads the target only when that may name its Pulsar: a Function, Sink or Source.
func (f *Finder) Declared(ctx context.Context, namespace string, spec v1alpha1.AutoscalingPolicySpec) (
	backlog.Subscription, error,
) {
	if RunsInstances(spec.ScaleTargetRef) {
		found, err := f.Find(ctx, namespace, spec)
		if err != nil {
			return backlog.Subscription{}, err
		}
		return Consumed(found, namespace, spec)
	}
	subscription, err := SubscriptionOf(spec.Subscription)
	if err != nil {
		return backlog.Subscription{}, err
	}
	subscription.Cluster, err = f.clusters.resolve(ctx, namespace, PulsarSpec{}, spec.Pulsar)
	return subscription, err
}

// Consumed is the subscription of the target that the policy names, or a problem if there is none.
func Consumed(found *plan.Target, namespace string, spec v1alpha1.AutoscalingPolicySpec) (backlog.Subscription, error) {
	if found == nil {
		return backlog.Subscription{}, Invalidf("%s does not exist in namespace %s", plan.Name(spec), namespace)
	}
	return found.Subscription, nil
}

// RunsInstances reports whether the object is a Function, Sink or Source of Function Mesh.
func RunsInstances(ref v1alpha1.ScaleTargetRef) bool {
	return v1alpha1.IsWorkload(ref.Kind) &&
		schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind) == cluster.WorkloadGVK(ref.Kind)
}

// isKind reports whether the object is of a kind of Kubernetes that the cache may have.
func isKind(ref v1alpha1.ScaleTargetRef, kind string) bool {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind) == cluster.GVK(kind)
}

// consumer finds any object with a scale subresource. The policy names its subscription.
func (f *Finder) consumer(ctx context.Context, namespace string, spec v1alpha1.AutoscalingPolicySpec) (*plan.Target,
	error,
) {
	target, err := f.scalable(ctx, namespace, spec.ScaleTargetRef)
	if err != nil || target == nil || target.Owner != "" {
		return target, err
	}
	subscription, err := f.Declared(ctx, namespace, spec)
	if err == nil {
		target.Subscription = subscription
		_, target.SubscriptionType, _ = declared(spec.Subscription)
	}
	return target, err
}

// scalable finds an object with a scale subresource: Deployments and StatefulSets in the cache, if the adapter may list
// them, and all others at the API server.
func (f *Finder) scalable(ctx context.Context, namespace string, ref v1alpha1.ScaleTargetRef) (*plan.Target, error) {
	for _, kind := range []string{cluster.KindDeployment, cluster.KindStatefulSet} {
		if isKind(ref, kind) && f.reader.Installed(kind) {
			return f.reader.cached(ctx, kind, namespace, ref)
		}
	}
	return f.scales.find(ctx, namespace, ref)
}

func (r *Reader) cached(ctx context.Context, kind, namespace string, ref v1alpha1.ScaleTargetRef) (*plan.Target,
	error,
) {
	object, err := r.Object(ctx, kind, namespace, ref.Name)
	if err != nil || object == nil {
		return nil, err
	}
	target := newScaled(ref, string(object.UID))
	target.Owner = ControllerOf(object)
	if object.invalid != nil {
		return target, Invalidf("%s", object.invalid)
	}
	target.PodSelector = object.pods.selector
	target.Replicas, target.Reported = object.pods.replicas, cmp.Or(object.pods.reported, new(int32))
	return target, nil
}

func newScaled(ref v1alpha1.ScaleTargetRef, uid string) *plan.Target {
	return &plan.Target{
		Ref: ref, Scaling: plan.BySubresource, Scaled: []v1alpha1.ScaleTargetRef{ref}, UID: uid,
	}
}
