// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

// TestSignalsWorker reads back the functions, sinks and sources of a real worker. The last case stops the broker.
func TestSignalsWorker(t *testing.T) {
	t.Parallel()
	w := onWorker(t, broker.Config{})
	for _, c := range []struct {
		name string
		run  func(t *testing.T, w *workerBroker)
	}{
		{"a function's inputs, type and instances", aFunctionIsReadBack},
		{"patterns, a subscription name of one's own and order", inputsAreReadBack},
		{"one partition of a topic", aPartitionIsReadBack},
		{"a worker that has a URL of its own", theWorkersOwnURLIsAsked},
		{"what instances count", instancesCountWhatStatsSay},
		{"a sink", aSinkIsReadBack},
		{"a subscription that consumer properties name", propertiesAreReadBack},
		{"sources", sourcesAreReadBack},
		{"instances that do not run have no numbers", stoppedInstancesAreSilent},
		{"what does not exist", missingComponents},
		{"a broker that starts and one that is down", workersThatAreAway},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, w) })
	}
}

// aFunctionIsReadBack compares the configuration with the broker's consumers.
func aFunctionIsReadBack(t *testing.T, w *workerBroker) {
	for _, tt := range []struct {
		name   string
		config map[string]any
		want   backlog.SubscriptionType
	}{
		{"shared", nil, backlog.Shared},
		{"failover", map[string]any{"retainOrdering": true}, backlog.Failover},
		{"once", map[string]any{"processingGuarantees": "EFFECTIVELY_ONCE"}, backlog.Failover},
		{"keyed", map[string]any{"retainKeyOrdering": true}, backlog.KeyShared},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plain, parts := tt.name+"-in", tt.name+"-parts"
			require.NoError(t, w.CreateTopic(t.Context(), plain, 0))
			require.NoError(t, w.CreateTopic(t.Context(), parts, 2))
			config := w.function(tt.name, plain, "public/default/"+parts)
			for key, value := range tt.config {
				config[key] = value
			}
			w.create(t, function.KindFunction, config)

			got := w.describe(t, function.KindFunction, tt.name)
			require.Equal(t, backlog.Subscription{
				Cluster: w.cluster, Name: "public/default/" + tt.name,
				Topics:   []string{broker.TopicName(plain), broker.TopicName(parts)},
				Workload: w.component(function.KindFunction, tt.name),
			}, got.Subscription)
			require.Equal(t, tt.want, got.Type)
			require.Equal(t, 2, got.Parallelism)

			for _, topic := range got.Subscription.Topics {
				s := w.consumed(t, topic, got.Subscription.Name, 2)
				require.Equal(t, got.Type, s.Type, "the broker agrees")
				ids := map[string]bool{}
				for _, c := range s.Consumers {
					ids[c.ID] = true
					require.Equal(t, "public/default/"+tt.name, c.Component)
				}
				require.Equal(t,
					map[string]bool{"public/default/" + tt.name + "#0": true, "public/default/" + tt.name + "#1": true}, ids)
			}
		})
	}
}

// inputsAreReadBack has a topic and a pattern in one function, and checks the subscriptions of the pattern's topics.
func inputsAreReadBack(t *testing.T, w *workerBroker) {
	for _, topic := range []string{"rx-a", "rx-b", "literal"} {
		require.NoError(t, w.CreateTopic(t.Context(), topic, 0))
	}
	config := w.function("patterned")
	delete(config, "inputs")
	config["inputSpecs"] = map[string]any{
		"literal":                           map[string]any{"receiverQueueSize": 10},
		"persistent://public/default/rx-.*": map[string]any{"regexPattern": true},
	}
	config["subName"], config["retainOrdering"] = "my/custom sub", true
	w.create(t, function.KindFunction, config)

	got := w.describe(t, function.KindFunction, "patterned")
	require.Equal(t, "my/custom sub", got.Subscription.Name)
	require.Equal(t, []string{broker.TopicName("literal")}, got.Subscription.Topics)
	require.Equal(t, []string{"persistent://public/default/rx-.*"}, got.Subscription.Patterns)
	require.Equal(t, backlog.Failover, got.Type)
	for _, topic := range []string{"literal", "rx-a", "rx-b"} {
		require.Equal(t, backlog.Failover, w.consumed(t, broker.TopicName(topic), "my/custom sub", 2).Type)
	}
}

// instancesCountWhatStatsSay compares with /stats, which the product does not read.
func instancesCountWhatStatsSay(t *testing.T, w *workerBroker) {
	const messages = 40
	require.NoError(t, w.CreateTopic(t.Context(), "counted-in", 0))
	config := w.function("counted", "counted-in")
	config["userConfig"].(map[string]any)["failEvery"] = "3"
	w.create(t, function.KindFunction, config)
	w.consumed(t, broker.TopicName("counted-in"), "public/default/counted", 2)

	idle := w.instances(t, function.KindFunction, "counted",
		func(s backlog.InstancesSample) bool { return len(s.Instances) == 2 })
	for _, i := range idle.Instances {
		require.Zero(t, i.Received)
		require.Zero(t, *i.BusyTime, "an instance that runs and has nothing to do is known to be idle")
	}
	w.publish(t, "counted-in", messages)
	var stats struct {
		Instances []struct {
			ID      int `json:"instanceId"`
			Metrics struct {
				Received  int64    `json:"receivedTotal"`
				Processed int64    `json:"processedSuccessfullyTotal"`
				User      int64    `json:"userExceptionsTotal"`
				System    int64    `json:"systemExceptionsTotal"`
				Latency   *float64 `json:"avgProcessLatency"`
			} `json:"metrics"`
		} `json:"instances"`
	}
	// Failed messages come again after a minute, so both must be of a time without changes.
	sample := w.instances(t, function.KindFunction, "counted", func(s backlog.InstancesSample) bool {
		var done int64
		for _, i := range s.Instances {
			done += i.Processed + i.UserExceptions
		}
		if done < messages {
			return false
		}
		path := "/admin/v3/functions/public/default/counted/stats"
		require.NoError(t, json.Unmarshal(w.demand(t, http.MethodGet, path), &stats))
		after, err := w.worker.FetchInstances(t.Context(), w.component(function.KindFunction, "counted"))
		return err == nil && reflect.DeepEqual(s.Instances, after.Instances)
	})
	require.Zero(t, sample.Silent)
	require.False(t, sample.At.Before(idle.At))
	require.Len(t, stats.Instances, 2)
	said := map[string]backlog.InstanceSample{}
	for _, i := range sample.Instances {
		said[i.ID] = i
	}
	failures := int64(0)
	for _, want := range stats.Instances {
		got := said[fmt.Sprintf("public/default/counted#%d", want.ID)]
		require.Equal(t, want.Metrics.Received, got.Received)
		require.Equal(t, want.Metrics.Processed, got.Processed)
		require.Equal(t, want.Metrics.User, got.UserExceptions)
		require.Equal(t, want.Metrics.System, got.SystemExceptions)
		require.Equal(t, got.Processed+got.UserExceptions, *got.Calls)
		require.True(t, got.FailedCallsCounted)
		if want.Metrics.Latency != nil {
			require.InEpsilon(t, *want.Metrics.Latency*float64(*got.Calls), got.BusyTime.Seconds()*1000, 1e-6)
		}
		failures += got.UserExceptions
	}
	require.Positive(t, failures, "failed calls are among those that were compared")
}

func aSinkIsReadBack(t *testing.T, w *workerBroker) {
	const messages = 30
	require.NoError(t, w.CreateTopic(t.Context(), "sink-in", 2))
	w.create(t, function.KindSink, map[string]any{
		"tenant": "public", "namespace": "default", "name": "drain", "className": replica.SinkClass,
		"inputs":                 []string{"sink-in"},
		"sourceSubscriptionName": "mine", "parallelism": 2, "retainKeyOrdering": true,
	})
	got := w.describe(t, function.KindSink, "drain")
	require.Equal(t, "mine", got.Subscription.Name)
	require.Equal(t, []string{broker.TopicName("sink-in")}, got.Subscription.Topics)
	require.Equal(t, backlog.KeyShared, got.Type)
	require.Equal(t, 2, got.Parallelism)
	require.Equal(t, backlog.KeyShared, w.consumed(t, broker.TopicName("sink-in"), "mine", 2).Type)

	w.publish(t, "sink-in", messages)
	sample := w.instances(t, function.KindSink, "drain", func(s backlog.InstancesSample) bool {
		var written, received int64
		for _, i := range s.Instances {
			written += i.Processed
			received += i.Received
		}
		return written >= messages && received == written // what Pulsar delivers again counts again
	})
	require.Zero(t, sample.Silent)
	for _, i := range sample.Instances {
		require.Equal(t, i.Received, i.Processed)
		require.Nil(t, i.Calls)
		require.Nil(t, i.BusyTime)
	}
}

// sourcesAreReadBack: a batch source consumes the tasks that it discovers, other sources consume nothing.
func sourcesAreReadBack(t *testing.T, w *workerBroker) {
	batch := map[string]any{
		"tenant": "public", "namespace": "default", "name": "tasks", "className": replica.BatchSourceClass,
		"topicName":   "tasks-out",
		"parallelism": 2, "batchSourceConfig": map[string]any{"discoveryTriggererClassName": replica.TriggererClass},
	}
	w.create(t, function.KindSource, batch)
	got := w.describe(t, function.KindSource, "tasks")
	require.Equal(t, []string{broker.TopicName("tasks-intermediate")}, got.Subscription.Topics)
	s := w.consumed(t, got.Subscription.Topics[0], got.Subscription.Name, 2)
	require.Equal(t, backlog.Shared, s.Type)
	require.Equal(t, s.Type, got.Type)
	w.instances(t, function.KindSource, "tasks", func(s backlog.InstancesSample) bool {
		var written int64
		for _, i := range s.Instances {
			written += i.Processed
		}
		return written >= 5 && s.Silent == 0
	})

	w.create(t, function.KindSource, map[string]any{
		"tenant": "public", "namespace": "default", "name": "silent", "className": replica.SourceClass,
		"topicName": "silent-out", "parallelism": 1,
	})
	_, err := w.worker.Describe(t.Context(), w.component(function.KindSource, "silent"))
	require.ErrorIs(t, err, backlog.ErrUnsupported)
	sample := w.instances(t, function.KindSource, "silent",
		func(s backlog.InstancesSample) bool { return len(s.Instances) == 1 })
	require.Zero(t, sample.Instances[0].Processed)
}
