// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package mesh

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/pods"
)

// All tests share one control plane, with Functions of their own.
func TestOperator(t *testing.T) {
	b := newBed(t)
	for name, test := range map[string]func(*testing.T, *bed){
		"follows /scale": followsScale,
		"resets a StatefulSet that is scaled directly":       setsBack,
		"ignores an unmanaged Function":                      handsOff,
		"stops the replicas of a deleted Function":           deletes,
		"is scaled by a plain HPA":                           scaledByHPA,
		"is frozen by a second HPA next to its own":          twoHPAs,
		"deletes an HPA that is named like the Function":     namesake,
		"restarts a replica that ends by itself":             restarts,
		"reports a misconfiguration on the pod":              misconfiguration,
		"serves Sinks too":                                   sinks,
		"writes a FunctionMesh over its children":            meshes,
		"refuses to create a component with no replicas":     refusesNone,
		"stops at the first failing child of a FunctionMesh": stopsAtAChild,
		"changes nothing while it is paused":                 pauses,
	} {
		t.Run(name, func(t *testing.T) { test(t, b) })
	}
	require.NoError(t, b.stop())
	require.Empty(t, b.runner.alive(""), "replicas end with the operator")
}

func followsScale(t *testing.T, b *bed) {
	b.create(t, "scaled", 1, 0)
	b.scale(t, "scaled", 3)
	b.running(t, "scaled", 3)
	s := b.status(t, "scaled", func(s status, f *unstructured.Unstructured) bool {
		return s.ObservedGeneration == f.GetGeneration() && s.Conditions[partStatefulSet].done()
	})
	require.EqualValues(t, 3, s.Replicas)
	require.Equal(t, metav1.FormatLabelSelector(&metav1.LabelSelector{
		MatchLabels: component{kind: KindFunction, namespace: "default", name: "scaled"}.labels(),
	}), s.Selector)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		list, err := b.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: s.Selector})
		require.NoError(c, err)
		require.Len(c, list.Items, 3)
		for i := range list.Items {
			require.Equal(c, corev1.PodRunning, list.Items[i].Status.Phase)
			require.True(c, list.Items[i].Status.ContainerStatuses[0].Ready)
		}
		set, err := b.client.AppsV1().StatefulSets("default").Get(t.Context(), "scaled-function", metav1.GetOptions{})
		require.NoError(c, err)
		require.EqualValues(c, 3, set.Status.ReadyReplicas)
	}, patience, often)

	first := b.runner.of("scaled")[0]
	b.scale(t, "scaled", 1)
	b.running(t, "scaled", 1)
	for _, r := range b.runner.of("scaled") {
		require.Equal(t, r.in.ID > 0, r.gracefully(), "replica %d", r.in.ID)
	}
	require.Same(t, first, b.runner.of("scaled")[0])
	b.scale(t, "scaled", 0)
	b.running(t, "scaled", 0)
	require.Equal(t, []int{1, 3, 1, 0}, b.desired("scaled"))
}

func setsBack(t *testing.T, b *bed) {
	b.create(t, "direct", 2, 0)
	_, before := b.statefulSetReplicas(t, "direct-function")
	b.scaleStatefulSet(t, "direct-function", 4)
	b.setBack(t, "direct-function", 2, before+2)
	b.scaleStatefulSet(t, "direct-function", 1)
	b.setBack(t, "direct-function", 2, before+4)
	b.running(t, "direct", 2)
	for _, r := range b.runner.of("direct") {
		require.Less(t, r.in.ID, 2)
	}
}

func pauses(t *testing.T, b *bed) {
	const name, entry = "paused", "paused-entry"
	b.create(t, name, 2, 0)
	b.status(t, name, func(s status, f *unstructured.Unstructured) bool {
		return s.ObservedGeneration == f.GetGeneration() && s.Conditions[partStatefulSet].done()
	})
	_, err := b.meshes().Create(t.Context(), Mesh("default", "m", meshed(entry, 1)), metav1.CreateOptions{})
	require.NoError(t, err)
	b.childRuns(t, entry, 1)
	b.operator.Pause()
	t.Cleanup(b.operator.Resume)
	passes := b.operator.MeshPasses("default", "m")
	b.scale(t, name, 3)
	b.scale(t, "m-"+entry, 3)
	b.scaleStatefulSet(t, name+"-function", 1) // its controller and the pods keep running
	b.running(t, name, 1)
	replicas, _ := b.statefulSetReplicas(t, name+"-function")
	require.EqualValues(t, 1, replicas, "the operator would set it to 3")
	b.status(t, name, func(s status, f *unstructured.Unstructured) bool {
		return s.ObservedGeneration < f.GetGeneration()
	})
	require.LessOrEqual(t, b.operator.MeshPasses("default", "m"), passes+1, "one may be in progress")

	b.operator.Resume()
	b.running(t, name, 3)
	b.childRuns(t, entry, 1)
	require.Greater(t, b.operator.MeshPasses("default", "m"), passes)
	require.NoError(t, b.meshes().Delete(t.Context(), "m", metav1.DeleteOptions{}))
	b.gone(t, "m-"+entry)
}

// setBack waits for both writes, the external one and the operator's.
func (b *bed) setBack(t *testing.T, name string, replicas int32, generation int64) {
	t.Helper()
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		set, err := b.client.AppsV1().StatefulSets("default").Get(t.Context(), name, metav1.GetOptions{})
		require.NoError(c, err)
		require.Equal(c, replicas, *set.Spec.Replicas)
		require.Equal(c, generation, set.Generation)
	}, patience, often)
}

func handsOff(t *testing.T, b *bed) {
	b.create(t, "unmanaged", 1, 0)
	b.annotate(t, "unmanaged", `"false"`)
	b.scale(t, "unmanaged", 4)
	b.scaleStatefulSet(t, "unmanaged-function", 2)
	b.running(t, "unmanaged", 2)
	s := b.status(t, "unmanaged", func(status, *unstructured.Unstructured) bool { return true })
	require.EqualValues(t, 1, s.Replicas)
	replicas, _ := b.statefulSetReplicas(t, "unmanaged-function")
	require.EqualValues(t, 2, replicas)
	b.annotate(t, "unmanaged", "null")
	b.running(t, "unmanaged", 4)
}

func deletes(t *testing.T, b *bed) {
	b.create(t, "deleted", 2, 0)
	require.NoError(t, b.functions().Delete(t.Context(), "deleted", metav1.DeleteOptions{}))
	b.running(t, "deleted", 0)
	require.Eventually(t, func() bool {
		_, err := b.client.AppsV1().StatefulSets("default").Get(t.Context(), "deleted-function", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, patience, often)
	timeline := b.operator.Timeline("default", "deleted")
	end := timeline[len(timeline)-1]
	end.Time = time.Time{}
	require.Equal(t, pods.Sample{}, end)
}

// hpa is an HPA for a Function with a metric that does not exist.
func hpa(name, target string, minimum int32) *autoscalingv2.HorizontalPodAutoscaler {
	c := component{kind: KindFunction, namespace: "default", name: target}
	c.spec.MinReplicas, c.spec.MaxReplicas = &minimum, new(int32)
	*c.spec.MaxReplicas = 10
	h := c.hpa(metav1.OwnerReference{})
	h.ObjectMeta = metav1.ObjectMeta{Namespace: "default", Name: name}
	return h
}

func (b *bed) createHPA(t *testing.T, h *autoscalingv2.HorizontalPodAutoscaler) {
	t.Helper()
	_, err := b.client.AutoscalingV2().HorizontalPodAutoscalers("default").Create(t.Context(), h, metav1.CreateOptions{})
	require.NoError(t, err)
}

func scaledByHPA(t *testing.T, b *bed) {
	b.create(t, "plain", 1, 0)
	b.createHPA(t, hpa("for-plain", "plain", 3))
	b.running(t, "plain", 3)
}

func twoHPAs(t *testing.T, b *bed) {
	b.create(t, "own", 1, 5)
	own, err := b.client.AutoscalingV2().HorizontalPodAutoscalers("default").Get(t.Context(), "own-function",
		metav1.GetOptions{})
	require.NoError(t, err)
	require.EqualValues(t, 80, *own.Spec.Metrics[0].Resource.Target.AverageUtilization)
	require.Equal(t, "own", metav1.GetControllerOf(own).Name)
	b.createHPA(t, hpa("second", "own", 1))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		for _, name := range []string{"own-function", "second"} {
			h, err := b.client.AutoscalingV2().HorizontalPodAutoscalers("default").Get(t.Context(), name, metav1.GetOptions{})
			require.NoError(c, err)
			require.Contains(c, reasons(h), "AmbiguousSelector")
		}
	}, patience, often)

	// Without maxReplicas the HPA stays.
	patch := []byte(`{"spec":{"maxReplicas":null}}`)
	_, err = b.functions().Patch(t.Context(), "own", types.MergePatchType, patch, metav1.PatchOptions{})
	require.NoError(t, err)
	b.status(t, "own", func(s status, f *unstructured.Unstructured) bool {
		_, has := s.Conditions[partHPA]
		return s.ObservedGeneration == f.GetGeneration() && !has
	})
	_, err = b.client.AutoscalingV2().HorizontalPodAutoscalers("default").Get(t.Context(), "own-function",
		metav1.GetOptions{})
	require.NoError(t, err)
}

func reasons(h *autoscalingv2.HorizontalPodAutoscaler) (reasons []string) {
	for _, c := range h.Status.Conditions {
		reasons = append(reasons, c.Reason)
	}
	return reasons
}

func namesake(t *testing.T, b *bed) {
	b.create(t, "named", 1, 0)
	b.status(t, "named", func(s status, f *unstructured.Unstructured) bool {
		return s.ObservedGeneration == f.GetGeneration() && s.Conditions[partStatefulSet].done()
	})
	// An idle Function is not reconciled: the HPA's own rescale wakes it. A late reconcile would delete the HPA before.
	b.operator.Pause()
	t.Cleanup(b.operator.Resume)
	b.createHPA(t, hpa("named", "named", 2))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		f, err := b.functions().Get(t.Context(), "named", metav1.GetOptions{})
		require.NoError(c, err)
		replicas, _, err := unstructured.NestedInt64(f.Object, "spec", "replicas")
		require.NoError(c, err)
		require.EqualValues(c, 2, replicas)
	}, patience, often)
	b.operator.Resume()
	require.Eventually(t, func() bool {
		_, err := b.client.AutoscalingV2().HorizontalPodAutoscalers("default").Get(t.Context(), "named", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	}, patience, often)
	b.running(t, "named", 2)
}

func restarts(t *testing.T, b *bed) {
	b.create(t, "dying", 1, 0)
	require.NoError(t, b.runner.of("dying")[0].Kill())
	b.running(t, "dying", 1)
	require.Len(t, b.runner.of("dying"), 2)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		p, err := b.client.CoreV1().Pods("default").Get(t.Context(), "dying-function-0", metav1.GetOptions{})
		require.NoError(c, err)
		require.Len(c, p.Status.ContainerStatuses, 1)
		require.True(c, p.Status.ContainerStatuses[0].Ready)
		require.EqualValues(c, 1, p.Status.ContainerStatuses[0].RestartCount)
	}, patience, often)
}

func misconfiguration(t *testing.T, b *bed) {
	f := Function("default", "lost", FunctionConfig{Topics: []string{"in"}, PulsarConfig: "missing", Replicas: 1})
	_, err := b.functions().Create(t.Context(), f, metav1.CreateOptions{})
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		p, err := b.client.CoreV1().Pods("default").Get(t.Context(), "lost-function-0", metav1.GetOptions{})
		require.NoError(c, err)
		require.Len(c, p.Status.ContainerStatuses, 1)
		require.NotNil(c, p.Status.ContainerStatuses[0].State.Waiting)
		require.Equal(c, "CreateContainerConfigError", p.Status.ContainerStatuses[0].State.Waiting.Reason)
		require.Contains(c, p.Status.ContainerStatuses[0].State.Waiting.Message, `"missing" not found`)
	}, patience, often)
	_, err = b.client.CoreV1().ConfigMaps("default").Create(t.Context(),
		PulsarConfig("default", "missing", "http://127.0.0.1:8080", "pulsar://127.0.0.1:6650"), metav1.CreateOptions{})
	require.NoError(t, err)
	b.running(t, "lost", 1)
}

func sinks(t *testing.T, b *bed) {
	s := Sink("default", "sunk", FunctionConfig{Topics: []string{"in"}, PulsarConfig: settings, Replicas: 2})
	resource := b.sinks()
	_, err := resource.Create(t.Context(), s, metav1.CreateOptions{})
	require.NoError(t, err)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		live, err := resource.Get(t.Context(), "sunk", metav1.GetOptions{})
		require.NoError(c, err)
		now, err := readStatus(live)
		require.NoError(c, err)
		require.EqualValues(c, 2, now.Replicas)
		require.Contains(c, now.Selector, "app.kubernetes.io/name=sunk-sink")
	}, patience, often)
	b.running(t, "sunk", 2)
	require.NoError(t, resource.Delete(t.Context(), "sunk", metav1.DeleteOptions{}))
	b.running(t, "sunk", 0)
}
