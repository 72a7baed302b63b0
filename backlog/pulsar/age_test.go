// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// onAge answers differently when the age is requested.
func onAge(with, without http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("getEarliestTimeInBacklog") == "true" {
			with(w, r)
			return
		}
		without(w, r)
	}
}

func TestAnAgeThatCannotBeReadDoesNotCostTheRest(t *testing.T) {
	good := answers(subscription(map[string]any{"backlogSize": 5, "earliestMsgPublishTimeInBacklog": 0}))
	trace := sends(http.StatusInternalServerError, "text/plain",
		" --- An unexpected error occurred in the server ---\n\norg.apache.bookkeeper...")
	tests := map[string]struct {
		with    http.HandlerFunc
		without http.HandlerFunc
		detail  backlog.Detail
		err     error
		counts  map[string]float64
	}{
		"when the read from storage fails": {
			with: trace, without: good, detail: backlog.Bytes,
			counts: map[string]float64{"partitions ok": 1, "stats-age unavailable": 1, "stats ok": 1},
		},
		"when the read times out": {
			with: hangs, without: good, detail: backlog.Bytes,
			counts: map[string]float64{"partitions ok": 1, "stats-age unreachable": 1, "stats ok": 1},
		},
		"when the broker does not know the parameter": {
			with: good, without: good, detail: backlog.Bytes,
			counts: map[string]float64{"partitions ok": 1, "stats-age ok": 1},
		},
		"the error of the plain call when both fail": {
			with: trace, without: sends(500, "text/plain", "no"), err: backlog.ErrUnavailable,
			counts: map[string]float64{"partitions ok": 1, "stats-age unavailable": 1, "stats unavailable": 1},
		},
		"but a topic that moves is not requested for any more often": {
			with: says(503, "Namespace bundle is being unloaded"), without: good, err: backlog.ErrUnavailable,
			counts: map[string]float64{"partitions ok": 1, "stats-age unavailable": 2},
		},
		"and a missing permission is not requested about twice": {
			with: says(401, "no"), without: good, err: backlog.ErrForbidden,
			counts: map[string]float64{"partitions ok": 1, "stats-age forbidden": 1},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				registry := prometheus.NewRegistry()
				way := newNetwork(t)
				broker := way.broker("broker:8080")
				broker.on("orders/partitions", answers(notPartitioned))
				broker.on("orders/stats", onAge(tt.with, tt.without))
				source := way.source(Config{Registerer: registry})
				sample, err := source.Fetch(t.Context(), broker.topic("orders"),
					backlog.Request{Detail: backlog.Age | backlog.Bytes})
				require.ErrorIs(t, err, tt.err)
				require.Equal(t, tt.detail, sample.Detail)
				require.Equal(t, tt.counts, counted(t, registry))
			})
		})
	}
}

// TestStorageThatHangsHoldsFewConnections: each request for an age holds a connection until its timeout.
func TestStorageThatHangsHoldsFewConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		way := newNetwork(t)
		broker := way.broker("broker:8080")
		var looks spells
		hang := func(w http.ResponseWriter, r *http.Request) {
			defer looks.begin()()
			hangs(w, r)
		}
		good := answers(subscription(map[string]any{"earliestMsgPublishTimeInBacklog": -1}))
		broker.on("orders/partitions", answers(notPartitioned))
		broker.on("orders/stats", onAge(hang, good))
		source := way.source(Config{MaxConnsPerHost: 16})
		fetch := func() (backlog.Detail, error) {
			sample, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Age})
			return sample.Detail, err
		}
		var group errgroup.Group
		for range 16 {
			group.Go(func() error {
				for range 60 {
					if detail, err := fetch(); err != nil || detail != backlog.Slim {
						return fmt.Errorf("%v: %w", detail, err)
					}
					after(time.Second)
				}
				return nil
			})
		}
		require.NoError(t, group.Wait())
		synctest.Wait() // the last handlers have noticed that they were given up
		most, count := looks.most()
		require.Equal(t, 8, most, "the other half is for other requests")
		require.LessOrEqual(t, count, 8+8, "then one look tries it now and then")

		broker.on("orders/stats", good)
		after(maxProbe)
		detail, err := fetch()
		require.NoError(t, err)
		require.Equal(t, backlog.Age, detail)
		requireIdle(t, source.client.chain)
		requireIdle(t, source.ages)
	})
}

// spells are when requests began and ended. A client that waits for one to end may begin the next before the server of
// the first has noticed, but not at an earlier time: so the clock distinguishes them, not their order.
type spells struct {
	mu    sync.Mutex
	edges []edge // guarded by mu
}

type edge struct {
	at    time.Time
	delta int
}

func (s *spells) begin() (end func()) {
	s.add(1)
	return func() { s.add(-1) }
}

func (s *spells) add(delta int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.edges = append(s.edges, edge{time.Now(), delta})
}

// most is the maximum at the same time, and the number of requests. At the same time, ends come before beginnings.
func (s *spells) most() (most, count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	slices.SortStableFunc(s.edges, func(a, b edge) int { return cmp.Or(a.at.Compare(b.at), a.delta-b.delta) })
	now := 0
	for _, e := range s.edges {
		now += e.delta
		most, count = max(most, now), count+max(0, e.delta)
	}
	return most, count
}
