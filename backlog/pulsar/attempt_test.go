// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestFailuresOfOneTopicDoNotOpenTheBreaker(t *testing.T) {
	tests := map[string]http.HandlerFunc{
		"a 500":                         sends(500, "text/plain", "trace"),
		"a 503 in Pulsar's words":       says(503, "Namespace bundle is being unloaded"),
		"a 412":                         says(412, "Failed to find ownership"),
		"a 404":                         says(404, "Topic not found"),
		"a missing permission":          says(401, "Unauthorized"),
		"refused credentials":           sends(401, "text/html", "<html>"),
		"other errors":                  sends(200, "text/html", "<html>"),
		"garbage":                       answers("garbage"),
		"a redirect to a place unknown": redirectsTo("http://elsewhere:8080"),
	}
	for name, answer := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				way := newNetwork(t)
				broker := way.broker("broker:8080")
				broker.on("bad/partitions", answers(notPartitioned))
				broker.on("bad/stats", answer)
				recorded(t, broker)
				source := way.source(Config{})
				for range 10 {
					_, err := source.Fetch(t.Context(), broker.topic("bad"), backlog.Request{Detail: backlog.Slim})
					require.Error(t, err)
					require.NotErrorIs(t, err, errHeldBack)
				}
				_, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Slim})
				require.NoError(t, err)
			})
		})
	}
}

func TestImpatientCallersDoNotOpenTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := newNetwork(t)
		broker := way.broker("broker:8080")
		recorded(t, broker)
		way.fail("broker:8080", delays(time.Second))
		source := way.source(Config{})
		for range 10 {
			short, cancel := context.WithTimeout(t.Context(), time.Second/2)
			_, err := source.Fetch(short, broker.topic("orders"), backlog.Request{Detail: backlog.Slim})
			require.ErrorIs(t, err, context.DeadlineExceeded)
			cancel()
		}
		_, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Slim})
		require.NoError(t, err)
	})
}

// TestSlowConsumersDoNotOpenTheBreaker: a topic may have more consumers than a request has time for.
func TestSlowConsumersDoNotOpenTheBreaker(t *testing.T) {
	tests := map[string]http.HandlerFunc{
		"the broker does not answer":          hangs,
		"the answer does not end":             neverEnds(http.StatusOK, goodTopic[:10]),
		"a load balancer gives the answer up": sends(http.StatusGatewayTimeout, "text/html", ""),
	}
	for name, slow := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				way := newNetwork(t)
				broker := way.broker("broker:8080")
				broker.on("orders/partitions", answers(notPartitioned))
				broker.on("orders/stats", func(w http.ResponseWriter, r *http.Request) {
					if r.FormValue("excludeConsumers") == "false" {
						slow(w, r)
						return
					}
					answers(goodTopic)(w, r)
				})
				source := way.source(Config{})
				for range 2 * failuresToOpen {
					_, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Consumers})
					require.True(t, backlog.TimedOut(err), "the next attempt is to be a slim one: %v", err)
				}
				_, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Slim})
				require.NoError(t, err)
				requireIdle(t, source.client.chain)
			})
		})
	}
}

// TestSlowAgesDoNotOpenTheBreaker: they are read from storage, and storage that hangs does not affect other requests.
func TestSlowAgesDoNotOpenTheBreaker(t *testing.T) {
	tests := map[string]http.HandlerFunc{
		"the broker does not answer":          hangs,
		"a load balancer gives the answer up": sends(http.StatusGatewayTimeout, "text/html", ""),
	}
	for name, slow := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				way := newNetwork(t)
				broker := way.broker("broker:8080")
				broker.on("orders/partitions", answers(notPartitioned))
				broker.on("orders/stats", onAge(slow, answers(goodTopic)))
				source := way.source(Config{})
				var group errgroup.Group
				for range 2 * failuresToOpen { // concurrently, so that there is no good answer in between
					group.Go(func() error {
						_, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Age})
						return err
					})
				}
				require.NoError(t, group.Wait())
				before := len(broker.requested())
				_, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Age})
				require.NoError(t, err)
				require.Len(t, broker.requested(), before+1, "the age is not requested while storage hangs")
				requireIdle(t, source.client.chain)
			})
		})
	}
}

// TestDurationsAreOfRequestsAlone: waiting for a turn has a separate metric, and a request that was not sent has no
// duration.
func TestDurationsAreOfRequestsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := prometheus.NewRegistry()
		way := newNetwork(t)
		broker := way.broker("broker:8080")
		recorded(t, broker)
		source := way.source(Config{Registerer: registry, MaxConnsPerHost: 1})
		_, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Slim})
		require.NoError(t, err)
		broker.on("orders/stats", func(w http.ResponseWriter, _ *http.Request) {
			after(time.Second)
			answers(goodTopic)(w, nil)
		})
		var group errgroup.Group
		for range 2 { // the second waits for the first
			group.Go(func() error {
				_, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Slim})
				return err
			})
		}
		require.NoError(t, group.Wait())
		count, sum := histogram(t, registry, "stats")
		require.Equal(t, uint64(3), count)
		require.InDelta(t, 2, sum, 1e-9)

		source.Close()
		way.fail("broker:8080", refuse)
		for range failuresToOpen + 5 {
			_, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Slim})
			require.Error(t, err)
		}
		require.Equal(t, 5.0, counted(t, registry)["stats held_back"])
		count, _ = histogram(t, registry, "stats")
		require.Equal(t, uint64(3+failuresToOpen), count)
	})
}

// histogram returns the number of requests of a call and their total time in seconds.
func histogram(t *testing.T, registry *prometheus.Registry, call string) (count uint64, sum float64) {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != "pulsar_autoscaler_source_request_duration_seconds" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if metric.GetLabel()[0].GetValue() == call {
				return metric.GetHistogram().GetSampleCount(), metric.GetHistogram().GetSampleSum()
			}
		}
	}
	return 0, 0
}
