// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

// podController has the fields of a Deployment or StatefulSet that scaling needs, and all that the cache keeps of a
// Deployment.
type podController struct {
	Spec struct {
		Replicas *int32                `json:"replicas"`
		Selector *metav1.LabelSelector `json:"selector"`
		Paused   bool                  `json:"paused"`
	} `json:"spec"`
	Status struct {
		Replicas        int32 `json:"replicas"`
		UpdatedReplicas int32 `json:"updatedReplicas"`
	} `json:"status"`
}

func decodePodController(object *unstructured.Unstructured) (podController, error) {
	var p podController
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &p); err != nil {
		return podController{}, fmt.Errorf("decoding %s: %w", object.GetKind(), err)
	}
	return p, nil
}

// selector of its pods, as a scale subresource writes it; empty without one, because it would match all pods.
func (p podController) selector() (string, error) {
	if p.Spec.Selector == nil {
		return "", nil
	}
	selector, err := metav1.LabelSelectorAsSelector(p.Spec.Selector)
	if err != nil {
		return "", fmt.Errorf("reading spec.selector: %w", err)
	}
	return selector.String(), nil
}

// rollsOut reports whether a Deployment, which may be nil, is replacing pods of an older revision. A paused one is not.
func rollsOut(deployment *unstructured.Unstructured) bool {
	if deployment == nil {
		return false
	}
	p, err := decodePodController(deployment)
	return err == nil && !p.Spec.Paused && p.Status.UpdatedReplicas < p.Status.Replicas
}

// transformDeployment keeps what scaling needs: the cache has all Deployments of the cluster.
func transformDeployment(u *unstructured.Unstructured) {
	u.Object = map[string]any{
		"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(),
		"metadata": identity(u),
		"spec":     withGracePeriod(u, picked(u.Object["spec"], "replicas", "selector", "paused")),
		"status":   picked(u.Object["status"], "replicas", "updatedReplicas"),
	}
}

// javaWaits is how long a Java instance waits for its call before it closes.
//
// Source: org.apache.pulsar.functions.runtime.thread.ThreadRuntime.stop, 4.0.8: interrupt and join.
const javaWaits = 10 * time.Second

// mostUsefulGrace is the longest time that the replicas use to finish a call; zero for no limit.
func (w workload) mostUsefulGrace() time.Duration {
	if w.function().Runtime == function.Java {
		return javaWaits
	}
	return 0
}

// gracePeriod is how long the pods of the target may take to end; nil if that is unknown, or if the user cannot set it:
// a function worker writes 0.
func gracePeriod(ref v1alpha1.ScaleTargetRef, w workload, pods *unstructured.Unstructured) *time.Duration {
	seconds := int64(corev1.DefaultTerminationGracePeriodSeconds)
	switch own := w.Spec.Pod.TerminationGracePeriodSeconds; {
	case own != nil:
		seconds = *own
	case RunsInstances(ref):
	case pods == nil || IsOfWorker(pods):
		return nil
	default:
		seconds = templateGracePeriod(pods)
	}
	return new(time.Duration(seconds) * time.Second)
}

// templateGracePeriod is that of the pod template of a Deployment or StatefulSet, in seconds.
func templateGracePeriod(object *unstructured.Unstructured) int64 {
	seconds, found, err := unstructured.NestedInt64(object.Object, "spec", "template", "spec",
		"terminationGracePeriodSeconds")
	if !found || err != nil {
		return corev1.DefaultTerminationGracePeriodSeconds
	}
	return seconds
}

// withGracePeriod adds it to what the cache keeps of a spec, unless it is the default, as for nearly all objects.
func withGracePeriod(u *unstructured.Unstructured, spec map[string]any) map[string]any {
	if seconds := templateGracePeriod(u); spec != nil && seconds != corev1.DefaultTerminationGracePeriodSeconds {
		spec["template"] = map[string]any{"spec": map[string]any{"terminationGracePeriodSeconds": seconds}}
	}
	return spec
}
