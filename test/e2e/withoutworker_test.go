// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/function"
)

func TestSignalsBrokerWithoutWorker(t *testing.T) {
	w := newWorkerBroker(t, onGround(t).Broker)
	for _, kind := range []function.Kind{function.KindFunction, function.KindSink, function.KindSource} {
		component := w.component(kind, "nope")
		_, err := w.worker.Describe(t.Context(), component)
		require.ErrorIs(t, err, backlog.ErrNoWorker, err)
		require.ErrorContains(t, err, "set functionsWorkerEnabled=true on the brokers")
		_, err = w.worker.FetchInstances(t.Context(), component)
		require.ErrorIs(t, err, backlog.ErrNoWorker, err)
	}
}
