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
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// awaitLearned waits until the status has the capacity of a replica, and returns it.
func awaitLearned(t *testing.T, f *stage.Function) *v1alpha1.Capacity {
	t.Helper()
	return f.AwaitPolicy(t, "a capacity", func(p *v1alpha1.AutoscalingPolicy) bool {
		return p.Status.Capacity != nil
	}).Status.Capacity
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
	scene.AwaitMessage(t, name, "Ready=False/PulsarUnreachable", "127.0.0.1:1", "connection refused")
	f.AwaitHPA(t, "ScalingActive=False", "connection refused")
	requireUntouched(t, f, 3)
	awaitAlert(t, f, "PulsarAutoscalerDataUnknown", true)

	forbidden := pulsarConfig(name, "http://metadata.internal:80")
	require.NoError(t, scene.Client.Update(t.Context(), forbidden))
	said := f.AwaitConditions(t, "Ready=False/HostNotAllowed")
	require.Contains(t, said, "metadata.internal is not an allowed Pulsar host: add it to --allowed-pulsar-hosts")

	require.NoError(t, scene.Client.Update(t.Context(), pulsarConfig(name, scene.Broker.AdminURL())))
	awaitAlert(t, f, "PulsarAutoscalerDataUnknown", false)
	f.AwaitConditions(t, "Ready=True/Scaling")
	f.AwaitHPA(t, "ScalingActive=True")
}

func pulsarConfig(name, adminURL string) client.Object {
	return mesh.PulsarConfig(stage.Namespace, name+"-pulsar", adminURL, scene.Broker.ServiceURL())
}
