// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const goodTopic = `{"msgInCounter":5,"subscriptions":{}}`

// recorded sends the answer of the real broker.
func recorded(t *testing.T, b *fakeBroker) {
	t.Helper()
	b.on("orders/partitions", answers(notPartitioned))
	b.on("orders/stats", answers(string(fixture(t, "4.0.8-topic-stats-function-p2.json"))))
	b.on("orders/internalStats", answers(string(fixture(t, "4.0.8-internalStats.json"))))
}

// chunked sends more than fits into a known length.
func chunked(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.WriteString(w, body)
	}
}

// neverEnds sends a text and then nothing, and keeps the connection.
func neverEnds(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
}

func TestFaultsOnTheWay(t *testing.T) {
	const (
		timeout = 3 * time.Second
		broken  = "unreachable: broker:8080 for persistent://public/default/orders: the connection was closed before the " +
			"answer was complete"
		late = "unreachable: broker:8080 for persistent://public/default/orders: no answer within 3s"
	)
	stats := string(fixture(t, "4.0.8-topic-stats-function-p2.json"))
	tests := map[string]struct {
		fault fault
		// answer of the stats call, if the broker itself is faulty.
		answer http.HandlerFunc
		reason error
		// text may be the beginning; it is empty if the fetch succeeds.
		text string
		took time.Duration
	}{
		// two pieces
		"a slow way is no fault": {
			fault: delays(200 * time.Millisecond),
			took:  400 * time.Millisecond,
		},
		"a way that is too slow": {
			fault: delays(4 * time.Second), reason: backlog.ErrUnreachable,
			text: late, took: timeout,
		},
		"a byte now and then": {
			fault:  drips(200 * time.Millisecond),
			reason: backlog.ErrUnreachable, text: late, took: timeout,
		},
		"no bytes after the connection is established": {
			fault: swallows, reason: backlog.ErrUnreachable, text: late,
			took: timeout,
		},
		"no connection": {
			fault: refuse, reason: backlog.ErrUnreachable,
			text: "unreachable: broker:8080 for persistent://public/default/orders: connection refused",
		},
		"an end before the first byte":     {fault: cutsAfter(0), reason: backlog.ErrUnreachable, text: broken},
		"an end in the middle of the head": {fault: cutsAfter(40), reason: backlog.ErrUnreachable, text: broken},
		"an end in the middle of the body": {
			fault: cutsAfter(1000), reason: backlog.ErrUnreachable,
			text: broken,
		},
		"an end in the middle of a body without length": {
			fault: cutsAfter(1000), answer: chunked(stats),
			reason: backlog.ErrUnreachable, text: broken,
		},
		"something that is not HTTP": {
			fault: sendsInstead("\x00\x00\x00\x19\x00\x00\x00\x15 garbage \xff\xfe\n"), reason: backlog.ErrUnreachable,
			text: "unreachable: broker:8080 for persistent://public/default/orders: malformed HTTP",
		},
		"a head without an end": {
			fault: sendsInstead("HTTP/1.1 200 OK\r\nX-More: more\r\n"), reason: backlog.ErrUnreachable,
			text: "unreachable: broker:8080 for persistent://public/default/orders: ",
		},
		"a 503 in Pulsar's words": {
			answer: says(503, "Namespace bundle is being unloaded"), reason: backlog.ErrUnavailable, took: retryPause,
			text: `unavailable: broker:8080 says "Namespace bundle is being unloaded" of persistent://public/default/orders: retried soon`,
		},
		"a 503 without an end": {
			answer: neverEnds(503, ""), reason: backlog.ErrUnavailable, took: timeout,
			text: "unavailable: broker:8080 answered 503 for persistent://public/default/orders: retried soon",
		},
		"a valid answer that never ends": {
			answer: neverEnds(200, goodTopic), reason: backlog.ErrUnreachable, text: late,
			took: timeout,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				way := newNetwork(t)
				broker := way.broker("broker:8080")
				recorded(t, broker)
				source := way.source(Config{RequestTimeout: timeout})
				fetch := func() error {
					sample, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Slim})
					if err == nil {
						require.Equal(t, int64(20), sample.Partitions[0].PublishedMessages)
					}
					return err
				}
				require.NoError(t, fetch())
				source.Close() // the fault is for new connections
				synctest.Wait()
				way.fail("broker:8080", tt.fault)
				if tt.answer != nil {
					broker.on("orders/stats", tt.answer)
				}

				start := time.Now()
				err := fetch()
				require.Equal(t, tt.took, time.Since(start))
				require.ErrorIs(t, err, tt.reason)
				if tt.reason != nil {
					require.True(t, strings.HasPrefix(err.Error(), tt.text), err.Error())
					require.Less(t, len(err.Error()), 400, "no part of the answer")
				}

				way.fail("broker:8080", nil)
				recorded(t, broker)
				require.NoError(t, fetch(), "the next call is good again")
				requireIdle(t, source.client.chain)
			})
		})
	}
}

// TestABrokerThatIsDownIsSpared polls a topic each second for some minutes while its broker is down.
func TestABrokerThatIsDownIsSpared(t *testing.T) {
	tests := map[string]struct {
		fault  fault
		answer http.HandlerFunc
		text   string
		// dials while it is down, if new connections are opened; otherwise requests are counted.
		requested int
	}{
		"and refuses connections": {
			fault: refuse, requested: 3 + 9,
			text: "unreachable: broker:8080 for persistent://public/default/%s: connection refused, since " +
				"2000-01-01T00:00:01Z: one request at a time tries it again, at least every 30s",
		},
		"and the load balancer reports it": {
			answer: sends(503, "text/html", ""), requested: 3 + 9,
			text: "unavailable: broker:8080 for persistent://public/default/%s: it answers 503, since 2000-01-01T00:00:01Z: " +
				"one request at a time tries it again, at least every 30s",
		},
		"and answers 429": {
			answer: sends(429, "text/html", ""), requested: 3 + 9,
			text: "unavailable: broker:8080 for persistent://public/default/%s: it answers 429 (httpRequestsMaxPerSecond), " +
				"since 2000-01-01T00:00:01Z: one request at a time tries it again, at least every 30s",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				registry := prometheus.NewRegistry()
				way := newNetwork(t)
				broker := way.broker("broker:8080")
				recorded(t, broker)
				broker.on("other/partitions", answers(notPartitioned))
				broker.on("other/stats", answers(goodTopic))
				source := way.source(Config{Registerer: registry})
				fetch := func(topic string) error {
					_, err := source.Fetch(t.Context(), broker.topic(topic), backlog.Request{Detail: backlog.Slim})
					return err
				}
				require.NoError(t, fetch("orders"))
				source.Close()
				after(time.Second)
				if tt.fault != nil {
					way.fail("broker:8080", tt.fault)
				} else {
					broker.on("orders/partitions", tt.answer)
					broker.on("orders/stats", tt.answer)
					broker.on(checkPath, tt.answer)
				}
				dials, requests := way.dialed("broker:8080"), len(broker.requested())
				texts := map[string]int{}
				for range 180 {
					texts[fetch("orders").Error()]++
					after(time.Second)
				}
				if tt.fault != nil {
					require.Equal(t, tt.requested, way.dialed("broker:8080")-dials)
				} else {
					require.InDelta(t, tt.requested, len(broker.requested())-requests, 1)
				}
				require.LessOrEqual(t, len(texts), 2, "the text stays the same: %v", texts)
				require.GreaterOrEqual(t, texts[fmt.Sprintf(tt.text, "orders")], 177)
				require.EqualError(t, fetch("other"), fmt.Sprintf(tt.text, "other"), "all topics of the host are held back")
				require.Equal(t, 1.0, gauge(t, registry, "pulsar_autoscaler_source_hosts_backing_off"))

				way.fail("broker:8080", nil)
				recorded(t, broker)
				broker.on(checkPath, answers("ok"))
				after(maxProbe)
				require.NoError(t, fetch("orders"))
				require.NoError(t, fetch("other"))
				require.Zero(t, gauge(t, registry, "pulsar_autoscaler_source_hosts_backing_off"))
				requireIdle(t, source.client.chain)
			})
		})
	}
}

func gauge(t *testing.T, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("no metric " + name)
	return 0
}
