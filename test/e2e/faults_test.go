// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
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
	f.AwaitConditions(t, "Ready=True/Scaling")
	awaitLearned(t, f)
	f.AwaitReplicas(t, replicas, replicas)
	return f
}

// awaitLearned waits until the status has the capacity of a replica, and returns it.
func awaitLearned(t *testing.T, f *stage.Function) *v1alpha1.Capacity {
	t.Helper()
	return f.AwaitPolicy(t, "a capacity", func(p *v1alpha1.AutoscalingPolicy) bool {
		return p.Status.Capacity != nil
	}).Status.Capacity
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

func TestFaultABrokerThatCrashesAndComesBackWithItsCountersAtZeroHoldsReplicas(t *testing.T) {
	f := settled(t, "killed")
	since := time.Now()
	scene.Broker.Kill()
	said := f.AwaitConditions(t, "Ready=False/Stale")
	require.Contains(t, said, "no good answer since")
	require.Contains(t, said, "connection refused")
	f.AwaitHPA(t, "ScalingActive=False", "connection refused")
	requireNeverFell(t, f, since)

	require.NoError(t, scene.Broker.Restart(t.Context()))
	f.AwaitConditions(t, "Ready=True/Scaling")
	f.AwaitHPA(t, "ScalingActive=True")
	f.AwaitDone(t, 100)
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
	said := f.AwaitConditions(t, "Ready=False/TopicNotFound")
	require.Contains(t, said, f.Topic)
	f.AwaitHPA(t, "ScalingActive=False", f.Topic)

	require.NoError(t, scene.Broker.CreateTopic(t.Context(), f.Topic, 2))
	said = f.AwaitConditions(t, "Ready=False/SubscriptionNotFound")
	require.Contains(t, said, `no subscription "public/default/`+name+`"`)

	require.NoError(t, scene.Broker.CreateSubscription(t.Context(), f.Topic, "public/default/"+name, broker.Earliest))
	f.AwaitConditions(t, "Ready=True/Scaling")
	f.AwaitHPA(t, "ScalingActive=True")
}

func TestFaultAWrongAdminURLIsNamedAndItsCorrectionFound(t *testing.T) {
	t.Parallel()
	const name = "wrong-url"
	f := addFunction(t, stage.FunctionConfig{
		Name: name, ServiceTime: 10 * time.Millisecond, Replicas: 3, AdminURL: "http://127.0.0.1:1",
	})
	addPolicy(t, newPolicy(name))
	said := f.AwaitConditions(t, "Ready=False/PulsarUnreachable")
	require.Contains(t, said, "127.0.0.1:1")
	require.Contains(t, said, "connection refused")
	f.AwaitHPA(t, "ScalingActive=False", "connection refused")
	replicas, err := f.Replicas(t.Context())
	require.NoError(t, err)
	require.Equal(t, int64(3), replicas.Spec)

	forbidden := pulsarConfig(name, "http://metadata.internal:80")
	require.NoError(t, scene.Client.Update(t.Context(), forbidden))
	said = f.AwaitConditions(t, "Ready=False/HostNotAllowed")
	require.Contains(t, said, "metadata.internal is not an allowed Pulsar host: add it to --allowed-pulsar-hosts")

	require.NoError(t, scene.Client.Update(t.Context(), pulsarConfig(name, scene.Broker.AdminURL())))
	f.AwaitConditions(t, "Ready=True/Scaling")
	f.AwaitHPA(t, "ScalingActive=True")
}

func pulsarConfig(name, adminURL string) client.Object {
	return mesh.PulsarConfig(stage.Namespace, name+"-pulsar", adminURL, scene.Broker.ServiceURL())
}
