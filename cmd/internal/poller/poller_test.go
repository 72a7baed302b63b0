// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package poller

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestTheFlagsBoundRequests(t *testing.T) {
	store, err := backlog.NewStore(10*time.Second, time.Minute, backlog.Bounds{})
	require.NoError(t, err)
	o := NewOptions()
	o.AllowedPulsarHosts, o.PulsarTimeout = []string{"http://pulsar:8080"}, time.Minute // the longest one
	o.MaxRequestsPerCluster, o.MaxRequestsPerSecond = 5, 7
	require.Empty(t, o.Check())
	parts, err := New(Config{
		Options: o, Store: store, Updated: func(backlog.Topic) {}, Registerer: prometheus.NewRegistry(),
	})
	require.NoError(t, err)
	t.Cleanup(parts.Source.Close)
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	t.Cleanup(cancel)
	_, err = parts.Source.Fetch(ctx, backlog.Topic{
		Cluster: backlog.Cluster{AdminURL: "http://pulsar:8080"}, Name: "persistent://public/default/orders",
	}, backlog.Request{Detail: backlog.Slim})
	require.ErrorContains(t, err, "its 5 connections or 7 requests per second were used up")
}
