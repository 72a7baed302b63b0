// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/controllers/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// workerPod is number 0 of function public/default/resize as the function worker of Pulsar 4.0.8 and a node create it.
func workerPod() *corev1.Pod {
	controller := true
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: fixture.Namespace, Name: "pf-public-default-resize-0",
			Labels: map[string]string{
				"component": "function", "tenant": "public", "namespace": "default", "name": "resize",
				"apps.kubernetes.io/pod-index":       "0",
				"controller-revision-hash":           "pf-public-default-resize-645fb44b88",
				"statefulset.kubernetes.io/pod-name": "pf-public-default-resize-0",
			},
			Annotations: map[string]string{cluster.AnnotationPort: "19094", "prometheus.io/scrape": "true"},
			OwnerReferences: []metav1.OwnerReference{{
				Kind: "StatefulSet", Name: "pf-public-default-resize",
				Controller: &controller,
			}},
		},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.2.0.18"},
	}
}

func TestPodsAreOfBothWatches(t *testing.T) {
	p := podsOf(watchOf(t, testPod()), watchOf(t, workerPod()))
	for workload, want := range map[backlog.Object][]backlog.InstanceAddress{
		resize(): {instanceAt("resize-function-0", "10.2.0.17:9094")},
		{Kind: "StatefulSet", Namespace: "media", Name: "pf-public-default-resize"}: {
			instanceAt("pf-public-default-resize-0", "10.2.0.18:19094"),
		},
		{Kind: "StatefulSet", Namespace: "media", Name: "resize-function"}:       nil,
		{Kind: "Function", Namespace: "media", Name: "pf-public-default-resize"}: nil,
	} {
		found, err := p.Addresses(workload)
		require.NoError(t, err)
		require.Equal(t, want, found, workload)
		health, err := p.Health(workload)
		require.NoError(t, err)
		require.EqualValues(t, len(want), health.Unready, "the pods have no condition")
	}
}

func TestSelectorsAreDisjoint(t *testing.T) {
	mesh, err := instanceSelector()
	require.NoError(t, err)
	workers, err := workerSelector()
	require.NoError(t, err)
	both := testPod()
	for key, value := range workerPod().Labels { // a platform may set all of them on Function Mesh's pods
		both.Labels[key] = value
	}
	tests := map[string]struct {
		labels map[string]string
		want   [2]bool
	}{
		"by Function Mesh's labels":                     {labels: testPod().Labels, want: [2]bool{true, false}},
		"by the function worker's labels":               {labels: workerPod().Labels, want: [2]bool{false, true}},
		"by Function Mesh's labels when there are both": {labels: both.Labels, want: [2]bool{true, false}},
		"not with another component": {labels: map[string]string{
			"component": "broker", "tenant": "a",
			"namespace": "b", "name": "c",
		}},
		"not without a tenant": {labels: map[string]string{
			"component": "function", "namespace": "b",
			"name": "c",
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, [2]bool{mesh.Matches(labels.Set(test.labels)), workers.Matches(labels.Set(test.labels))})
		})
	}
}
