// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/series"
)

func TestThePageHasEverySeries(t *testing.T) {
	o, err := ParseOptions([]string{
		"--kubeconfig=" + bareAPIServer(t), "--lease-namespace=pulsar-autoscaler", "--grpc-bind-address=127.0.0.1:0",
		"--metrics-bind-address=127.0.0.1:0",
	}, nil)
	require.NoError(t, err)
	recorder := series.NewRecorder()
	s, err := newScaler(t.Context(), o, slog.New(slog.DiscardHandler), recorder)
	require.NoError(t, err)
	require.NoError(t, s.grpc.Close())
	require.NoError(t, s.http.Close())
	recorder.ComparePage(t, "scaler", *update)
}
