// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
	pulsaredge "github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
)

// TestSignalsBrokerWithoutWorker reads the statistics of all topics of a broker without a function worker.
func TestSignalsBrokerWithoutWorker(t *testing.T) {
	t.Parallel()
	w := onWorker(t, broker.Config{Worker: broker.WorkerOff, Settings: map[string]string{
		"statsUpdateInitialDelayInSecs": "1", "statsUpdateFrequencyInSecs": "1", // 60 and 60 otherwise
	}})
	t.Run("says so", func(t *testing.T) {
		for _, kind := range []function.Kind{function.KindFunction, function.KindSink, function.KindSource} {
			component := w.component(kind, "nope")
			_, err := w.worker.Describe(t.Context(), component)
			require.ErrorIs(t, err, backlog.ErrNoWorker, err)
			require.ErrorContains(t, err, "set functionsWorkerEnabled=true on the brokers")
			_, err = w.worker.FetchInstances(t.Context(), component.Workload())
			require.ErrorIs(t, err, backlog.ErrNoWorker, err)
		}
	})
	t.Run("tells all topics at once", func(t *testing.T) { allTopicsAtOnce(t, w) })
}

// allTopicsAtOnce publishes, and waits for the broker's next update of its statistics.
func allTopicsAtOnce(t *testing.T, w *workerBroker) {
	require.NoError(t, w.CreateTopic(t.Context(), "bulk", 0))
	require.NoError(t, w.CreateTopic(t.Context(), "bulk-parts", 2))
	for _, topic := range []string{"bulk", "bulk-parts"} {
		require.NoError(t, w.CreateSubscription(t.Context(), topic, "s", broker.Earliest))
		w.publish(t, topic, 10)
	}
	bulk, err := w.source.BrokerStats(bulkOf("bulk", "bulk-parts"))
	require.NoError(t, err)
	waiting := map[string]int64{"bulk": 10, "bulk-parts-partition-0": 5, "bulk-parts-partition-1": 5}
	until(t, func(ctx context.Context) (string, bool) {
		sample, err := bulk.FetchBulk(ctx, w.cluster)
		if err != nil {
			return err.Error(), false
		}
		require.WithinRange(t, sample.At, time.Now().Add(-time.Hour), time.Now().Add(-time.Minute))
		for name, messages := range waiting {
			topic := sample.Topics[broker.TopicName(name)]
			if topic.PublishedMessages != messages ||
				topic.Subscriptions["s"] != (backlog.BulkSubscription{BacklogEntries: messages}) {
				return fmt.Sprintf("%+v", sample.Topics), false
			}
		}
		require.Len(t, sample.Topics, len(waiting), "only what was wanted")
		return "", true
	})
}

// bulkOf expects these topics of public/default.
func bulkOf(names ...string) pulsaredge.BrokerStatsConfig {
	wanted := map[string]bool{}
	for _, name := range names {
		wanted[broker.TopicName(name)] = true
	}
	return pulsaredge.BrokerStatsConfig{Wanted: func(topic backlog.Topic) bool { return wanted[topic.Name] }}
}
