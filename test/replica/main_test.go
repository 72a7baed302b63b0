// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package replica

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/broker"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/load"
)

const (
	patience = cluster.WaitLimit
	often    = 20 * time.Millisecond
)

// sharedBroker is the broker of all tests of this package.
var sharedBroker = shared.New("a real broker", func(ctx context.Context) (*broker.Broker, error) {
	return broker.Start(ctx, broker.Config{Progress: os.Stderr, WithoutWorker: true})
}, (*broker.Broker).Discard)

func TestMain(m *testing.M) { shared.Main(m, sharedBroker) }

// instance creates a topic and returns replica 0 of a function that consumes it.
func instance(t *testing.T, b *broker.Broker, name string) Instance {
	t.Helper()
	require.NoError(t, b.CreateTopic(t.Context(), name, 0))
	return Instance{
		Tenant: "public", Namespace: "default", Name: name, Topics: []string{broker.TopicName(
			name)}, ServiceURL: b.ServiceURL(),
	}
}

// publish publishes n messages and returns when the broker has them.
func publish(t *testing.T, b *broker.Broker, topic string, n int64) {
	t.Helper()
	p, err := load.New(load.Config{ServiceURL: b.ServiceURL(), Topic: topic})
	require.NoError(t, err)
	defer p.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	end := make(chan error, 1)
	go func() { end <- p.Run(ctx, load.Burst(float64(n), 0, time.Second)) }()
	require.Eventually(t, func() bool { return p.Published() == n }, patience, often)
	cancel()
	require.NoError(t, <-end)
	require.Equal(t, n, p.Published())
}

// completions collects the completions of replicas.
type completions struct {
	mu  sync.Mutex // guards all
	all []Completion
}

func (c *completions) add(done Completion) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, done)
}

func (c *completions) list() []Completion {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Completion(nil), c.all...)
}

// sequences waits until messages 1 to n have completed.
func (c *completions) sequences(t *testing.T, n int) []Completion {
	t.Helper()
	require.Eventually(t, func() bool {
		seen := map[uint64]bool{}
		for _, done := range c.list() {
			seen[done.Sequence] = true
		}
		return len(seen) >= n
	}, patience, often)
	all := c.list()
	for _, done := range all {
		require.NotZero(t, done.Sequence)
		require.LessOrEqual(t, done.Sequence, uint64(n))
		require.False(t, done.Done.Truncate(time.Millisecond).Before(done.Published), "%v is done before it was published",
			done)
	}
	return all
}

// subscription is the broker's statistics of a function's subscription.
type subscription struct {
	Type       string `json:"type"`
	MsgBacklog int64  `json:"msgBacklog"`
	Unacked    int64  `json:"unackedMessages"`
	Consumers  []struct {
		Metadata map[string]string `json:"metadata"`
		Permits  int               `json:"availablePermits"`
	} `json:"consumers"`
}

func observe(t *testing.T, b *broker.Broker, in Instance) subscription {
	t.Helper()
	path := "/admin/v2/" + strings.Replace(in.Topics[0], "://", "/", 1) + "/stats"
	answer, err := b.Demand(t.Context(), http.MethodGet, path, nil)
	require.NoError(t, err)
	var stats struct {
		Subscriptions map[string]subscription `json:"subscriptions"`
	}
	require.NoError(t, json.Unmarshal(answer, &stats))
	return stats.Subscriptions[in.withDefaults().Subscription]
}

func ready(t *testing.T, r Replica) {
	t.Helper()
	select {
	case <-r.Ready():
	case <-r.Done():
		t.Fatal("the replica ended before it was ready: ", r.(interface{ Err() error }).Err())
	case <-time.After(patience):
		t.Fatal("the replica is not ready: ", r.(interface{ Err() error }).Err())
	}
}

// scrape reads the pulsar_function_* series of a replica: values by name, with _sum and _count, and the labels of each.
func scrape(t *testing.T, r Replica) (values map[string]float64, labels map[string]map[string]string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.MetricsURL(), nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer func() { require.NoError(t, response.Body.Close()) }()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(response.Body)
	require.NoError(t, err)
	values, labels = map[string]float64{}, map[string]map[string]string{}
	for name, family := range families {
		if !strings.HasPrefix(name, "pulsar_function_") || len(family.GetMetric()) == 0 {
			continue
		}
		metric := family.GetMetric()[0]
		labels[name] = map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[name][label.GetName()] = label.GetValue()
		}
		switch {
		case metric.GetSummary() != nil:
			values[name+"_sum"] = metric.GetSummary().GetSampleSum()
			values[name+"_count"] = float64(metric.GetSummary().GetSampleCount())
		case metric.GetCounter() != nil:
			values[name] = metric.GetCounter().GetValue()
		case metric.GetGauge() != nil:
			values[name] = metric.GetGauge().GetValue()
		}
	}
	return values, labels
}
