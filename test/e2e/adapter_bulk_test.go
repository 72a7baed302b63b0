// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/mesh"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/stage"
)

// answers counts Pulsar's successful responses to an adapter, by call.
func answers(ctx context.Context, t *testing.T, a *stage.Adapter) map[string]float64 {
	t.Helper()
	text, err := scene.Ask(ctx, a, "/metrics")
	require.NoError(t, err)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	require.NoError(t, err)
	counts := map[string]float64{}
	for _, metric := range families["pulsar_autoscaler_source_requests_total"].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		if labels["result"] == "ok" {
			counts[labels["call"]] += metric.GetCounter().GetValue()
		}
	}
	return counts
}

// bulkSource is an adapter with one token for all clusters, without Secrets, and with the broker's statistics of all
// topics. One of its Functions has messages.
type bulkSource struct {
	secured  *secured
	adapter  *stage.Adapter
	messages pulsar.Client
	by       asker
}

const (
	idleFunctions = 12
	busyFunction  = "bulk-busy"
)

func idleFunction(i int) string { return fmt.Sprint("bulk-idle-", i) }

// newBulkSource starts the adapter, and returns when it has read all topics.
func newBulkSource(t *testing.T, s *secured) *bulkSource {
	t.Helper()
	admin := s.token(t, "admin", time.Hour)
	a, err := scene.AddAdapter(t.Context(), "adapter-bulk",
		"--bulk-source=BrokerStats", "--stale-after=3m", "--function-credentials=Ignore", "--pulsar-token-file="+file(t,
			"token", admin), "--allowed-pulsar-hosts="+s.AdminURL())
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the adapter with a bulk source:\n%s", a.LogTail())
		}
		a.Kill()
	})
	b := &bulkSource{
		secured: s, adapter: a, messages: pulsarClient(t, s.Broker, admin),
		by: func(ctx context.Context, path string) ([]byte, error) { return scene.Ask(ctx, a, path) },
	}
	b.add(t, busyFunction)
	fill(t, b.messages, privateTopic(busyFunction), 30)
	for i := range idleFunctions {
		b.add(t, idleFunction(i))
	}
	b.by.awaits(t, mesh.KindFunction, busyFunction, 30)
	for i := range idleFunctions {
		b.by.awaits(t, mesh.KindFunction, idleFunction(i), 0)
	}
	return b
}

func privateTopic(name string) string { return "persistent://private/work/" + name }

// add creates a Function with a topic and a consumer that acknowledges nothing. Its Secret is invalid, because the
// adapter must not read it.
func (b *bulkSource) add(t *testing.T, name string) {
	t.Helper()
	require.NoError(t, b.secured.CreateTopic(t.Context(), privateTopic(name), 0))
	consumer, err := b.messages.Subscribe(pulsar.ConsumerOptions{
		Topic: privateTopic(name), SubscriptionName: "public/default/" + name, Type: pulsar.Shared,
		Properties: instance("public/default/"+name, 0),
	})
	require.NoError(t, err)
	t.Cleanup(consumer.Close)
	addStill(t, mesh.KindFunction, name, b.secured.Broker, map[string]any{
		"input": map[string]any{"topics": []any{privateTopic(
			name)}}, "pulsar": map[string]any{"authSecret": "that-nobody-reads"},
	})
}

// answers counts the successful responses about all topics of the broker, and those about one.
func (b *bulkSource) answers(ctx context.Context, t *testing.T) (bulk, single float64) {
	t.Helper()
	counts := answers(ctx, t, b.adapter)
	return counts["broker-stats"], counts["stats"] + counts["stats-age"]
}

// test shows that the adapter does not poll idle topics after a bulk response about quiet topics, which on a busy
// machine is not the first, and that it notices new messages.
func (b *bulkSource) test(t *testing.T) {
	const looks = 8
	scene.Await(t, "a bulk answer", func(ctx context.Context) (bool, string, error) {
		bulk, single := b.answers(ctx, t)
		return bulk >= 1, fmt.Sprintf("%v bulk answers, %v about one topic", bulk, single), nil
	})
	fill(t, b.messages, privateTopic(idleFunction(0)), 50)
	_, before := b.answers(t.Context(), t)
	seen := map[time.Time]bool{} // readings of the busy topic, which are the clock
	scene.Await(t, "topics without work to be left alone", func(ctx context.Context) (bool, string, error) {
		value, err := b.by.value(ctx, mesh.KindFunction, busyFunction, readyMessages)
		if err != nil {
			return false, err.Error(), nil
		}
		if seen[value.Timestamp.Time] = true; len(seen) <= looks {
			return false, fmt.Sprint(len(seen), " looks"), nil
		}
		_, after := b.answers(ctx, t)
		told := fmt.Sprintf("%v answers about one of %d topics while the busy one was looked at %d times", after-before,
			idleFunctions+1, looks)
		t.Log(told)
		if after-before < float64((idleFunctions+1)*looks)/2 {
			return true, told, nil
		}
		before, seen = after, map[time.Time]bool{}
		return false, told, nil
	})
	b.by.awaits(t, mesh.KindFunction, idleFunction(0), 50)
}
