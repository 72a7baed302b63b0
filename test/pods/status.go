// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// annotationPort is where a pod serves its metrics: pods of a template have the same port, and share one address here.
const annotationPort = "prometheus.io/port"

// waitingFor is the state of a container that ended or could not start.
func waitingFor(err error) (reason, message string) {
	var waiting WaitingError
	if errors.As(err, &waiting) {
		return waiting.Reason, waiting.Err.Error()
	}
	return "CrashLoopBackOff", "back-off restarting failed container"
}

// report writes the annotation and the status of a pod if they differ.
func (r *Runner) report(ctx context.Context, pod *corev1.Pod, s state) error {
	if u, err := url.Parse(s.metrics); err == nil && u.Port() != "" && pod.Annotations[annotationPort] != u.Port() {
		next := pod.DeepCopy()
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, annotationPort, u.Port())
		if err := r.client.Patch(ctx, next, client.MergeFrom(pod)); err != nil {
			return err
		}
		pod = next
	}
	next := pod.DeepCopy()
	next.Status = status(pod, s, metav1.NewTime(time.Now().Truncate(time.Second)))
	if equality.Semantic.DeepEqual(pod.Status, next.Status) {
		return nil
	}
	return r.client.Status().Update(ctx, next)
}

// status is the one that a kubelet would write.
func status(pod *corev1.Pod, s state, now metav1.Time) corev1.PodStatus {
	next := *pod.Status.DeepCopy()
	container := corev1.ContainerStatus{
		Name: pod.Spec.Containers[0].Name, Image: pod.Spec.Containers[0].Image, RestartCount: s.restarts,
		Ready: s.ready, Started: &s.started,
	}
	if s.running {
		container.State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(s.since.Truncate(time.Second))}
	} else {
		container.State.Waiting = &corev1.ContainerStateWaiting{Reason: s.reason, Message: s.message}
	}
	next.ContainerStatuses = []corev1.ContainerStatus{container}
	next.Phase = corev1.PodPending
	if s.ran {
		next.Phase, next.PodIP, next.PodIPs = corev1.PodRunning, s.address, []corev1.PodIP{{IP: s.address}}
	}
	if next.StartTime == nil && !s.begun.IsZero() {
		begun := metav1.NewTime(s.begun.Truncate(time.Second))
		next.StartTime = &begun
	}
	set(&next, corev1.PodScheduled, true, pod.CreationTimestamp) // written already where the pod was bound to a node
	set(&next, corev1.PodInitialized, true, now)
	set(&next, corev1.ContainersReady, s.ready, now)
	set(&next, corev1.PodReady, s.ready, now)
	return next
}

// set sets a condition, which keeps its time without a transition.
func set(status *corev1.PodStatus, kind corev1.PodConditionType, is bool, now metav1.Time) {
	next := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, LastTransitionTime: now}
	if is {
		next.Status = corev1.ConditionTrue
	}
	for i := range status.Conditions {
		if c := &status.Conditions[i]; c.Type == kind {
			if c.Status != next.Status {
				c.Status, c.LastTransitionTime = next.Status, now
			}
			return
		}
	}
	status.Conditions = append(status.Conditions, next)
}

// Explain returns the state and the last lines of each container, for a failed test.
func (r *Runner) Explain() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var text strings.Builder
	for _, key := range slices.SortedFunc(maps.Keys(r.units), func(a, b client.ObjectKey) int {
		return strings.Compare(a.String(), b.String())
	}) {
		const lines = 15
		u := r.units[key]
		fmt.Fprintf(&text, "pod %s (%s), %d restarts, waiting for %q %s:\n", key, u.state.address, u.state.restarts,
			u.state.reason, u.state.message)
		if log, ok := u.container.(interface{ LogTail(n int) string }); ok {
			fmt.Fprintln(&text, log.LogTail(lines))
		}
	}
	return text.String()
}
