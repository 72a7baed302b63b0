// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// report writes the status of the pod if it has changed.
func (p *pod) report(ctx context.Context) error {
	next := p.object.DeepCopy()
	next.Status = p.status()
	if equality.Semantic.DeepEqual(p.object.Status, next.Status) {
		return nil
	}
	if _, err := p.client.CoreV1().Pods(next.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("writing its status: %w", err)
	}
	return nil
}

func (p *pod) status() corev1.PodStatus {
	next := *p.object.Status.DeepCopy()
	running := p.process != nil && !p.ended()
	p.mu.Lock()
	started := running && p.startup.succeeds()
	ready := started && p.readiness.succeeds()
	p.mu.Unlock()
	c := p.object.Spec.Containers[0]
	container := corev1.ContainerStatus{
		Name: c.Name, Image: c.Image, Ready: ready, Started: &started, RestartCount: p.restarts,
	}
	next.Phase = corev1.PodPending
	if p.process != nil {
		began := metav1.NewTime(p.started.Truncate(time.Second))
		next.Phase, next.StartTime = corev1.PodRunning, &began
		next.PodIP, next.PodIPs = p.address, []corev1.PodIP{{IP: p.address}}
		container.State.Running = &corev1.ContainerStateRunning{StartedAt: began}
	}
	if !running {
		container.State = corev1.ContainerState{
			Waiting: &corev1.ContainerStateWaiting{Reason: p.waiting, Message: p.message},
		}
	}
	next.ContainerStatuses = []corev1.ContainerStatus{container}
	set := func(kind corev1.PodConditionType, is bool) {
		status := corev1.ConditionFalse
		if is {
			status = corev1.ConditionTrue
		}
		for i := range next.Conditions {
			if next.Conditions[i].Type == kind && next.Conditions[i].Status == status {
				return
			}
			if next.Conditions[i].Type == kind {
				next.Conditions[i].Status = status
				next.Conditions[i].LastTransitionTime = metav1.NewTime(time.Now().Truncate(time.Second))
				return
			}
		}
		next.Conditions = append(next.Conditions, corev1.PodCondition{
			Type: kind, Status: status, LastTransitionTime: metav1.NewTime(time.Now().Truncate(time.Second)),
		})
	}
	set(corev1.PodInitialized, true)
	set(corev1.ContainersReady, ready)
	set(corev1.PodReady, ready)
	return next
}
