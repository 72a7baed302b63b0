// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestAnAnswerFromACacheIsAsOldAsItSays(t *testing.T) {
	tests := map[string]struct {
		age  string
		want time.Duration
	}{
		"no cache in between":   {"", 0},
		"some seconds":          {"7", 7 * time.Second},
		"with spaces":           {" 30 ", 30 * time.Second},
		"a negative age":        {"-5", 0},
		"words":                 {"old", 0},
		"a fraction":            {"1.5", 0},
		"a very large age":      {"86400000", time.Hour},
		"more than 64 bits":     {"99999999999999999999", time.Hour},
		"an age beyond 64 bits": {"-99999999999999999999", 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			broker := newFakeBroker(t)
			broker.on("orders/partitions", answers(notPartitioned))
			broker.on("orders/stats", func(w http.ResponseWriter, r *http.Request) {
				if tt.age != "" {
					w.Header().Set("Age", tt.age)
				}
				answers(subscription(nil))(w, r)
			})
			source, now := newSource(t, Config{}, broker), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
			source.now = func() time.Time { return now }

			sample, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Slim})

			require.NoError(t, err)
			require.Equal(t, now.Add(-tt.want), sample.At)
		})
	}
}

func TestRequestsAreNotForCaches(t *testing.T) {
	broker := newFakeBroker(t)
	broker.on("orders/partitions", answers(notPartitioned))
	broker.on("orders/stats", answers(subscription(nil)))
	_, err := newSource(t, Config{}, broker).Fetch(t.Context(), broker.topic("orders"),
		backlog.Request{Detail: backlog.Slim})
	require.NoError(t, err)
	for i := range broker.requested() {
		require.Equal(t, "no-cache", broker.request(i).Header.Get("Cache-Control"))
		require.Equal(t, "no-cache", broker.request(i).Header.Get("Pragma"))
	}
}
