// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// consumption is what a target consumes, and the topic of its results; output is empty if that is unknown.
type consumption struct {
	topics   []string
	patterns []backlog.Pattern
	output   string
}

// has reports whether a topic, by its complete name, is an input.
func (c consumption) has(topic string) bool {
	return slices.Contains(c.topics, topic) ||
		slices.ContainsFunc(c.patterns, func(p backlog.Pattern) bool { return p.Match(topic) })
}

func (c consumption) String() string {
	names := slices.Clone(c.topics)
	for _, pattern := range c.patterns {
		names = append(names, pattern.String())
	}
	return strings.Join(names, ", ")
}

// consumed returns what the target of a policy consumes.
func (r *runner) consumed(ctx context.Context, policy *v1alpha1.AutoscalingPolicy) (consumption, error) {
	subscription, output, err := r.subscribed(ctx, policy)
	if err != nil {
		return consumption{}, err
	}
	c := consumption{topics: subscription.Topics, output: output}
	for _, text := range subscription.Patterns {
		pattern, err := backlog.ParsePattern(text)
		if err != nil {
			return consumption{}, err
		}
		c.patterns = append(c.patterns, pattern)
	}
	return c, nil
}

// subscribed returns the subscription that the policy names, or else that of its target, and the target's output.
func (r *runner) subscribed(ctx context.Context, policy *v1alpha1.AutoscalingPolicy) (subscription backlog.Subscription,
	output string, err error,
) {
	if s := policy.Spec.Subscription; s != nil {
		subscription, err = target.SubscriptionOf(s)
		return subscription, "", err
	}
	f, err := r.function(ctx, policy)
	if err != nil {
		return backlog.Subscription{}, "", err
	}
	subscription, _, err = f.Subscription()
	return subscription, f.Output, err
}

// function returns what a policy scales, from where Function Mesh or the function worker describe it.
func (r *runner) function(ctx context.Context, policy *v1alpha1.AutoscalingPolicy) (function.Function, error) {
	ref := policy.Spec.ScaleTargetRef
	if policy.Spec.PulsarFunctionRef.Name != "" {
		return r.admin.function(ctx, policy.Spec.PulsarFunctionRef)
	}
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	isMesh, isSet := kind == cluster.WorkloadGVK(cluster.KindFunctionMesh), kind == cluster.GVK(cluster.KindStatefulSet)
	if !isMesh && !isSet && !target.RunsInstances(ref) {
		return function.Function{}, errors.New("neither Function Mesh nor Pulsar's function worker runs it, " +
			"and its policy has no spec.subscription")
	}
	object := objectOf(ref, policy.Namespace)
	if err := r.Kube.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return function.Function{}, fmt.Errorf("reading %s %s: %w", ref.Kind, ref.Name, err)
	}
	switch {
	case isSet:
		return target.InstanceOf(target.Decode(object))
	case isMesh:
		entry, err := target.FindEntry(target.Decode(object), ref.Component)
		if err != nil {
			return function.Function{}, err
		}
		return meshFunction(plan.MeshChild(ref), entry.FieldsIn(object))
	default:
		return meshFunction(ref, object.Object["spec"])
	}
}

// meshFunction decodes the spec of a Function, Sink or Source of Function Mesh.
func meshFunction(ref v1alpha1.ScaleTargetRef, spec any) (function.Function, error) {
	var decoded struct {
		function.MeshSpec

		Output struct {
			Topic string `json:"topic"`
		} `json:"output"`
	}
	encoded, err := json.Marshal(spec)
	if err == nil {
		err = json.Unmarshal(encoded, &decoded)
	}
	if err != nil {
		return function.Function{}, fmt.Errorf("decoding the spec of %s %s: %w", ref.Kind, ref.Name, err)
	}
	f := decoded.Function(function.Kind(strings.ToLower(ref.Kind)), ref.Name)
	f.Output = decoded.Output.Topic
	return f, nil
}

// function reads the configuration of a function, sink or source of the function worker, through the admin service.
func (a admin) function(ctx context.Context, ref v1alpha1.PulsarFunctionRef) (function.Function, error) {
	component, _ := target.Component(ref, backlog.Cluster{}) // the worker's URL is one that pods reach
	path := fmt.Sprintf("/admin/v3/%ss/%s/%s/%s", component.Kind, component.Tenant, component.Namespace,
		url.PathEscape(component.Name))
	answer, err := a.request(ctx, call{method: http.MethodGet, path: path, accepted: []int{http.StatusOK}})
	var config function.WorkerConfig
	if err == nil {
		err = json.Unmarshal(answer, &config)
	}
	if err != nil {
		return function.Function{}, fmt.Errorf("reading it from the function worker: %w", err)
	}
	return config.Function(component.Kind)
}
