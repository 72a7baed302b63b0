// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// podsCreated is the creation time of all pods of these tests.
func podsCreated() time.Time { return time.Unix(1_800_000_000, 0) }

func minutes(n int) time.Time { return podsCreated().Add(time.Duration(n) * time.Minute) }

// healthyPod runs and has been ready for a minute less than it has existed.
func healthyPod() *corev1.Pod {
	pod := testPod()
	pod.CreationTimestamp = metav1.NewTime(podsCreated())
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = "resize-function-5f8d9c7b6"
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "pulsar-function", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	ready(pod, corev1.ConditionTrue, minutes(1))
	return pod
}

// ready sets the condition, and another one with the opposite status.
func ready(pod *corev1.Pod, status corev1.ConditionStatus, since time.Time) {
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(minutes(100))},
		{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(since)},
	}
}

func waits(reason string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
		Reason:  reason,
		Message: "back-off 5m0s restarting failed container",
	}}
}

func ended(exitCode int32) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Error", ExitCode: exitCode}}
}

func notReady(pod *corev1.Pod) { ready(pod, corev1.ConditionFalse, minutes(5)) }

func crashed(pod *corev1.Pod) {
	notReady(pod)
	pod.Status.ContainerStatuses[0].State = waits(reasonCrashLoop)
}

func pending(pod *corev1.Pod) {
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending}
}

func deleted(pod *corev1.Pod) {
	now := metav1.NewTime(minutes(9))
	pod.DeletionTimestamp = &now
}

func renewed(pod *corev1.Pod) {
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = "resize-function-79c4bb5d4"
}

func TestHealth(t *testing.T) {
	type change = func(*corev1.Pod)
	all := func(changes ...change) change {
		return func(pod *corev1.Pod) {
			for _, one := range changes {
				one(pod)
			}
		}
	}
	fine := func(*corev1.Pod) {}
	tests := map[string]struct {
		pods []change
		want policy.Pods
	}{
		"has zeros without pods": {},
		"counts ready pods":      {pods: []change{fine, fine}, want: policy.Pods{Ready: 2}},
		"counts a pod that waits for a node since its creation": {
			pods: []change{fine, pending}, want: policy.Pods{Ready: 1, Unready: 1, UnreadySince: podsCreated()},
		},
		"counts a pod that waits for its image since its creation": {
			pods: []change{all(pending, func(p *corev1.Pod) {
				notReady(p)
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: waits("ImagePullBackOff")}}
			})},
			want: policy.Pods{Unready: 1, UnreadySince: podsCreated()},
		},
		"counts an unready pod since its condition": {
			pods: []change{notReady}, want: policy.Pods{Unready: 1, UnreadySince: minutes(5)},
		},
		"counts a pod of a lost node": {
			pods: []change{func(p *corev1.Pod) { ready(p, corev1.ConditionUnknown, minutes(6)) }},
			want: policy.Pods{Unready: 1, UnreadySince: minutes(6)},
		},
		"counts a pod without a condition since its creation": {
			pods: []change{func(p *corev1.Pod) { p.Status.Conditions = nil }}, want: policy.Pods{
				Unready:      1,
				UnreadySince: podsCreated(),
			},
		},
		"counts a condition without a date since the creation": {
			pods: []change{func(p *corev1.Pod) { ready(p, corev1.ConditionFalse, time.Time{}) }},
			want: policy.Pods{Unready: 1, UnreadySince: podsCreated()},
		},
		"ignores pods that have ended, such as evicted ones": {pods: []change{
			fine, all(crashed, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
			all(notReady, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		}, want: policy.Pods{Ready: 1}},
		"reports the earliest unready pod": {
			pods: []change{notReady, func(p *corev1.Pod) { ready(p, corev1.ConditionFalse, minutes(3)) }, notReady},
			want: policy.Pods{Unready: 3, UnreadySince: minutes(3)},
		},
		"dates what is unready when it was more than a fifth": {
			pods: append([]change{pending, notReady, notReady, func(p *corev1.Pod) {
				ready(p, corev1.ConditionFalse, minutes(7))
			}}, slices.Repeat([]change{fine}, 9)...),
			want: policy.Pods{Ready: 9, Unready: 4, UnreadySince: minutes(5)},
		},
		"counts a pod in back-off after a crash": {
			pods: []change{fine, crashed}, want: policy.Pods{Ready: 1, Unready: 1, UnreadySince: minutes(5), CrashLooping: 1},
		},
		"counts a pod that just crashed": {
			pods: []change{all(notReady, func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = ended(137) })},
			want: policy.Pods{Unready: 1, UnreadySince: minutes(5), CrashLooping: 1},
		},
		"counts a pod with a crashing init container": {
			pods: []change{all(pending, func(p *corev1.Pod) {
				p.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: ended(0)}, {State: waits(reasonCrashLoop)}}
				p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: waits("PodInitializing")}}
			})},
			want: policy.Pods{Unready: 1, UnreadySince: podsCreated(), CrashLooping: 1},
		},
		"counts a pod with two crashing containers once": {
			pods: []change{all(crashed, func(p *corev1.Pod) {
				p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{State: ended(1)})
			})},
			want: policy.Pods{Unready: 1, UnreadySince: minutes(5), CrashLooping: 1},
		},
		"ignores a completed init container": {
			pods: []change{func(p *corev1.Pod) {
				p.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: ended(0)}}
			}},
			want: policy.Pods{Ready: 1},
		},
		"ignores a restarted container": {
			pods: []change{func(p *corev1.Pod) {
				p.Status.ContainerStatuses[0].RestartCount, p.Status.ContainerStatuses[0].LastTerminationState = 7, ended(1)
			}},
			want: policy.Pods{Ready: 1},
		},
		"ignores pods that are being deleted": {
			pods: []change{fine, all(crashed, deleted), all(pending, deleted)}, want: policy.Pods{Ready: 1},
		},
		"leaves it to the StatefulSet whether it replaces pods of an older revision": {
			pods: []change{fine, fine, renewed}, want: policy.Pods{Ready: 3},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var kept []*instancePod
			for _, change := range test.pods {
				pod := healthyPod()
				change(pod)
				kept = append(kept, newInstancePod(pod))
			}
			require.Equal(t, test.want, health(kept))
		})
	}
}

func TestPodTransformKeepsWhatACacheNeeds(t *testing.T) {
	pod := healthyPod()
	pod.ResourceVersion = "7"
	transform := podTransform()
	kept, err := transform(pod)
	require.NoError(t, err)
	require.Less(t, unsafe.Sizeof(*kept.(*instancePod)), uintptr(150), "of 100,000 pods")
	again, err := transform(kept)
	require.NoError(t, err)
	require.Same(t, kept, again, "a second transform changes nothing")
	key, err := toolscache.MetaNamespaceKeyFunc(kept)
	require.NoError(t, err)
	require.Equal(t, "media/resize-function-0", key)
	fields, err := meta.Accessor(kept)
	require.NoError(t, err)
	require.Equal(t, "7", fields.GetResourceVersion())
	require.Empty(t, fields.GetLabels())
}

func TestHealthOfOneWorkload(t *testing.T) {
	well, ill, other := healthyPod(), healthyPod(), healthyPod()
	crashed(ill)
	crashed(other)
	ill.Name, other.Name, other.Namespace = "resize-function-1", "resize-function-2", "shop"
	pods := podsOf(watchOf(t, well, ill, other))
	health, err := pods.Health(resize())
	require.NoError(t, err)
	require.Equal(t, policy.Pods{Ready: 1, Unready: 1, UnreadySince: minutes(5), CrashLooping: 1}, health)
}
