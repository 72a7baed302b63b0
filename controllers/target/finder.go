// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// Finder finds what a policy scales. It is safe for concurrent use.
type Finder struct {
	reader   *Reader
	clusters *clusters
	workers  *Workers
	scales   *scales
	// waits is true if Find waits for function workers.
	waits bool
}

// Find returns what a policy in the namespace scales: the target and the connection of its spec. The target is nil if
// it does not exist. With a plan.Violation it has what is known; any other error is worth a retry.
func (f *Finder) Find(ctx context.Context, namespace string, spec v1alpha1.AutoscalingPolicySpec) (*plan.Target,
	error,
) {
	ref := spec.ScaleTargetRef
	switch kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind); {
	case spec.PulsarFunctionRef.Name != "":
		return f.workerFunction(ctx, namespace, spec)
	case RunsInstances(ref):
		return f.workload(ctx, namespace, spec)
	case kind == cluster.WorkloadGVK(cluster.KindFunctionMesh):
		return f.meshComponent(ctx, namespace, spec)
	case spec.Subscription != nil:
		return f.consumer(ctx, namespace, spec)
	case kind == cluster.GVK(cluster.KindStatefulSet):
		return f.statefulSet(ctx, namespace, spec)
	default:
		return nil, unsupported(
			"kind %s of %s does not say what it consumes: use %s, %s, %s or %s of %s, or StatefulSet of apps/v1, or set "+
				"spec.subscription",
			ref.Kind, ref.APIVersion, cluster.KindFunction, cluster.KindSink, cluster.KindSource, cluster.KindFunctionMesh,
			cluster.WorkloadGVK(cluster.KindFunction).GroupVersion(),
		)
	}
}

func (f *Finder) workload(ctx context.Context, namespace string, spec v1alpha1.AutoscalingPolicySpec) (*plan.Target,
	error,
) {
	ref := spec.ScaleTargetRef
	if !f.reader.Installed(ref.Kind) {
		return nil, notInstalled(ref.Kind)
	}
	object, err := f.reader.Object(ctx, ref.Kind, namespace, ref.Name)
	switch {
	case meta.IsNoMatchError(err):
		return nil, notInstalled(ref.Kind)
	case err != nil || object == nil:
		return nil, err
	}
	return f.target(ctx, object, ref, spec)
}

func unsupported(format string, args ...any) error {
	return plan.TargetProblem(v1alpha1.ReasonTargetKindUnsupported, format, args...)
}

// isUnsupported reports whether a kind cannot be scaled, so that there is no target.
func isUnsupported(err error) bool {
	var problem *plan.Violation
	return errors.As(err, &problem) && problem.Reason == v1alpha1.ReasonTargetKindUnsupported
}

// notInstalled says that a kind of Function Mesh does not exist, with the fix.
func notInstalled(kind string) error {
	return unsupported("kind %s of %s is not installed in this cluster: install Function Mesh (the adapter notices "+
		"within %s)", kind, cluster.WorkloadGVK(kind).GroupVersion(), cluster.DiscoveryInterval)
}

// target describes an object with its subscription. The subscription of the policy takes precedence.
func (f *Finder) target(ctx context.Context, object *Cached, ref v1alpha1.ScaleTargetRef,
	spec v1alpha1.AutoscalingPolicySpec,
) (*plan.Target, error) {
	if object.invalid != nil {
		return &plan.Target{Ref: ref}, Invalidf("%s", object.invalid)
	}
	target := object.target(ref)
	subscription, subscriptionType, err := object.consumed(spec.Subscription)
	if err != nil {
		return &target, Invalidf("%s", err)
	}
	subscription.Cluster, err = f.clusters.resolve(ctx, object.Namespace, object.workload.Pulsar, spec.Pulsar)
	if err != nil {
		return &target, err
	}
	subscription.Workload = backlog.Object{Kind: object.Kind, Namespace: object.Namespace, Name: object.Name}
	target.SubscriptionType, target.Subscription = subscriptionType, subscription
	return &target, nil
}
