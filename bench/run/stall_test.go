// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStallIsFound(t *testing.T) {
	at := func(second float64, ready int, published, done int64) Sample {
		return Sample{Seconds: second, ReadyReplicas: &ready, Published: published, Done: &done}
	}
	unknown := Sample{Seconds: 15, Published: 9, Done: new(int64(5))}
	noResults := Sample{ReadyReplicas: new(2), Published: 9}
	for name, test := range map[string]struct {
		samples []Sample
		want    bool
	}{
		"no result for 30 s":         {[]Sample{at(0, 2, 9, 5), at(15, 2, 9, 5), at(30, 2, 9, 5)}, true},
		"no result for less":         {[]Sample{at(0, 2, 9, 5), at(29, 2, 9, 5)}, false},
		"a result in between":        {[]Sample{at(0, 2, 9, 5), at(15, 2, 9, 6), at(30, 2, 9, 6)}, false},
		"no result after one":        {[]Sample{at(0, 2, 9, 5), at(15, 2, 9, 6), at(45, 2, 9, 6)}, true},
		"no ready replica for a bit": {[]Sample{at(0, 2, 9, 5), at(15, 0, 9, 5), at(30, 2, 9, 5)}, false},
		"all messages have results":  {[]Sample{at(0, 2, 9, 9), at(30, 2, 9, 9)}, false},
		"the first message is late":  {[]Sample{at(0, 2, 5, 5), at(29, 2, 6, 5), at(31, 2, 6, 5)}, false},
		"unknown replicas for a bit": {[]Sample{at(0, 2, 9, 5), unknown, at(30, 2, 9, 5)}, false},
		"unknown results":            {[]Sample{noResults, noResults}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := stall{after: stallAfter}
			last := len(test.samples) - 1
			for _, sample := range test.samples[:last] {
				require.False(t, s.isAt(sample))
			}
			require.Equal(t, test.want, s.isAt(test.samples[last]))
		})
	}
}

func TestStallSaysWhereMessagesAre(t *testing.T) {
	stats := `{"subscriptions": {"f": {"consumers": [
		{"availablePermits": 0, "unackedMessages": 1000}, {"availablePermits": 400, "unackedMessages": 600},
		{"availablePermits": 1000, "unackedMessages": 0}]}, "starting": {"consumers": []}}}`
	seen := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.URL.String()
		_, _ = io.WriteString(w, stats)
	}))
	t.Cleanup(server.Close)
	r := &runner{admin: adminAt(t, server.URL)}
	now := Sample{ReadyReplicas: new(3), Published: 9000, Done: new(int64(1672))}

	text := r.stalled(t.Context(), of("f"), now, 30*time.Second)
	require.Equal(t, "no result came for 30s, with 3 ready replicas and 7328 messages without a result; "+
		"2 of 3 consumers have 1600 unacknowledged messages, and consumers with permits but no messages: 1; "+
		"look for a dispatch rate limit of the topic, or give the machine more CPU, and run it again", text)
	require.Equal(t, adminPath(topic)+"/stats", <-seen)

	r.Scenario.Partitions = 2
	require.Empty(t, r.stalled(t.Context(), of("starting"), now, time.Second))
	require.Equal(t, adminPath(topic)+"/partitioned-stats?perPartition=false", <-seen)
	server.Close()
	require.Empty(t, r.stalled(t.Context(), of("f"), now, time.Second), "unknown")
}
