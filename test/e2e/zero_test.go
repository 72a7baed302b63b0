// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/reader"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// idlePolicy may scale to zero after that many idle seconds, which is also its stabilization window.
func idlePolicy(name string, actuator v1alpha1.Actuator, cooldownSeconds int32) *v1alpha1.AutoscalingPolicy {
	p := newPolicy(name)
	p.Spec.MinReplicas, p.Spec.Actuator = new(int32), actuator
	p.Spec.Behavior.ScaleDown = &v1alpha1.ScaleDownRules{
		CooldownPeriodSeconds: &cooldownSeconds, StabilizationWindowSeconds: &cooldownSeconds,
	}
	return p
}

// setMode changes the mode of the Function's policy.
func setMode(t *testing.T, f *stage.Function, mode v1alpha1.Mode) {
	t.Helper()
	p, err := f.Policy(t.Context())
	require.NoError(t, err)
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"mode":%q}}`, mode))
	require.NoError(t, scene.Client.Patch(t.Context(), p, patch))
}

// scaleByHand does what kubectl scale does.
func scaleByHand(t *testing.T, s *stage.Stage, name string, replicas int32) {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(mesh.GroupVersion().WithKind(mesh.KindFunction))
	object.SetNamespace(stage.Namespace)
	object.SetName(name)
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas))
	require.NoError(t, s.Client.SubResource("scale").Patch(t.Context(), object, patch,
		client.FieldOwner("kubectl"))) // as the API server derives it from the user agent
}

// TestCoreZeroWithAnAutoscalerThatStopsAtOne scales to zero and back twice: for a few messages, and for many.
func TestCoreZeroWithAnAutoscalerThatStopsAtOne(t *testing.T) {
	t.Parallel()
	const name, actuator = "zero-hpa", v1alpha1.ActuatorHPA
	const each = 200 * time.Millisecond // a replica processes 5/s
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: each, Replicas: 2, Objective: objective})
	p := idlePolicy(name, actuator, 3)
	// of 30 messages each: the first replica may prefetch all messages
	p.Spec.LatencyObjective.Duration = 10 * time.Second
	addPolicy(t, p)
	stop := publish(t, f, load.Constant(7))
	awaitLearned(t, f)
	stop()
	f.AwaitReplicas(t, 0, 0)
	atZero(t, f, actuator)

	require.NoError(t, f.PublishBurst(t.Context(), 5))
	require.NoError(t, f.AwaitAllDone(t.Context()))
	f.AwaitReplicas(t, 0, 0)

	wakeAtItsSize(t, f)
}

// wakeAtItsSize publishes 150 messages, which are too many for two replicas, to a Function at zero, and waits for the
// zero after them. In mode Paused the messages accumulate, so that the first decision has all of them.
func wakeAtItsSize(t *testing.T, f *stage.Function) {
	t.Helper()
	setMode(t, f, v1alpha1.ModePaused)
	f.AwaitConditions(t, "Ready=True/Paused")
	require.NoError(t, f.PublishBurst(t.Context(), 150))
	f.AwaitPolicy(t, "measured with the messages", func(p *v1alpha1.AutoscalingPolicy) bool {
		return p.Status.Signals != nil && p.Status.Signals.ReadyMessages != nil && *p.Status.Signals.ReadyMessages >= 100
	})
	since := time.Now()
	setMode(t, f, v1alpha1.ModeAuto)
	require.NoError(t, f.AwaitAllDone(t.Context()))
	f.AwaitReplicas(t, 0, 0)
	desired := scene.Mesh.Desired(stage.Namespace, f.Name, since)[1:]
	require.GreaterOrEqual(t, desired[0], 3, "it wakes at its size: %v", desired)
	for i, one := range desired[:len(desired)-1] {
		require.NotZero(t, one, "it went back while there was work: %v", desired)
		require.True(t, i == 0 || one >= desired[0] || desired[i-1] > one, "it dipped on the way up: %v", desired)
	}
	t.Logf("woke and went: %v", desired)
}

// atZero describes the state at zero.
func atZero(t *testing.T, f *stage.Function, actuator v1alpha1.Actuator) {
	t.Helper()
	said := f.AwaitConditions(t, "Ready=True/ScaledToZero")
	require.Contains(t, said, "scaled to zero")
	hpa, err := f.Autoscaler(t.Context())
	require.NoError(t, err)
	if actuator == v1alpha1.ActuatorDirect {
		require.Nil(t, hpa)
		return
	}
	require.NotNil(t, hpa)
	require.Equal(t, int32(1), *hpa.Spec.MinReplicas, "this cluster takes no less")
	f.AwaitHPA(t, "ScalingActive=False/ScalingDisabled") // it finds no replicas
	replicas, err := f.Replicas(t.Context())
	require.NoError(t, err)
	require.Zero(t, replicas.Spec, "and it leaves it there")
	f.AwaitConditions(t, "Ready=True/ScaledToZero")
}

// aPushWakes restarts the adapter of the second stage, so that it polls every 5 minutes, and brokers push.
func aPushWakes(t *testing.T, s *stage.Stage) {
	t.Helper()
	const name, readers = "pushed", "pulsar_autoscaler_readers "
	f := s.TestFunction(t, stage.FunctionConfig{Name: name, ServiceTime: time.Millisecond, Partitions: 2})
	scaleByHand(t, s, name, 0)
	f.AwaitReplicas(t, 0, 0)
	topics := topicsOf(t, s.Broker, name)
	require.Contains(t, topics, broker.TopicName(name+"-in-partition-1"))
	require.NoError(t, s.Adapter.Stop())
	pushed, err := s.AddAdapter(t.Context(), name, "--wake-by-push", "--poll-interval=5m", "--stale-after=30m",
		"--allowed-pulsar-hosts="+s.Broker.ServiceURL())
	require.NoError(t, err)
	p := idlePolicy(name, v1alpha1.ActuatorDirect, 3600)
	p.Spec.LatencyObjective.Duration = time.Minute // or more: a shorter one is polled every 2 s
	require.NoError(t, s.Client.Create(t.Context(), p))
	reads := func(partitions string) {
		f.Await(t, partitions+" partitions to be watched", func(ctx context.Context) (bool, string, error) {
			metrics, err := s.Ask(ctx, pushed, "/metrics")
			return err == nil && strings.Contains(string(metrics), "\n"+readers+partitions+"\n"), fmt.Sprint(err), nil
		})
	}
	reads("2")
	require.Equal(t, topics, topicsOf(t, s.Broker, name), "no topic is created")
	require.NoError(t, f.PublishBurst(t.Context(), 10))
	f.AwaitReplicas(t, 1, 20)
	require.NoError(t, f.AwaitAllDone(t.Context()))
	reads("0")
	status, answer, err := s.Broker.Admin(t.Context(), http.MethodGet,
		"/admin/v2/persistent/public/default/"+name+"-in/partitioned-stats?perPartition=true", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	require.Contains(t, string(answer), "public/default/"+name)
	require.NotContains(t, string(answer), reader.SubscriptionPrefix, "no subscription is left")
}

// topicsOf are the persistent topics of public/default with this prefix, partitions included.
func topicsOf(t *testing.T, b *broker.Broker, prefix string) (topics []string) {
	t.Helper()
	status, answer, err := b.Admin(t.Context(), http.MethodGet, "/admin/v2/persistent/public/default", nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, status)
	require.NoError(t, json.Unmarshal(answer, &topics))
	topics = slices.DeleteFunc(topics, func(topic string) bool {
		return !strings.HasPrefix(topic, broker.TopicName(prefix))
	})
	slices.Sort(topics)
	return topics
}

func TestZeroAndOneStayThroughAnOutage(t *testing.T) {
	t.Parallel()
	onStage(t)
	b, err := broker.Start(t.Context(), broker.Config{WithoutWorker: true, Progress: os.Stderr})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Discard()) })
	replicas := map[string]int64{"out-hpa-0": 0, "out-hpa-1": 1, "out-direct-0": 0, "out-direct-1": 1}
	for name, count := range replicas {
		topic := broker.TopicName(name)
		require.NoError(t, b.CreateTopic(t.Context(), topic, 0))
		require.NoError(t, b.CreateSubscription(t.Context(), topic, "public/default/"+name, broker.Earliest))
		addWithoutReplicas(t, mesh.KindFunction, name, b, map[string]any{"input": map[string]any{"topics": []any{topic}}})
		scaleByHand(t, scene, name, int32(count))
		actuator := v1alpha1.ActuatorHPA
		if name[:5] == "out-d" {
			actuator = v1alpha1.ActuatorDirect
		}
		create(t, idlePolicy(name, actuator, 3600)) // longer than any test
	}
	steady := func() {
		for name, count := range replicas {
			require.Equal(t, count, replicasOf(t, name), name)
		}
	}
	for name, count := range replicas {
		reason := v1alpha1.ReasonScaling
		if count == 0 {
			reason = v1alpha1.ReasonScaledToZero
		}
		scene.AwaitConditions(t, name, "Ready=True/"+reason)
	}
	b.Kill()
	for name := range replicas {
		scene.AwaitConditions(t, name, "Ready=False/Stale")
	}
	steady()
	require.NoError(t, b.Restart(t.Context()))
	for name := range replicas {
		scene.AwaitConditions(t, name, "BacklogKnown=True/Measured")
	}
	steady()
	for name, count := range replicas {
		desired := scene.Mesh.Desired(stage.Namespace, name, time.Time{})
		if count == 0 {
			desired = append(desired, 0) // the operator notes no number if it sees the Function after that
		}
		require.LessOrEqual(t, slices.Max(desired), 1, name)
	}
}

// replicasOf is spec.replicas of a Function.
func replicasOf(t *testing.T, name string) int64 {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(mesh.GroupVersion().WithKind(mesh.KindFunction))
	require.NoError(t, scene.Client.Get(t.Context(), client.ObjectKey{Namespace: stage.Namespace, Name: name}, object))
	replicas, _, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
	require.NoError(t, err)
	return replicas
}
