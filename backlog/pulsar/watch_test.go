// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const lookupOrders = "/lookup/v2/topic/persistent/public/default/orders"

// When a broker restarts, all watches of its topics end together.
func TestManyLookupsLeaveTimeForTopics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := newNetwork(t)
		broker := way.broker("broker:8080")
		source := way.source(Config{MaxConnsPerHost: 4, RequestTimeout: time.Second})
		ctx, stop := context.WithCancel(t.Context())
		var watches sync.WaitGroup
		for i := range 200 {
			name := fmt.Sprintf("watched-%d", i)
			broker.on(strings.Replace(lookupOrders, "orders", name, 1), func(w http.ResponseWriter, _ *http.Request) {
				time.Sleep(100 * time.Millisecond)
				w.WriteHeader(http.StatusNotFound)
			})
			watches.Go(func() { _, _ = source.Watch(ctx, broker.topic(name), func() {}) })
		}
		synctest.Wait()
		begin := time.Now()
		_, err := source.Fetch(t.Context(), broker.topic("orders"), requestTracked())
		require.ErrorIs(t, err, backlog.ErrTopicNotFound)
		require.Less(t, time.Since(begin), 500*time.Millisecond)
		stop()
		watches.Wait()
	})
}

func TestALookupWithoutATurnNamesItsOwnLimit(t *testing.T) {
	broker := newFakeBroker(t)
	source := newSource(t, Config{MaxConnsPerHost: 8, MaxRequestsPerSecondPerHost: 1}, broker)
	release, err := source.client.lookups.takeTurn(t.Context(), hostURL(broker.host()))
	require.NoError(t, err)
	defer release()
	ctx, end := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer end()
	_, err = source.client.broker(ctx, broker.topic("orders"))
	require.ErrorIs(t, err, errHeldBack)
	require.ErrorContains(t, err, "its 2 connections or 1 requests per second were used up")
}

func TestWatchConnectsToAllowedBrokersOnly(t *testing.T) {
	closed := "127.0.0.1:1" // nothing listens
	tests := map[string]struct {
		answer  string
		allowed []string
		reason  error
		text    string
		result  string
	}{
		"an address that is allowed": {
			`{"brokerUrl":"pulsar://` + closed + `","brokerUrlTls":null,"httpUrl":"http://elsewhere"}`,
			[]string{"pulsar://" + closed},
			backlog.ErrUnreachable, "unreachable: " + closed + ": connection refused", "unreachable",
		},
		"an address that is not": {
			`{"brokerUrl":"pulsar://` + closed + `"}`,
			[]string{"pulsar://127.0.0.1:2", "http://" + closed},
			backlog.ErrHostNotAllowed, "host not allowed: " + closed + " is not an allowed Pulsar host: add it to " +
				allowedHostsFix, "host_not_allowed",
		},
		"credentials without TLS": {
			`{"brokerUrl":"pulsar://` + closed + `"}`,
			[]string{closed},
			backlog.ErrHostNotAllowed,
			"host not allowed: " + closed + " gets the autoscaler's own credentials over https only: use its https URL, or " +
				"add pulsar://" + closed + " to " + allowedHostsFix + ", which sends them in clear text", "host_not_allowed",
		},
		"no address without TLS": {
			`{"brokerUrlTls":"pulsar+ssl://` + closed + `"}`, nil, backlog.ErrUnsupported,
			"not supported: ADMIN names no pulsar:// address of the broker of persistent://public/default/orders",
			"unsupported",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			b := newFakeBroker(t)
			b.on(lookupOrders, answers(test.answer))
			registry := prometheus.NewRegistry()
			source, err := New(Config{
				Registerer: registry, AllowedHosts: append(test.allowed, b.URL), Own: ownToken(t, "own"),
			})
			require.NoError(t, err)
			t.Cleanup(source.Close)
			message, err := source.Watch(t.Context(), b.topic("orders"), func() { t.Error("it does not watch") })
			require.False(t, message)
			require.ErrorIs(t, err, test.reason)
			require.EqualError(t, err, strings.ReplaceAll(test.text, "ADMIN", b.host()))
			require.InDelta(t, 1.0, testutil.ToFloat64(source.client.metrics.requests.WithLabelValues("subscribe",
				test.result)), 0)
		})
	}
}
