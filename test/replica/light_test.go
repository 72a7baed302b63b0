// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/bench/load"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
)

// light returns a runner that is closed after the test's replicas.
func light(t *testing.T) (*Light, *completions) {
	t.Helper()
	var got completions
	runner := NewLight(got.add)
	t.Cleanup(runner.Close)
	return runner, &got
}

// start starts a replica of the given type that ends with the test.
func start[R Replica](t *testing.T, runner Runner, in Instance) R {
	t.Helper()
	r, err := runner.Start(t.Context(), in)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Kill()) })
	return r.(R)
}

func TestLightConsumesAsItsFunctionAtItsServiceTime(t *testing.T) {
	b := sharedBroker.Need(t)
	in := instance(t, b, "light")
	in.ID, in.ServiceTime, in.ReceiverQueueSize = 3, 10*time.Millisecond, 5
	runner, got := light(t)
	r := start[*Consumer](t, runner, in)
	ready(t, r)
	publish(t, b, in.Topics[0], 100)

	all := got.sequences(t, 100)
	require.Len(t, all, 100)
	for _, done := range all {
		require.Equal(t, 3, done.Instance)
	}
	// A busy machine is slower, never faster.
	require.GreaterOrEqual(t, all[99].Done.Sub(all[0].Done), 99*in.ServiceTime-debtMax)
	t.Logf("100 messages of %s took %s", in.ServiceTime, all[99].Done.Sub(all[0].Done))

	seen := observe(t, b, in)
	require.Equal(t, Shared, seen.Type)
	require.Len(t, seen.Consumers, 1)
	require.Equal(t, map[string]string{"application": "pulsar-function", "id": "public/default/light", "instance_id": "3"},
		seen.Consumers[0].Metadata)

	values, _ := scrape(t, r)
	require.EqualValues(t, 100, values["pulsar_function_received_total"])
	require.EqualValues(t, 100, values["pulsar_function_processed_successfully_total"])
	require.EqualValues(t, 0, values["pulsar_function_user_exceptions_total"])
	require.EqualValues(t, 100, values["pulsar_function_process_latency_ms_count"])
	require.InDelta(t, time.Now().UnixMilli(), values["pulsar_function_last_invocation"], float64(patience.Milliseconds()))

	require.NoError(t, r.Stop(t.Context()))
	seen = observe(t, b, in)
	require.Empty(t, seen.Consumers)
	require.Zero(t, seen.MsgBacklog, "a replica that stops acknowledges processed messages")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.MetricsURL(), nil)
	require.NoError(t, err)
	_, err = http.DefaultClient.Do(request) //nolint:bodyclose // there is none
	require.ErrorContains(t, err, "refused")
}

func TestLightGivesFailedMessagesBack(t *testing.T) {
	b := sharedBroker.Need(t)
	in := instance(t, b, "failing")
	in.FailEvery, in.RedeliverAfter = 3, 100*time.Millisecond
	runner, got := light(t)
	r := start[*Consumer](t, runner, in)
	publish(t, b, in.Topics[0], 10)
	got.sequences(t, 10)
	values, _ := scrape(t, r)
	require.GreaterOrEqual(t, values["pulsar_function_user_exceptions_total"], 3.0)
	require.Equal(t, values["pulsar_function_received_total"],
		values["pulsar_function_user_exceptions_total"]+values["pulsar_function_processed_successfully_total"])
	require.Eventually(t, func() bool { return observe(t, b, in).MsgBacklog == 0 }, patience, often)
}

func TestLightGivesItsMessagesBackWhenKilled(t *testing.T) {
	b := sharedBroker.Need(t)
	in := instance(t, b, "killed")
	in.ServiceTime = time.Hour
	runner, got := light(t)
	first := start[*Consumer](t, runner, in)
	ready(t, first)
	publish(t, b, in.Topics[0], 10)
	require.Eventually(t, func() bool { return observe(t, b, in).Unacked == 10 }, patience, often)
	require.NoError(t, first.Kill())
	require.EqualValues(t, 10, observe(t, b, in).MsgBacklog)
	require.Empty(t, got.list())

	in.ID, in.ServiceTime = 1, 0
	start[*Consumer](t, runner, in)
	require.Eventually(t, func() bool { return len(got.list()) == 10 }, patience, often)
	require.Equal(t, 1, got.list()[9].Instance)
}

func TestLightWaitsForANamespaceThatDoesNotExistYet(t *testing.T) {
	b := sharedBroker.Need(t)
	runner, _ := light(t)
	in := Instance{
		Tenant: "public", Namespace: "later", Name: "early", Topics: []string{"persistent://public/later/early"},
		ServiceURL: b.ServiceURL(), SubscriptionType: KeyShared, Subscription: "own",
	}
	r := start[*Consumer](t, runner, in)
	require.Eventually(t, func() bool { return r.Err() != nil }, patience, often)
	require.ErrorContains(t, r.Err(), "subscribing to")
	_, err := b.Demand(t.Context(), http.MethodPut, "/admin/v2/namespaces/public/later", nil)
	require.NoError(t, err)
	require.NoError(t, b.CreateTopic(t.Context(), in.Topics[0], 0))
	ready(t, r)
	require.NoError(t, r.Err())
	require.Equal(t, "Key_Shared", observe(t, b, in).Type)
}

func TestLightEndsWithItsContextAlsoWhileItCannotConnect(t *testing.T) {
	runner, _ := light(t)
	ctx, cancel := context.WithCancel(t.Context())
	r, err := runner.Start(ctx, good())
	require.NoError(t, err)
	cancel()
	<-r.Done()
	require.NoError(t, r.Stop(t.Context()), "Stop after the end is harmless")
}

func TestLightPassesMessagesOnToItsOutput(t *testing.T) {
	b := sharedBroker.Need(t)
	in := instance(t, b, "forwarding")
	in.Output = broker.TopicName("forwarded")
	require.NoError(t, b.CreateTopic(t.Context(), in.Output, 0))
	runner, got := light(t)
	r := start[*Consumer](t, runner, in)
	ready(t, r)
	publish(t, b, in.Topics[0], 10)
	got.sequences(t, 10)
	requireOutputs(t, b, in, 10)
}

// requireOutputs reads that many messages of the output and fails unless they are in the order of the input.
func requireOutputs(t *testing.T, b *broker.Broker, in Instance, count uint64) {
	t.Helper()
	client, err := broker.Connect(b.ServiceURL(), "")
	require.NoError(t, err)
	defer client.Close()
	reader, err := client.CreateReader(pulsar.ReaderOptions{
		Topic: in.Output, StartMessageID: pulsar.EarliestMessageID(),
	})
	require.NoError(t, err)
	defer reader.Close()
	for want := range count {
		message, err := reader.Next(t.Context())
		require.NoError(t, err)
		sequence, ok := load.Sequence(message.Payload())
		require.True(t, ok)
		require.Equal(t, want+1, sequence)
	}
}
