// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
)

// pods has the fields of a StatefulSet or Deployment that scaling needs.
type pods struct {
	replicas *int32
	// selector of its pods, as a scale subresource writes it; empty without one, because it would match all pods.
	selector string
	// grace is how many seconds the pods may take to end.
	grace int64
	// restartedAt is when a user last restarted the pods; empty for never.
	restartedAt string
	// instance is what the pods of a StatefulSet of a function worker run; nil for others.
	instance *instance

	// reported is nil before the controller of the object has written a status.
	reported *int32
	ready    int32
	// replacing is true while pods are replaced by those of a new revision. An object that is paused, waits for a user to
	// delete pods, or stops at a partition, is not replacing them.
	replacing bool
	// next is the revision of a StatefulSet that its pods do not all have yet; empty for none.
	next string
}

// podController is the JSON of those fields.
type podController struct {
	Spec struct {
		Replicas       *int32                `json:"replicas"`
		Selector       *metav1.LabelSelector `json:"selector"`
		Paused         bool                  `json:"paused"`
		UpdateStrategy struct {
			Type          string `json:"type"`
			RollingUpdate struct {
				Partition int64 `json:"partition"`
			} `json:"rollingUpdate"`
		} `json:"updateStrategy"`
		Template podTemplate `json:"template"`
	} `json:"spec"`
	Status struct {
		Replicas        *int32 `json:"replicas"`
		ReadyReplicas   int32  `json:"readyReplicas"`
		UpdatedReplicas int32  `json:"updatedReplicas"`
		CurrentRevision string `json:"currentRevision"`
		UpdateRevision  string `json:"updateRevision"`
	} `json:"status"`
}

type podTemplate struct {
	Metadata struct {
		Annotations map[string]string `json:"annotations"`
	} `json:"metadata"`
	Spec struct {
		Containers                    []container `json:"containers"`
		TerminationGracePeriodSeconds *int64      `json:"terminationGracePeriodSeconds"`
	} `json:"spec"`
}

// decodePods keeps labels of StatefulSets of a function worker alone, because no others are selected by them.
func decodePods(c *Cached, object map[string]any) error {
	var decoded podController
	err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, &decoded)
	spec, status, labels := decoded.Spec, decoded.Status, c.Labels
	c.Labels, c.pods = nil, &pods{
		replicas: spec.Replicas, reported: status.Replicas, ready: status.ReadyReplicas,
		restartedAt: spec.Template.Metadata.Annotations[cluster.AnnotationRestartedAt],
		grace: *cmp.Or(spec.Template.Spec.TerminationGracePeriodSeconds,
			new(int64(corev1.DefaultTerminationGracePeriodSeconds))),
	}
	old := status.UpdatedReplicas < *cmp.Or(status.Replicas, new(int32))
	if c.Kind == cluster.KindDeployment {
		c.pods.replacing = old && !spec.Paused
	} else if status.CurrentRevision != status.UpdateRevision {
		c.pods.next = status.UpdateRevision
		c.pods.replacing = old && status.CurrentRevision != "" && status.UpdateRevision != "" &&
			spec.UpdateStrategy.Type != onDelete && spec.UpdateStrategy.RollingUpdate.Partition == 0
	}
	if isSet := c.Kind == cluster.KindStatefulSet; err != nil || isSet && ControllerOf(c) != "" { // no policy scales it
		return err
	} else if isSet {
		c.pods.instance = decodeInstance(spec.Template)
	}
	if isOfWorker(c) {
		c.Labels = labels
	}
	if spec.Selector == nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(spec.Selector)
	if err != nil {
		return fmt.Errorf("reading spec.selector: %w", err)
	}
	c.pods.selector = selector.String()
	return nil
}

// onDelete is the update strategy that waits for a user.
const onDelete = "OnDelete"

// javaWaits is how long a Java instance waits for its call before it closes.
//
// Source: org.apache.pulsar.functions.runtime.thread.ThreadRuntime.stop, 4.0.8: interrupt and join.
const javaWaits = 10 * time.Second

// mostUsefulGrace is the longest time that the replicas use to finish a call; zero for no limit.
func mostUsefulGrace(w *Cached) time.Duration {
	if w.function().Runtime == function.Java {
		return javaWaits
	}
	return 0
}

// gracePeriod is how long the pods of the target may take to end; nil if that is unknown, or if the user cannot set it:
// a function worker writes 0.
func gracePeriod(ref v1alpha1.ScaleTargetRef, w, pods *Cached) *time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	switch own := w.workload.Pod.TerminationGracePeriodSeconds; {
	case own != nil:
		seconds = *own
	case RunsInstances(ref):
	case pods == nil || isOfWorker(pods):
		return nil
	default:
		seconds = pods.pods.grace
	}
	return new(time.Duration(seconds) * time.Second)
}
