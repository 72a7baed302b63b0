// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pods

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestTheStatusIsThatOfAKubelet(t *testing.T) {
	at := time.Unix(1000, 0)
	for name, test := range map[string]struct {
		state state
		phase corev1.PodPhase
		want  corev1.ContainerStatus // without its name
	}{
		"a pod that is created": {
			state{begun: at, reason: "ContainerCreating"},
			corev1.PodPending,
			corev1.ContainerStatus{Started: new(false), State: waitingState("ContainerCreating", "")},
		},
		"a container that its probes have not accepted": {
			state{begun: at, since: at, ran: true, running: true, address: "10.0.0.1"},
			corev1.PodRunning,
			corev1.ContainerStatus{Started: new(false), State: runningState(at)},
		},
		"a ready container": {
			state{begun: at, since: at, ran: true, running: true, started: true, ready: true, address: "10.0.0.1"},
			corev1.PodRunning,
			corev1.ContainerStatus{Started: new(true), Ready: true, State: runningState(at)},
		},
		"a container that ended by itself": {
			state{begun: at, since: at, ran: true, restarts: 2, reason: "CrashLoopBackOff", address: "10.0.0.1"},
			corev1.PodRunning,
			corev1.ContainerStatus{
				Started: new(false), RestartCount: 2, State: waitingState("CrashLoopBackOff", ""),
			},
		},
		"a pod that cannot start": {
			state{reason: "CreateContainerConfigError", message: "no ConfigMap"},
			corev1.PodPending,
			corev1.ContainerStatus{Started: new(false), State: waitingState("CreateContainerConfigError", "no ConfigMap")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}}
			pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
			got := status(pod, test.state, metav1.NewTime(at))
			test.want.Name = "c"
			require.Equal(t, []corev1.ContainerStatus{test.want}, got.ContainerStatuses)
			require.Equal(t, test.phase, got.Phase)
			require.Equal(t, test.state.address, got.PodIP)
			require.Equal(t, test.state.begun.IsZero(), got.StartTime == nil)
			conditions := map[corev1.PodConditionType]bool{}
			for _, c := range got.Conditions {
				conditions[c.Type] = c.Status == corev1.ConditionTrue
			}
			require.Equal(t, map[corev1.PodConditionType]bool{
				corev1.PodScheduled: true, corev1.PodInitialized: true, corev1.ContainersReady: test.want.Ready,
				corev1.PodReady: test.want.Ready,
			}, conditions)

			pod.Status = got
			later := metav1.NewTime(at.Add(time.Minute))
			require.Equal(t, got, status(pod, test.state, later), "the same state writes nothing")
			test.state.ready = !test.state.ready
			next := status(pod, test.state, later).Conditions
			require.Equal(t, later, next[len(next)-1].LastTransitionTime)
		})
	}
}

func waitingState(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func runningState(since time.Time) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}}
}
