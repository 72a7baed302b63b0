// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// statefulSet has the fields of a StatefulSet that scaling needs.
type statefulSet struct {
	Metadata workloadMetadata `json:"metadata"`
	Spec     statefulSetSpec  `json:"spec"`
}

type statefulSetSpec struct {
	Replicas *int32      `json:"replicas"`
	Template podTemplate `json:"template"`
}

type podTemplate struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Containers []container `json:"containers"`
	} `json:"spec"`
}

type container struct {
	Command []string `json:"command"`
	Args    []string `json:"args"`
}

func (c container) all() []string { return slices.Concat(c.Command, c.Args) }

func decodeStatefulSet(object map[string]any) (statefulSet, error) {
	var s statefulSet
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &s); err != nil {
		return statefulSet{}, fmt.Errorf("decoding StatefulSet: %w", err)
	}
	return s, nil
}

// instance decodes the function that the pods run. invalid completes "StatefulSet x cannot be scaled: ".
func (s statefulSet) instance() (f function.Function, invalid string) {
	f, err := s.decode()
	switch {
	case err != nil:
		return f, err.Error() + ": use scaleTargetRef for StatefulSets that Pulsar's function worker created"
	case !f.RunsAs(s.Metadata.Name):
		return f, fmt.Sprintf("it runs %s, and Pulsar's function worker names its StatefulSet %s: use that one",
			f.FullName(), function.StatefulSetName(f.Tenant, f.Namespace, f.Name))
	default:
		return f, ""
	}
}

// decode reads the first container that runs an instance: a sidecar may come before it.
func (s statefulSet) decode() (function.Function, error) {
	for _, c := range s.Spec.Template.Spec.Containers {
		if function.StartsInstance(c.all()) {
			return function.DecodeCommand(c.all())
		}
	}
	return function.Function{}, function.ErrNoInstance
}

// InstanceOf is the function that the pods of a StatefulSet run.
func InstanceOf(object *unstructured.Unstructured) (function.Function, error) {
	s, err := decodeStatefulSet(object.Object)
	if err != nil {
		return function.Function{}, err
	}
	return s.decode()
}

// scrapable reports whether instances serve metrics: a worker without a metricsPort annotates no pod.
func (s statefulSet) scrapable() bool {
	return s.Spec.Template.Metadata.Annotations[cluster.AnnotationPort] != ""
}

// statefulSet finds a StatefulSet that Pulsar's function worker created.
func (f *Finder) statefulSet(ctx context.Context, namespace string, spec v1alpha1.AutoscalingPolicySpec) (Found,
	error,
) {
	ref := spec.ScaleTargetRef
	if !f.reader.Installed(cluster.KindStatefulSet) {
		return Found{}, notRead(cluster.KindStatefulSet)
	}
	object := cluster.NewUnstructured(cluster.KindStatefulSet)
	err := f.reader.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: ref.Name}, object)
	switch {
	case apierrors.IsNotFound(err):
		return Found{}, nil
	case err != nil:
		return Found{}, fmt.Errorf("reading StatefulSet %s/%s: %w", namespace, ref.Name, err)
	}
	target := plan.Target{
		Ref: ref, Scaling: plan.BySubresource, Scaled: []v1alpha1.ScaleTargetRef{ref},
		Owner: ControllerOf(object), UID: string(object.GetUID()),
	}
	s, err := decodeStatefulSet(object.Object)
	if err != nil {
		target.Invalid = err.Error()
		return Found{Target: &target}, nil //nolint:nilerr // shown in a condition
	}
	target.Replicas = s.Spec.Replicas
	if target.Owner == "" {
		err = f.complete(ctx, &target, s, spec.Pulsar)
	}
	return Found{Target: &target}, err
}

// complete adds what the pods consume, and the cluster.
func (f *Finder) complete(ctx context.Context, target *plan.Target, s statefulSet,
	connection *v1alpha1.PulsarConnection,
) error {
	refuse := func(why string) {
		target.Invalid = fmt.Sprintf("StatefulSet %s cannot be scaled: %s", s.Metadata.Name, why)
	}
	runs, invalid := s.instance()
	if invalid != "" {
		refuse(invalid)
		return nil
	}
	subscription, subscriptionType, err := runs.Subscription()
	if err != nil {
		refuse(err.Error())
		return nil
	}
	target.Component, target.NeverAcknowledges = runs.FullName(), runs.NeverAcknowledges
	target.NeverZero, target.Output = runs.Kind == function.KindSource, outputName(runs.Output)
	if f.clusters.defaultURL == "" && (connection == nil || connection.AdminURL == "") {
		refuse("the admin URL of its Pulsar cluster is unknown: set spec.pulsar.adminURL of the policy, or " +
			"--pulsar-admin-url of the adapter (value pulsar.adminURL of the chart)")
		return nil
	}
	pulsar, invalid, err := f.clusters.resolve(ctx, workload{Metadata: s.Metadata}, connection)
	if err != nil || invalid != "" {
		target.Invalid = invalid
		return err
	}
	target.SubscriptionType, target.Subscription = subscriptionType, subscription
	target.Subscription.Cluster = pulsar
	if f.instanceMetrics == PodInstanceMetrics && s.scrapable() {
		target.Subscription.Workload = WorkloadKey(cluster.KindStatefulSet, s.Metadata.Namespace, s.Metadata.Name)
	}
	return nil
}

// isOfWorker reports whether a function worker may have created the StatefulSet. Only decode is certain.
func (s statefulSet) isOfWorker() bool {
	for _, owner := range s.Metadata.OwnerReferences {
		if owner.Controller != nil && *owner.Controller {
			return false
		}
	}
	return slices.ContainsFunc(
		s.Spec.Template.Spec.Containers,
		func(c container) bool { return function.StartsInstance(c.all()) },
	)
}

// IsOfWorker is isOfWorker for a cached object. It decodes no more than the commands, because it runs for many objects.
func IsOfWorker(object *unstructured.Unstructured) bool {
	if ControllerOf(object) != "" {
		return false
	}
	value, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "template", "spec", "containers")
	containers, _ := value.([]any)
	return slices.ContainsFunc(containers, func(one any) bool {
		fields, _ := one.(map[string]any)
		for _, key := range []string{"command", "args"} {
			parts, _ := fields[key].([]any)
			for _, part := range parts {
				if text, ok := part.(string); ok && function.StartsInstance([]string{text}) {
					return true
				}
			}
		}
		return false
	})
}

// measurable fails for a StatefulSet that has no signals of its own, and names the object that has them.
func measurable(object *unstructured.Unstructured) error {
	owner := ControllerOf(object)
	switch {
	case IsOfWorker(object):
		return nil
	case owner != "":
		return InvalidError(fmt.Sprintf("StatefulSet %s is controlled by %s: request the metrics of that",
			object.GetName(), owner))
	default:
		return InvalidError(fmt.Sprintf("Pulsar's function worker did not create StatefulSet %s: %s", object.GetName(),
			function.ErrNoInstance))
	}
}
