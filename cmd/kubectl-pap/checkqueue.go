// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	decide "github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy/report"
)

// defaultQueue is receiverQueueSize of Pulsar's clients where it is not set.
const defaultQueue = 1000

// receiveQueue compares the work in a full receive queue with the objective: another replica cannot take messages from
// it.
func (c checker) receiveQueue(ctx context.Context, p *v1alpha1.AutoscalingPolicy) checked {
	const check = "receive queue"
	if p.Status.Capacity == nil {
		return checked{
			check, resultUnknown, v1alpha1.ReasonPending,
			"it is checked once the adapter has learned what a replica processes",
		}
	}
	size, source := int64(defaultQueue), "the default of Pulsar's clients"
	ref := p.Spec.ScaleTargetRef
	// A Source defines no consumers.
	if kind := ref.Kind; strings.HasPrefix(ref.APIVersion, cluster.FunctionMeshGroup) &&
		kind != string(v1alpha1.WorkloadSource) && ref.Component.Kind != v1alpha1.WorkloadSource {
		var err error
		if size, err = c.queueOf(ctx, p); err != nil {
			return unreadable(check, fmt.Sprintf("get on %ss.%s in namespace %s", strings.ToLower(kind), cluster.FunctionMeshGroup,
				p.Namespace), err)
		}
		source = "the largest of the target"
	}
	objective := decide.LatencyObjective(p.Spec)
	capacity := p.Status.Capacity.MessagesPerSecond.AsApproximateFloat64()
	work := time.Duration(float64(size) / max(capacity, 1e-3) * float64(time.Second))
	found := checked{check, resultOK, "", fmt.Sprintf("receiverQueueSize %d, %s, is %s of a replica's work, and "+
		"latencyObjective is %s", size, source, short(work), short(objective))}
	if work > objective {
		found.Result = resultWarning
		found.Message += fmt.Sprintf(": messages in the queue wait longer, and no new replica gets them: %s to %d or less",
			report.QueueField(p.Spec), max(1, int64(capacity*objective.Seconds())))
	}
	return found
}

// queueOf is the largest receive queue of the target's topics.
func (c checker) queueOf(ctx context.Context, p *v1alpha1.AutoscalingPolicy) (int64, error) {
	ref := p.Spec.ScaleTargetRef
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(ref.APIVersion)
	object.SetKind(ref.Kind)
	if err := c.kube.Get(ctx, client.ObjectKey{Namespace: p.Namespace, Name: ref.Name}, object); err != nil {
		return 0, err
	}
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	if err == nil && ref.Component.Name != "" {
		spec, err = componentSpec(spec, ref.Component)
	}
	if err != nil {
		return 0, err
	}
	return largestQueue(spec)
}

// componentSpec is the entry of a component in the spec of a FunctionMesh.
func componentSpec(mesh map[string]any, component v1alpha1.MeshComponent) (map[string]any, error) {
	list := strings.ToLower(string(component.Kind)) + "s"
	entries, _, err := unstructured.NestedSlice(mesh, list)
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		if fields, isMap := entry.(map[string]any); isMap && fields["name"] == component.Name {
			return fields, nil
		}
	}
	return nil, fmt.Errorf("spec.%s has no entry %s", list, component.Name)
}

// largestQueue of the topics that a Function or Sink consumes.
func largestQueue(spec map[string]any) (int64, error) {
	sources, _, err := unstructured.NestedMap(spec, "input", "sourceSpecs")
	if err != nil {
		return 0, err
	}
	topics, _, err := unstructured.NestedStringSlice(spec, "input", "topics")
	if err != nil {
		return 0, err
	}
	largest := int64(0)
	for topic := range sources {
		size, isSet, err := unstructured.NestedInt64(sources, topic, "receiverQueueSize")
		if err != nil {
			return 0, err
		}
		if !isSet {
			size = defaultQueue
		}
		largest = max(largest, size)
	}
	for _, topic := range topics {
		if _, isSource := sources[topic]; !isSource {
			largest = max(largest, defaultQueue)
		}
	}
	if largest == 0 { // a pattern, or sources of another form
		largest = defaultQueue
	}
	return largest, nil
}
