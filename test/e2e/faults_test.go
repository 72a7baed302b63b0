// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// settled is a Function at 50/s with 3 replicas of 25/s each. Two could never drain a backlog, so every decision is at
// least 3. The status has its learned capacity.
func settled(t *testing.T, name string) *stage.Function {
	t.Helper()
	const replicas = 3
	f := addFunction(t, stage.FunctionConfig{Name: name, ServiceTime: 40 * time.Millisecond, Replicas: replicas})
	addPolicy(t, newPolicy(name))
	publish(t, f, load.Constant(50))
	awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionTrue, "Scaling")
	awaitLearned(t, f)
	awaitReplicas(t, f, replicas, replicas, patience)
	return f
}

// awaitLearned waits until the status has the capacity of a replica, and returns it.
func awaitLearned(t *testing.T, f *stage.Function) *v1alpha1.Capacity {
	t.Helper()
	var learned *v1alpha1.Capacity
	await(t, f, "the capacity to be in the status", patience, func(ctx context.Context) (bool, string, error) {
		p, err := f.Policy(ctx)
		if err != nil {
			return false, "", err
		}
		learned = p.Status.Capacity
		return learned != nil, "none", nil
	})
	return learned
}

// requireNeverFell fails if spec.replicas fell since the given time.
func requireNeverFell(t *testing.T, f *stage.Function, since time.Time) {
	t.Helper()
	least, before := 0, 0
	for _, sample := range scene.Mesh.Timeline(stage.Namespace, f.Name) {
		if sample.Time.Before(since) {
			least, before = sample.Desired, sample.Desired
			continue
		}
		least = min(least, sample.Desired)
	}
	require.NotZero(t, before, "there was no replica to lose")
	require.GreaterOrEqual(t, least, before, "replicas fell: %+v", scene.Mesh.Timeline(stage.Namespace, f.Name))
}

// processesOn waits until more messages are processed.
func processesOn(t *testing.T, f *stage.Function) {
	t.Helper()
	before, _ := f.Score.Totals()
	await(t, f, "messages to be done again", patience, func(context.Context) (bool, string, error) {
		done, _ := f.Score.Totals()
		return done > before+100, fmt.Sprint(done-before, " more"), nil
	})
}

func TestFaultABrokerThatHangsHoldsReplicas(t *testing.T) {
	f := settled(t, "paused")
	since := time.Now()
	require.NoError(t, scene.Broker.Pause())
	t.Cleanup(func() { _ = scene.Broker.Resume() }) // if the test ends while it hangs

	said := awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionFalse, "Stale")
	require.Contains(t, said, "no good answer since")
	require.Contains(t, said, "no answer within 1s")
	hpaSaid := awaitAutoscaler(t, f, corev1.ConditionFalse)
	require.Contains(t, hpaSaid, "no good answer since", "the HPA must say in plain words what is wrong")
	requireNeverFell(t, f, since)

	require.NoError(t, scene.Broker.Resume())
	awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionTrue, "Scaling")
	awaitAutoscaler(t, f, corev1.ConditionTrue)
	requireNeverFell(t, f, since)
	processesOn(t, f)
}

func TestFaultABrokerThatCrashesAndComesBackWithItsCountersAtZeroHoldsReplicas(t *testing.T) {
	f := settled(t, "killed")
	since := time.Now()
	scene.Broker.Kill()
	said := awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionFalse, "Stale")
	require.Contains(t, said, "connection refused")
	require.Contains(t, awaitAutoscaler(t, f, corev1.ConditionFalse), "connection refused")
	requireNeverFell(t, f, since)

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, scene.Broker.Restart(ctx))
	awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionTrue, "Scaling")
	awaitAutoscaler(t, f, corev1.ConditionTrue)
	processesOn(t, f)
	requireNeverFell(t, f, since)
}

func TestFaultAnAdapterThatCrashesHoldsReplicasAndRemembers(t *testing.T) {
	f := settled(t, "forgetful")
	since := time.Now()
	p, err := f.Policy(t.Context())
	require.NoError(t, err)
	require.NotNil(t, p.Status.Capacity)
	learned := p.Status.Capacity.Observations

	scene.Adapter.Kill()
	awaitAutoscaler(t, f, corev1.ConditionFalse)
	requireNeverFell(t, f, since)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, scene.Adapter.Start(ctx, scene))
	awaitAutoscaler(t, f, corev1.ConditionTrue)
	awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionTrue, "Scaling")
	requireNeverFell(t, f, since)
	p, err = f.Policy(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, p.Status.Capacity.Observations, learned, "what was learned survives")
}

func TestFaultAnAdapterThatIsStoppedEndsInOrderAndLeavesReplicas(t *testing.T) {
	f := settled(t, "rolled-out")
	since := time.Now()
	require.NoError(t, scene.Adapter.Stop(), "SIGTERM was not enough")
	require.Contains(t, scene.Adapter.LogTail(), "msg=stopped")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	require.NoError(t, scene.Adapter.Start(ctx, scene))
	awaitAutoscaler(t, f, corev1.ConditionTrue)
	awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionTrue, "Scaling")
	requireNeverFell(t, f, since)
}

func TestFaultAMissingTopicAndAMissingSubscriptionAreToldApart(t *testing.T) {
	t.Parallel()
	const name = "missing"
	// Its replicas would create the topic and the subscription, so they start late.
	f := addFunction(t, stage.FunctionConfig{
		Name: name, ServiceTime: 10 * time.Millisecond, Replicas: 3, StartDelay: time.Hour, WithoutTopic: true,
	})
	addPolicy(t, newPolicy(name))
	said := awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionFalse, "TopicNotFound")
	require.Contains(t, said, f.Topic)
	require.Contains(t, awaitAutoscaler(t, f, corev1.ConditionFalse), f.Topic)

	require.NoError(t, scene.Broker.CreateTopic(t.Context(), f.Topic, 2))
	said = awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionFalse, "SubscriptionNotFound")
	require.Contains(t, said, `no subscription "public/default/`+name+`"`)

	require.NoError(t, scene.Broker.CreateSubscription(t.Context(), f.Topic, "public/default/"+name, broker.Earliest))
	awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionTrue, "Scaling")
	awaitAutoscaler(t, f, corev1.ConditionTrue)
}

func TestFaultAWrongAdminURLIsNamedAndItsCorrectionFound(t *testing.T) {
	t.Parallel()
	const name = "wrong-url"
	f := addFunction(t, stage.FunctionConfig{
		Name: name, ServiceTime: 10 * time.Millisecond, Replicas: 3, AdminURL: "http://127.0.0.1:1",
	})
	addPolicy(t, newPolicy(name))
	said := awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionFalse, "PulsarUnreachable")
	require.Contains(t, said, "127.0.0.1:1")
	require.Contains(t, said, "connection refused")
	require.Contains(t, awaitAutoscaler(t, f, corev1.ConditionFalse), "connection refused")
	replicas, err := f.Replicas(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(3), replicas.Spec)

	forbidden := pulsarConfig(name, "http://metadata.internal:80")
	require.NoError(t, scene.Client.Update(t.Context(), forbidden))
	said = awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionFalse, "HostNotAllowed")
	require.Contains(t, said, "metadata.internal is not an allowed Pulsar host: add it to --allowed-pulsar-hosts")

	require.NoError(t, scene.Client.Update(t.Context(), pulsarConfig(name, scene.Broker.AdminURL())))
	awaitCondition(t, f, v1alpha1.ConditionReady, metav1.ConditionTrue, "Scaling")
	awaitAutoscaler(t, f, corev1.ConditionTrue)
}

func pulsarConfig(name, adminURL string) client.Object {
	return mesh.PulsarConfig(stage.Namespace, name+"-pulsar", adminURL, scene.Broker.ServiceURL())
}
