// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	pulsaredge "github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/replica"
)

// workerBroker is a broker with a function worker that runs functions as threads, and the product's readers of it.
type workerBroker struct {
	*broker.Broker
	source  *pulsaredge.Source
	worker  *pulsaredge.Worker
	cluster backlog.Cluster
	client  pulsar.Client
	// jar has the functions; collector receives their reports and discards them.
	jar       string
	collector string
}

// onWorker starts a broker for the test and its subtests.
func onWorker(t *testing.T, config broker.Config) *workerBroker {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a real broker")
	}
	config.Progress = os.Stderr
	b, err := broker.Start(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Discard()) })
	return newWorkerBroker(t, b)
}

// requestTimeout is longer than any stall of a busy machine, which these tests are not about.
const requestTimeout = time.Minute

// newWorkerBroker uses a running broker.
func newWorkerBroker(t *testing.T, b *broker.Broker) *workerBroker {
	t.Helper()
	source, err := pulsaredge.New(pulsaredge.Config{
		Registerer:     prometheus.NewRegistry(),
		AllowedHosts:   []string{"127.0.0.1"},
		RequestTimeout: requestTimeout,
	})
	require.NoError(t, err)
	t.Cleanup(source.Close)
	client, err := broker.Connect(b.ServiceURL(), "")
	require.NoError(t, err)
	t.Cleanup(client.Close)
	collector, err := replica.DiscardReports(t.Context())
	require.NoError(t, err)
	jar, err := replica.Jar(t.Context(), b.Dist(), os.Stderr)
	require.NoError(t, err)
	return &workerBroker{
		Broker: b, source: source, worker: source.Worker(0), cluster: backlog.Cluster{AdminURL: b.AdminURL()}, client: client,
		jar: jar, collector: collector,
	}
}

func (w *workerBroker) component(kind function.Kind, name string) function.Component {
	return function.Component{Cluster: w.cluster, Kind: kind, Tenant: "public", Namespace: "default", Name: name}
}

// function is the configuration of two instances that take 2 ms for each message.
func (w *workerBroker) function(name string, inputs ...string) map[string]any {
	return map[string]any{
		"tenant": "public", "namespace": "default", "name": name, "className": replica.FunctionClass, "runtime": "JAVA",
		"parallelism": 2, "inputs": inputs, "autoAck": true,
		"userConfig": map[string]any{"collector": w.collector, "token": name, "serviceMicros": "2000", "failEvery": "0"},
	}
}

// create creates a function, sink or source as pulsar-admin does, and deletes it at the end.
func (w *workerBroker) create(t *testing.T, kind function.Kind, config map[string]any) {
	t.Helper()
	component := broker.Component{Kind: string(kind), Config: config, Jar: w.jar}
	require.NoError(t, w.CreateComponent(t.Context(), component))
}

func (w *workerBroker) demand(t *testing.T, method, path string) []byte {
	t.Helper()
	answer, err := w.Demand(t.Context(), method, path, nil)
	require.NoError(t, err)
	return answer
}

func (w *workerBroker) publish(t *testing.T, topic string, messages int) {
	t.Helper()
	producer, err := w.client.CreateProducer(pulsar.ProducerOptions{
		Topic: broker.TopicName(topic), DisableBatching: true, MessageRouter: inTurn(),
	})
	require.NoError(t, err)
	defer producer.Close()
	for i := range messages {
		_, err := producer.Send(t.Context(), &pulsar.ProducerMessage{Payload: []byte("12345678"), Key: fmt.Sprint(i)})
		require.NoError(t, err)
	}
}

// inTurn publishes the same number of messages to every partition.
func inTurn() func(*pulsar.ProducerMessage, pulsar.TopicMetadata) int {
	next := -1
	return func(_ *pulsar.ProducerMessage, topic pulsar.TopicMetadata) int {
		next++
		return next % int(topic.NumPartitions())
	}
}

func (w *workerBroker) describe(t *testing.T, kind function.Kind, name string) function.Description {
	t.Helper()
	config, err := w.worker.Describe(t.Context(), w.component(kind, name))
	require.NoError(t, err)
	return config
}

// instances reads the component's instances until they are as expected.
func (w *workerBroker) instances(t *testing.T, kind function.Kind, name string,
	wanted func(backlog.InstancesSample) bool,
) (sample backlog.InstancesSample) {
	t.Helper()
	until(t, func(ctx context.Context) (string, bool) {
		var err error
		sample, err = w.worker.FetchInstances(ctx, w.component(kind, name))
		if err != nil {
			return err.Error(), false
		}
		return fmt.Sprintf("%+v", sample), wanted(sample)
	})
	return sample
}

// consumed waits until every partition of the topic has that many consumers of the subscription, and returns those of
// the first partition.
func (w *workerBroker) consumed(t *testing.T, topic, subscription string,
	consumers int,
) (first backlog.SubscriptionSample) {
	t.Helper()
	until(t, func(ctx context.Context) (string, bool) {
		sample, err := w.source.Fetch(ctx, backlog.Topic{Cluster: w.cluster, Name: topic},
			backlog.Request{Detail: backlog.Full})
		if err != nil {
			return err.Error(), false
		}
		enough := len(sample.Partitions) > 0
		for i := len(sample.Partitions) - 1; i >= 0; i-- {
			found := false
			for _, s := range sample.Partitions[i].Subscriptions {
				if s.Name == subscription {
					first, found = s, len(s.Consumers) == consumers
				}
			}
			enough = enough && found
		}
		return fmt.Sprintf("%+v", sample), enough
	})
	return first
}

// eventually waits until it holds, as long as every wait.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	until(t, func(context.Context) (string, bool) { return what, holds() })
}

// until repeats look until it returns true; its text is for the error.
func until(t *testing.T, look func(ctx context.Context) (seen string, done bool)) {
	t.Helper()
	err := cluster.WaitFor(t.Context(), "what is expected", 50*time.Millisecond,
		func(ctx context.Context) (bool, string, error) {
			seen, done := look(ctx)
			return done, seen, nil
		})
	require.NoError(t, err)
}
