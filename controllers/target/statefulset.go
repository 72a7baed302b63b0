// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

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

func (s statefulSet) instance() (function.Function, error) {
	f, err := s.decode()
	switch {
	case err != nil:
		return f, fmt.Errorf("%w: use scaleTargetRef for StatefulSets that Pulsar's function worker created", err)
	case !f.RunsAs(s.Metadata.Name):
		return f, fmt.Errorf("it runs %s, and Pulsar's function worker names its StatefulSet %s: use that one",
			f.FullName(), function.StatefulSetName(f.Tenant, f.Namespace, f.Name))
	default:
		return f, nil
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
	target := newScaled(ref, string(object.GetUID()))
	target.Owner = ControllerOf(object)
	s, err := decodeStatefulSet(object.Object)
	if err != nil {
		return target, Invalidf("%s", err)
	}
	target.Replicas = s.Spec.Replicas
	if target.Owner == "" {
		err = f.complete(ctx, target, s, spec.Pulsar)
	}
	return target, err
}

func (f *Finder) complete(ctx context.Context, target *plan.Target, s statefulSet,
	connection *v1alpha1.PulsarConnection,
) error {
	var subscription backlog.Subscription
	var subscriptionType backlog.SubscriptionType
	runs, err := s.instance()
	if err == nil {
		subscription, subscriptionType, err = runs.Subscription()
	}
	if err != nil {
		return Invalidf("StatefulSet %s cannot be scaled: %s", s.Metadata.Name, err)
	}
	target.Component, target.NeverAcknowledges = runs.FullName(), runs.NeverAcknowledges
	target.NeverZero, target.Output = runs.Kind == function.KindSource, outputName(runs.Output)
	subscription.Cluster, err = f.clusters.resolve(ctx, s.Metadata.Namespace, PulsarSpec{}, connection)
	if err != nil {
		return err
	}
	if f.instanceMetrics == PodInstanceMetrics && s.scrapable() {
		subscription.Workload = backlog.Object{
			Kind: cluster.KindStatefulSet, Namespace: s.Metadata.Namespace, Name: s.Metadata.Name,
		}
	}
	target.SubscriptionType, target.Subscription = subscriptionType, subscription
	return nil
}

// IsOfWorker reports whether a function worker may have created the StatefulSet. Only decode is certain. It decodes no
// more than the commands, because it runs for many objects.
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
		return Invalidf("StatefulSet %s is controlled by %s: request the metrics of that", object.GetName(), owner)
	default:
		return Invalidf("Pulsar's function worker did not create StatefulSet %s: %s", object.GetName(),
			function.ErrNoInstance)
	}
}
