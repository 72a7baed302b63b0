// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/policy"
)

// podFile is a pod as the API server returns it, created at noon.
func podFile(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	require.NoError(t, err)
	var pod corev1.Pod
	require.NoError(t, json.Unmarshal(content, &pod))
	return &pod
}

func TestHealthHasTheStartsOfPods(t *testing.T) {
	noon := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	start := func(pod string, instance int32, created time.Time, scheduled, initializing, running int) []policy.PodStart {
		second := func(n int) time.Duration { return time.Duration(n) * time.Second }
		return []policy.PodStart{{
			Pod: pod, Instance: instance, Created: created,
			Scheduled: second(scheduled), Initializing: second(initializing), Running: second(running),
		}}
	}
	later := func(skew time.Duration) func(*corev1.Pod) {
		return func(pod *corev1.Pod) {
			pod.CreationTimestamp = metav1.NewTime(pod.CreationTimestamp.Add(skew))
		}
	}
	for name, test := range map[string]struct {
		file   string
		change func(*corev1.Pod)
		want   []policy.PodStart
	}{
		"an init container that downloads the package": {
			file: "pod-downloads-package",
			want: start("resize-function-3", 3, noon, 2, 11, 33),
		},
		"a wait for a node, and a sidecar that is last": {
			file: "pod-waits-for-node",
			want: start("resize-function-3", 3, noon, 95, 0, 151),
		},
		"a pod of the function worker": {
			file: "pod-of-function-worker", want: start("pf-public-default-resize-12", 12, noon, 0, 0, 1),
		},
		"clocks that differ": {
			"pod-downloads-package", later(10 * time.Second),
			start("resize-function-3", 3, noon.Add(10*time.Second), 0, 11, 23),
		},
		"a container that runs within the second": {
			"pod-of-function-worker", later(time.Second),
			start("pf-public-default-resize-12", 12, noon.Add(time.Second), 0, 0, 0),
		},
		"none without a node":            {file: "pod-unschedulable"},
		"none while the image is pulled": {file: "pod-pulls-image"},
		"none after a restart":           {file: "pod-restarted"},
		"none after a failed download": {
			file:   "pod-downloads-package",
			change: func(pod *corev1.Pod) { pod.Status.InitContainerStatuses[0].RestartCount = 1 },
		},
		"none of a pod that is deleted": {file: "pod-downloads-package", change: deleted},
		"none of a pod of a Deployment": {
			file: "pod-downloads-package", change: func(pod *corev1.Pod) { pod.Name = "orders-7d9f8c6b5-x2k4z" },
		},
		"none before the creation": {file: "pod-downloads-package", change: later(time.Minute)},
		"none after half a day":    {file: "pod-downloads-package", change: later(-12 * time.Hour)},
	} {
		t.Run(name, func(t *testing.T) {
			pod := podFile(t, test.file)
			if test.change != nil {
				test.change(pod)
			}
			found := health([]*instancePod{newInstancePod(pod)}).Starts
			for i := range found {
				found[i].Created = found[i].Created.UTC()
			}
			require.Equal(t, test.want, found)
		})
	}
}

func TestHealthHasTheNewestStarts(t *testing.T) {
	var pods []*instancePod
	for i := range int64(30) {
		pod := newInstancePod(podFile(t, "pod-downloads-package"))
		pod.start.created += i * 7 % 30
		pods = append(pods, pod)
	}
	var created []int64
	for _, start := range health(pods).Starts {
		created = append(created, start.Created.Unix()-pods[0].start.created)
	}
	want := make([]int64, 0, policy.MostStarts)
	for i := int64(29); i >= 10; i-- {
		want = append(want, i)
	}
	require.Equal(t, want, created)
}
