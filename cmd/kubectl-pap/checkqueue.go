// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/target"
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
	size, result := int64(defaultQueue), resultUnknown
	holds := "it could not be read; Pulsar's default of %d would be"
	if definesQueue(p.Spec.ScaleTargetRef) {
		var err error
		if size, err = c.queueOf(ctx, p); err != nil {
			return unreadable(check, c.readingTarget(p), err)
		}
		result, holds = resultOK, "receiverQueueSize %d, the largest of the target, is"
	}
	objective := decide.LatencyObjective(p.Spec)
	capacity := p.Status.Capacity.MessagesPerSecond.AsApproximateFloat64()
	work := time.Duration(float64(size) / max(capacity, 1e-3) * float64(time.Second))
	found := checked{check, result, "", fmt.Sprintf(holds+" %s of a replica's work for each partition, and "+
		"latencyObjective is %s", size, short(work.Seconds()), short(objective.Seconds()))}
	if work > objective {
		if result == resultOK {
			found.Result = resultWarning
		}
		found.Message += fmt.Sprintf(": messages in the queue wait longer, and no new replica gets them: %s to %.0f divided "+
			"by the number of partitions, which is %d s of a replica's work", report.QueueField(p.Spec),
			max(1, math.Ceil(report.QueuedSeconds*capacity)), report.QueuedSeconds)
	}
	return found
}

// definesQueue reports whether an object of Function Mesh defines consumers. A Source does not.
func definesQueue(ref v1alpha1.ScaleTargetRef) bool {
	return schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).Group == cluster.FunctionMeshGroup &&
		ref.Kind != cluster.KindSource && ref.Component.Kind != v1alpha1.WorkloadSource
}

// readingTarget is the permission to read the target.
func (c checker) readingTarget(p *v1alpha1.AutoscalingPolicy) string {
	ref := p.Spec.ScaleTargetRef
	kind := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	resource := kind.GroupKind().String()
	if mapping, err := c.kube.RESTMapper().RESTMapping(kind.GroupKind(), kind.Version); err == nil {
		resource = mapping.Resource.GroupResource().String()
	}
	return fmt.Sprintf("get on %s in namespace %s", resource, p.Namespace)
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
	if ref.Component.Name != "" {
		entry, err := target.FindEntry(object, ref.Component)
		if err != nil {
			return 0, err
		}
		return largestQueue(entry.Fields)
	}
	spec, _, err := unstructured.NestedMap(object.Object, "spec")
	if err != nil {
		return 0, err
	}
	return largestQueue(spec)
}

// inputs are the topics of a Function or Sink.
//
// Source: Function Mesh v0.27.2, api/compute/v1alpha1/common.go.
type inputs struct {
	Input struct {
		Topics      []string `json:"topics"`
		SourceSpecs map[string]struct {
			ReceiverQueueSize *int64 `json:"receiverQueueSize"`
		} `json:"sourceSpecs"`
	} `json:"input"`
}

// largestQueue of the topics that a Function or Sink consumes.
func largestQueue(spec map[string]any) (int64, error) {
	var decoded inputs
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &decoded); err != nil {
		return 0, err
	}
	largest := int64(0)
	for _, source := range decoded.Input.SourceSpecs {
		largest = max(largest, ptr.Deref(source.ReceiverQueueSize, defaultQueue))
	}
	for _, topic := range decoded.Input.Topics {
		if _, isSource := decoded.Input.SourceSpecs[topic]; !isSource {
			largest = max(largest, defaultQueue)
		}
	}
	return cmp.Or(largest, defaultQueue), nil // a pattern, or sources of another form, have no size
}
