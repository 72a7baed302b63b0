// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package keda

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

// triggerSamples are the samples of triggers as name{labels} value, sorted.
func triggerSamples(t *testing.T, registry *prometheus.Registry) []string {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	var all []string
	for _, family := range families {
		name, ours := strings.CutPrefix(family.GetName(), "pulsar_autoscaler_trigger_")
		for _, sample := range family.GetMetric() {
			var labels []string
			for _, label := range sample.GetLabel() {
				labels = append(labels, label.GetValue())
			}
			if ours {
				all = append(all, fmt.Sprintf("%s of %s: %g", name, strings.Join(labels, "/"), sample.GetGauge().GetValue()))
			}
		}
	}
	slices.Sort(all)
	return all
}

func TestTriggersWithoutAPolicyAreShown(t *testing.T) {
	env := newEnvironment()
	env.readings[topicSubject()] = reading(env.now)
	env.policies[policyKey()] = decidedPolicy(7, env.now)
	registry := prometheus.NewPedanticRegistry()
	config := env.config()
	config.Registerer = registry
	server := New(config)
	request := func(metadata ...string) {
		t.Helper()
		_, err := server.IsActive(t.Context(), ref(metadata...))
		require.NoError(t, err)
	}
	backlogTrigger := []string{"topic", "orders", "subscription", "resize", "messagesPerReplica", "100"}
	require.Empty(t, triggerSamples(t, registry), "KEDA has requested none")

	request(backlogTrigger...)
	request("topic", "orders", "subscription", "resize", "messagesPerSecondPerReplica", "10")
	request("policy", "resize")
	const labels = ` of media/resize-scaler/subscription "resize" on persistent://public/default/orders: `
	require.Equal(t, []string{
		"process_rate" + labels + "100", "publish_rate" + labels + "100", "ready_messages" + labels + "250",
	}, triggerSamples(t, registry), "two triggers of one subject")

	env.change(func() { env.unread = errBrokerDown; env.replicas[scaledObject()] = 3 })
	env.pass(30 * time.Second)
	request(backlogTrigger...)
	require.Equal(t, []string{"held" + labels + "1"}, triggerSamples(t, registry), "what is unknown has no sample")

	env.pass(requestedWithin)
	require.Empty(t, triggerSamples(t, registry), "KEDA requests it no more")
}

func TestTriggersOfTwoConnectionsAreTwoSubjects(t *testing.T) {
	east, west := topicSubject(), topicSubject()
	east.Connection, west.Connection = "east", "west"
	require.Equal(t, topicSubject().describe()+` of connection "east"`, east.describe())
	require.NotEqual(t, east.describe(), west.describe())
	east.Component = function.Component{
		Kind: function.KindFunction, Tenant: "public", Namespace: "default", Name: "resize",
	}
	require.Contains(t, east.describe(), `resize of connection "east"`)
}
