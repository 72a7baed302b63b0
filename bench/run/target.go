// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
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
	decide "github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/plan"
)

// Target is a workload of the user with its own policy. A run publishes into Topic, and creates and deletes nothing.
// The zero value is no target.
type Target struct {
	// Namespace is that of the policy.
	Namespace string
	// Name is what the policy scales, as in its status.target. Upper and lower case are the same.
	Name string
	// Topic is one that the target consumes.
	Topic string
}

// ErrNotConsumed means that the target does not consume the topic.
var ErrNotConsumed = errors.New("the target does not consume the topic")

// target returns the measured workload. It rejects a topic that the target does not consume.
func (r *runner) target(ctx context.Context) (subject, error) {
	t := r.Target
	policy, err := t.policy(ctx, r.Kube)
	if err != nil {
		return subject{}, err
	}
	consumed, err := r.consumed(ctx, policy)
	if err != nil {
		return subject{}, fmt.Errorf("reading what %s consumes: %w", t.Name, err)
	}
	topic := backlog.CompleteTopicName(t.Topic)
	if !consumed.has(topic) {
		return subject{}, fmt.Errorf("%w: --i-know-this-publishes-into is %q, and %s consumes %s", ErrNotConsumed, t.Topic,
			t.Name, consumed)
	}
	if err := r.admin.check(ctx, topic); err != nil { // the producer would create a missing one
		return subject{}, err
	}
	objective := decide.LatencyObjective(policy.Spec)
	s := subject{
		name: plan.ShortName(policy.Spec), run: r.id, input: topic, isTarget: true, objective: objective,
		stages: []stage{{input: topic, scaled: scaledBy(policy), policy: client.ObjectKeyFromObject(policy)}},
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
	var others []string
	for i := range list.Items {
		name := plan.ShortName(list.Items[i].Spec)
		if strings.EqualFold(name, t.Name) {
			return &list.Items[i], nil
		}
		others = append(others, name)
	}
	return nil, fmt.Errorf("--target is %q, and no AutoscalingPolicy of namespace %s scales that: create one, or name "+
		"another target or --namespace; targets there: %s", t.Name, t.Namespace, listed(others))
}

// listed shows some of the names.
func listed(names []string) string {
	slices.Sort(names)
	return cmp.Or(plan.Enumerate(names, 10, ", "), "none")
}

// scaledBy returns the object with the replicas of a policy's target; nil if the function worker has them.
func scaledBy(policy *v1alpha1.AutoscalingPolicy) *unstructured.Unstructured {
	ref := policy.Spec.ScaleTargetRef
	switch {
	case policy.Spec.PulsarFunctionRef.Name != "":
		return nil
	case ref.Component.Name != "":
		ref = plan.MeshChild(ref)
	}
	return objectOf(ref, policy.Namespace)
}

// objectOf returns an object with the identity of a reference.
func objectOf(ref v1alpha1.ScaleTargetRef, namespace string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(ref.APIVersion)
	object.SetKind(ref.Kind)
	object.SetNamespace(namespace)
	object.SetName(ref.Name)
	return object
}
