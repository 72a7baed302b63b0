// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	decide "github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// Target is a workload of the user with its own policy. A run publishes into Topic, and creates and deletes nothing.
// The zero value is no target.
type Target struct {
	Namespace, Kind, Name string
	// Topic is one that the target consumes.
	Topic string
}

// ErrNotConsumed means that the target does not consume the topic.
var ErrNotConsumed = errors.New("the target does not consume the topic")

// ParseTarget parses Kind/name.
func ParseTarget(text string) (Target, error) {
	kind, name, _ := strings.Cut(text, "/")
	if kind == "" || name == "" || strings.Contains(name, "/") {
		return Target{}, fmt.Errorf("--target is %q: it must be Kind/name, such as Function/resize", text)
	}
	return Target{Kind: kind, Name: name}, nil
}

func (t Target) String() string { return t.Kind + "/" + t.Name }

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

// target returns the measured workload. It rejects a topic that the target does not consume.
func (r *runner) target(ctx context.Context) (subject, error) {
	t := r.Target
	policy, err := t.policy(ctx, r.kube)
	if err != nil {
		return subject{}, err
	}
	ref := policy.Spec.ScaleTargetRef
	scaled := &unstructured.Unstructured{}
	scaled.SetAPIVersion(ref.APIVersion)
	scaled.SetKind(ref.Kind)
	if err := r.kube.Get(ctx, client.ObjectKey{Namespace: t.Namespace, Name: ref.Name}, scaled); err != nil {
		return subject{}, fmt.Errorf("reading %s: %w", t, err)
	}
	consumed, err := consumptionOf(policy, scaled)
	if err != nil {
		return subject{}, fmt.Errorf("reading what %s consumes: %w", t, err)
	}
	topic := backlog.CompleteTopicName(t.Topic)
	if !consumed.has(topic) {
		return subject{}, fmt.Errorf("%w: --i-know-this-publishes-into is %q, and %s consumes %s", ErrNotConsumed, t.Topic, t,
			consumed)
	}
	if err := r.admin.check(ctx, topic); err != nil { // the producer would create a missing one
		return subject{}, err
	}
	objective := decide.LatencyObjective(policy.Spec)
	s := subject{
		name: t.String(), run: r.id, input: topic, isTarget: true, scaled: scaled,
		policy: client.ObjectKeyFromObject(policy), objective: objective,
		setting: fmt.Sprintf("AutoscalingPolicy %s in mode %s, latencyObjective %s, %d to %d replicas, input %s", policy.Name,
			policy.Spec.Mode, objective, ptr.Deref(policy.Spec.MinReplicas, 1), policy.Spec.MaxReplicas, topic),
	}
	if output := backlog.CompleteTopicName(consumed.output); consumed.output != "" && r.admin.check(ctx, output) == nil {
		s.output = output
		s.setting += ", output " + output
	}
	return s, nil
}

// policy returns the policy that scales the target.
func (t Target) policy(ctx context.Context, kube client.Client) (*v1alpha1.AutoscalingPolicy, error) {
	var list v1alpha1.AutoscalingPolicyList
	err := kube.List(ctx, &list, client.InNamespace(t.Namespace))
	switch {
	case meta.IsNoMatchError(err):
		return nil, errors.New("the cluster has no AutoscalingPolicy: install pulsar-autoscaler")
	case err != nil:
		return nil, fmt.Errorf("listing policies of namespace %s: %w", t.Namespace, err)
	}
	for i := range list.Items {
		ref := list.Items[i].Spec.ScaleTargetRef
		if strings.EqualFold(ref.Kind, t.Kind) && ref.Name == t.Name {
			return &list.Items[i], nil
		}
	}
	return nil, fmt.Errorf("no AutoscalingPolicy of namespace %s has %s as scaleTargetRef: create one, or name another "+
		"namespace with --namespace", t.Namespace, t)
}

// consumptionOf reads the policy, or else the spec of a Function or Sink.
func consumptionOf(policy *v1alpha1.AutoscalingPolicy, scaled *unstructured.Unstructured) (consumption, error) {
	if s := policy.Spec.Subscription; s != nil {
		return named(*s)
	}
	kinds := map[string]function.Kind{"Function": function.KindFunction, "Sink": function.KindSink}
	kind, known := kinds[scaled.GetKind()]
	if !known || scaled.GroupVersionKind().Group != functions().Group {
		return consumption{}, errors.New("it is no Function or Sink of Function Mesh, " +
			"and its policy has no spec.subscription")
	}
	var spec struct {
		function.MeshSpec

		Output struct {
			Topic string `json:"topic"`
		} `json:"output"`
	}
	encoded, err := json.Marshal(scaled.Object["spec"])
	if err == nil {
		err = json.Unmarshal(encoded, &spec)
	}
	if err != nil {
		return consumption{}, fmt.Errorf("decoding its spec: %w", err)
	}
	subscription, _, err := spec.Function(kind, scaled.GetName()).Subscription()
	if err != nil {
		return consumption{}, err
	}
	c := consumption{topics: subscription.Topics, output: spec.Output.Topic}
	for _, text := range subscription.Patterns {
		pattern, err := backlog.ParsePattern(text)
		if err != nil {
			return consumption{}, err
		}
		c.patterns = append(c.patterns, pattern)
	}
	return c, nil
}

// named reads the subscription of a policy.
func named(s v1alpha1.Subscription) (c consumption, err error) {
	for _, topic := range s.Topics {
		c.topics = append(c.topics, backlog.CompleteTopicName(string(topic)))
	}
	if s.TopicsPattern == "" {
		return c, nil
	}
	pattern, err := backlog.ParsePattern(s.TopicsPattern)
	c.patterns = []backlog.Pattern{pattern}
	return c, err
}
