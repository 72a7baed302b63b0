// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// Finder finds what a policy scales. It is safe for concurrent use.
type Finder struct {
	reader          *Reader
	clusters        *clusters
	workers         *Workers
	scales          *scales
	instanceMetrics InstanceMetrics
	// waits is true if Find waits for function workers.
	waits bool
}

// Found is the result of a search for a target.
type Found struct {
	// Target is nil when it does not exist.
	Target *plan.Target
	// Unsupported is why the kind cannot be scaled; empty when it can.
	Unsupported string
}

// Find returns what a policy in the namespace scales: the target and the connection of its spec. Found says what the
// user has to fix; an error is worth a retry.
func (f *Finder) Find(ctx context.Context, namespace string, spec v1alpha1.AutoscalingPolicySpec) (Found, error) {
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
		return Found{Unsupported: fmt.Sprintf(
			"kind %s of %s does not say what it consumes: use %s, %s, %s or %s of %s, or StatefulSet of apps/v1, or set "+
				"spec.subscription",
			ref.Kind, ref.APIVersion, cluster.KindFunction, cluster.KindSink, cluster.KindSource, cluster.KindFunctionMesh,
			cluster.WorkloadGVK(cluster.KindFunction).GroupVersion(),
		)}, nil
	}
}

// workload finds a Function, Sink or Source.
func (f *Finder) workload(ctx context.Context, namespace string, spec v1alpha1.AutoscalingPolicySpec) (Found, error) {
	ref := spec.ScaleTargetRef
	kind := ref.Kind
	if !f.reader.Installed(kind) {
		return Found{Unsupported: NotInstalled(kind)}, nil
	}
	object := cluster.NewUnstructured(kind)
	err := f.reader.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, object)
	switch {
	case meta.IsNoMatchError(err):
		return Found{Unsupported: NotInstalled(kind)}, nil
	case apierrors.IsNotFound(err):
		return Found{}, nil
	case err != nil:
		return Found{}, fmt.Errorf("reading %s %s/%s: %w", kind, namespace, ref.Name, err)
	}
	target, err := f.target(ctx, object.Object, ref, spec)
	if err != nil {
		return Found{}, err
	}
	return Found{Target: target}, nil
}

// NotInstalled says that a kind of Function Mesh does not exist, with the fix.
func NotInstalled(kind string) string {
	return fmt.Sprintf("kind %s of %s is not installed in this cluster: "+
		"install Function Mesh (the adapter notices within %s)", kind,
		cluster.WorkloadGVK(kind).GroupVersion(), cluster.DiscoveryInterval)
}

// target decodes an object and adds its subscription. The subscription of the policy takes precedence.
func (f *Finder) target(ctx context.Context, object map[string]any, ref v1alpha1.ScaleTargetRef,
	spec v1alpha1.AutoscalingPolicySpec,
) (*plan.Target, error) {
	w, err := decodeWorkload(ref.Kind, object)
	if err != nil {
		return &plan.Target{Ref: ref, Invalid: err.Error()}, nil //nolint:nilerr // the user's mistake, shown in a condition
	}
	target := w.target(ref)
	subscription, subscriptionType, err := w.consumed(spec.Subscription)
	if err != nil {
		target.Invalid = err.Error()
		return &target, nil //nolint:nilerr // shown in a condition
	}
	cluster, invalid, err := f.clusters.resolve(ctx, w, spec.Pulsar)
	if err != nil {
		return nil, err
	}
	target.Invalid = invalid
	if invalid == "" {
		target.SubscriptionType, target.Subscription = subscriptionType, subscription
		target.Subscription.Cluster = cluster
		if f.instanceMetrics == PodInstanceMetrics {
			target.Subscription.Workload = WorkloadKey(w.Kind, w.Metadata.Namespace, w.Metadata.Name)
		}
	}
	return &target, nil
}
