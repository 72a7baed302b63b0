// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"slices"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// instance is what the pods of a StatefulSet run.
type instance struct {
	function function.Function
	// invalid is why it is unknown, although a command may be that of an instance.
	invalid error
	// scrapable is false if instances serve no metrics: a worker without a metricsPort annotates no pod.
	scrapable bool
}

type container struct {
	Command []string `json:"command"`
	Args    []string `json:"args"`
}

// decodeInstance reads the first container that runs an instance: a sidecar may come before it. It is nil if none does.
func decodeInstance(template podTemplate) *instance {
	for _, c := range template.Spec.Containers {
		if command := slices.Concat(c.Command, c.Args); function.StartsInstance(command) {
			f, err := function.DecodeCommand(command)
			return &instance{f, err, template.Metadata.Annotations[cluster.AnnotationPort] != ""}
		}
	}
	return nil
}

// InstanceOf is the function that the pods of a StatefulSet run.
func InstanceOf(set *Cached) (function.Function, error) {
	switch {
	case set.invalid != nil:
		return function.Function{}, set.invalid
	case !isOfWorker(set):
		return function.Function{}, function.ErrNoInstance
	default:
		return set.pods.instance.function, set.pods.instance.invalid
	}
}

// runs is the function of a StatefulSet that can be scaled.
func runs(set *Cached) (function.Function, error) {
	f, err := InstanceOf(set)
	switch {
	case err != nil:
		return f, fmt.Errorf("%w: use scaleTargetRef for StatefulSets that Pulsar's function worker created", err)
	case !f.RunsAs(set.Name):
		return f, fmt.Errorf("it runs %s, and Pulsar's function worker names its StatefulSet %s: use that one",
			f.FullName(), function.StatefulSetName(f.Tenant, f.Namespace, f.Name))
	default:
		return f, nil
	}
}

// statefulSet finds a StatefulSet that Pulsar's function worker created.
func (f *Finder) statefulSet(ctx context.Context, namespace string, spec v1alpha1.AutoscalingPolicySpec) (*plan.Target,
	error,
) {
	ref := spec.ScaleTargetRef
	if !f.reader.Installed(cluster.KindStatefulSet) {
		return nil, notRead(cluster.KindStatefulSet)
	}
	object, err := f.reader.Object(ctx, cluster.KindStatefulSet, namespace, ref.Name)
	if err != nil || object == nil {
		return nil, err
	}
	target := newScaled(ref, string(object.UID))
	target.Owner = ControllerOf(object)
	if object.invalid != nil {
		return target, Invalidf("%s", object.invalid)
	}
	target.Replicas = object.pods.replicas
	if target.Owner == "" {
		err = f.complete(ctx, target, object, spec.Pulsar)
	}
	return target, err
}

func (f *Finder) complete(ctx context.Context, target *plan.Target, set *Cached,
	connection *v1alpha1.PulsarConnection,
) error {
	var subscription backlog.Subscription
	var subscriptionType backlog.SubscriptionType
	runs, err := runs(set)
	if err == nil {
		subscription, subscriptionType, err = runs.Subscription()
	}
	if err != nil {
		return Invalidf("StatefulSet %s cannot be scaled: %s", set.Name, err)
	}
	target.Component, target.NeverAcknowledges = runs.FullName(), runs.NeverAcknowledges
	target.NeverZero, target.Output = runs.Kind == function.KindSource, outputName(runs.Output)
	subscription.Cluster, err = f.clusters.resolve(ctx, set.Namespace, PulsarSpec{}, connection)
	if err != nil {
		return err
	}
	if set.pods.instance.scrapable {
		subscription.Workload = backlog.Object{Kind: set.Kind, Namespace: set.Namespace, Name: set.Name}
	}
	target.SubscriptionType, target.Subscription = subscriptionType, subscription
	return nil
}

// isOfWorker reports whether a function worker may have created the StatefulSet. Only InstanceOf is certain.
func isOfWorker(set *Cached) bool { return set.pods != nil && set.pods.instance != nil }

// measurable fails for a StatefulSet that has no signals of its own, and names the object that has them.
func measurable(object *Cached) error {
	owner := ControllerOf(object)
	switch {
	case isOfWorker(object):
		return nil
	case owner != "":
		return Invalidf("StatefulSet %s is controlled by %s: request the metrics of that", object.Name, owner)
	default:
		return Invalidf("Pulsar's function worker did not create StatefulSet %s: %s", object.Name,
			function.ErrNoInstance)
	}
}
