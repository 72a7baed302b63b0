// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// transformPod keeps what Pods reads: 1.9 KB of the 8 KB of a pod, of which 1.2 KB are fields without a value.
func transformPod(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	kept := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			CreationTimestamp: pod.CreationTimestamp, DeletionTimestamp: pod.DeletionTimestamp,
			Labels: transformLabels(pod.Labels),
		},
		Status: corev1.PodStatus{
			Phase: pod.Status.Phase, PodIP: pod.Status.PodIP,
			InitContainerStatuses: transformContainers(pod.Status.InitContainerStatuses),
			ContainerStatuses:     transformContainers(pod.Status.ContainerStatuses),
		},
	}
	if revision, set := pod.Labels[appsv1.ControllerRevisionHashLabelKey]; set {
		kept.Labels[appsv1.ControllerRevisionHashLabelKey] = revision
	}
	if owner := metav1.GetControllerOfNoCopy(pod); owner != nil {
		kept.OwnerReferences = []metav1.OwnerReference{{Kind: owner.Kind, Name: owner.Name, Controller: owner.Controller}}
	}
	if port, set := pod.Annotations[cluster.AnnotationPort]; set &&
		port != strconv.Itoa(defaultInstancePort) { // the default needs no annotation
		kept.Annotations = map[string]string{cluster.AnnotationPort: port}
	}
	if c := readiness(pod); c != nil {
		kept.Status.Conditions = []corev1.PodCondition{{
			Type: c.Type, Status: c.Status,
			LastTransitionTime: c.LastTransitionTime,
		}}
	}
	return kept, nil
}

// transformLabels keeps what indexPod reads.
func transformLabels(of map[string]string) map[string]string {
	if isOfWorker(of) {
		return map[string]string{labelWorkerComponent: of[labelWorkerComponent], labelWorkerTenant: of[labelWorkerTenant]}
	}
	return map[string]string{labelComponent: of[labelComponent], labelName: of[labelName]}
}

// transformContainers keeps the containers that crashed, and nothing of healthy ones.
func transformContainers(statuses []corev1.ContainerStatus) []corev1.ContainerStatus {
	var crashed []corev1.ContainerStatus
	for i := range statuses {
		if !hasCrashed(&statuses[i]) {
			continue
		}
		var kept corev1.ContainerStatus
		if waiting := statuses[i].State.Waiting; waiting != nil {
			kept.State.Waiting = &corev1.ContainerStateWaiting{Reason: waiting.Reason}
		} else {
			kept.State.Terminated = &corev1.ContainerStateTerminated{ExitCode: statuses[i].State.Terminated.ExitCode}
		}
		crashed = append(crashed, kept)
	}
	return crashed
}

// health sums up the pods of a workload, as transformPod keeps them. A pod that is being deleted does not count. A pod
// that crashed is not ready either.
//
// Replicas are those of a StatefulSet. A label of its pods names the revision of its template. While the StatefulSet
// replaces pods there are two revisions.
func health(pods []corev1.Pod) policy.Pods {
	var sum policy.Pods
	revision := ""
	for i := range pods {
		pod := &pods[i]
		if pod.DeletionTimestamp != nil {
			continue
		}
		if since, unready := unreadySince(pod); unready {
			if sum.Unready == 0 || since.Before(sum.UnreadySince) {
				sum.UnreadySince = since
			}
			sum.Unready++
		}
		if crashLoops(pod) {
			sum.CrashLooping++
		}
		if own := pod.Labels[appsv1.ControllerRevisionHashLabelKey]; own != "" {
			sum.Updating = sum.Updating || revision != "" && own != revision
			revision = own
		}
	}
	return sum
}

// unreadySince reports whether a pod is not ready, and since when. A pod that waits for a node or for its containers is
// unready since its creation; for one that ran, the condition has the time.
func unreadySince(pod *corev1.Pod) (since time.Time, unready bool) {
	c := readiness(pod)
	switch {
	case pod.Status.Phase == corev1.PodRunning && c != nil && c.Status == corev1.ConditionTrue:
		return time.Time{}, false
	case pod.Status.Phase == corev1.PodPending || c == nil || c.LastTransitionTime.IsZero():
		return pod.CreationTimestamp.Time, true
	default:
		return c.LastTransitionTime.Time, true
	}
}

// readiness is the condition Ready; nil before there is one.
func readiness(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// crashLoops reports whether a container of the pod ended and waits for its next start. A pod that failed as a whole
// does not: the StatefulSet creates another.
func crashLoops(pod *corev1.Pod) bool {
	if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
		return false
	}
	crashed := func(c corev1.ContainerStatus) bool { return hasCrashed(&c) }
	return slices.ContainsFunc(pod.Status.InitContainerStatuses, crashed) ||
		slices.ContainsFunc(pod.Status.ContainerStatuses, crashed)
}

// reasonCrashLoop is the kubelet's reason while a container waits for a restart: 10 s at first, twice that each time, 5
// min at most. It covers a container that ended without an error, as no instance should.
//
// Source: Kubernetes' pkg/kubelet/container, ErrCrashLoopBackOff.
const reasonCrashLoop = "CrashLoopBackOff"

func hasCrashed(c *corev1.ContainerStatus) bool {
	switch {
	case c.State.Waiting != nil:
		return c.State.Waiting.Reason == reasonCrashLoop
	case c.State.Terminated != nil:
		return c.State.Terminated.ExitCode != 0
	default:
		return false
	}
}
