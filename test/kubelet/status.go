// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// podIP is the address of all pods, and annotationPort where each serves its metrics: they share one address here.
	podIP          = "127.0.0.1"
	annotationPort = "prometheus.io/port"
)

// report writes the state of a pod if it differs.
func (k *Kubelet) report(ctx context.Context, object *corev1.Pod, p pod) error {
	announced := object.DeepCopy()
	metav1.SetMetaDataAnnotation(&announced.ObjectMeta, annotationPort, strconv.Itoa(p.metrics))
	if object.Annotations[annotationPort] != announced.Annotations[annotationPort] {
		if err := client.IgnoreNotFound(k.client.Patch(ctx, announced, client.MergeFrom(object))); err != nil {
			return fmt.Errorf("announcing the metrics of pod %s: %w", object.Name, err)
		}
	}
	told := announced.DeepCopy()
	told.Status = status(announced, p)
	if equality.Semantic.DeepEqual(announced.Status, told.Status) {
		return nil
	}
	if err := client.IgnoreNotFound(k.client.Status().Patch(ctx, told, client.MergeFrom(announced))); err != nil {
		return fmt.Errorf("writing the status of pod %s: %w", object.Name, err)
	}
	return nil
}

// status is the status that a kubelet would write: the worker's pods have no probes, so they are ready once they run.
func status(object *corev1.Pod, p pod) corev1.PodStatus {
	next := *object.Status.DeepCopy()
	began := metav1.NewTime(p.started.Truncate(time.Second))
	running := !ended(p.process)
	container := corev1.ContainerStatus{
		Name: object.Spec.Containers[0].Name, Image: object.Spec.Containers[0].Image, Ready: running, Started: &running,
		RestartCount: p.restarts,
	}
	ready := corev1.ConditionFalse
	if running {
		ready = corev1.ConditionTrue
		container.State.Running = &corev1.ContainerStateRunning{StartedAt: began}
	} else {
		container.State.Waiting = &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "the process ended"}
	}
	next.Phase, next.PodIP, next.PodIPs, next.StartTime = corev1.PodRunning, podIP, []corev1.PodIP{{IP: podIP}}, &began
	next.ContainerStatuses = []corev1.ContainerStatus{container}
	next.Conditions = nil
	for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		next.Conditions = append(next.Conditions, corev1.PodCondition{Type: kind, Status: ready, LastTransitionTime: began})
	}
	return next
}
