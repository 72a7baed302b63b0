// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package polling

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestPrometheusIsShownItsTokenOverCertificatesThatAreTrusted(t *testing.T) {
	shown := make(chan string, 10)
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown <- r.Header.Get("Authorization")
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	dir := t.TempDir()
	token, authority := filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt")
	require.NoError(t, os.WriteFile(token, []byte("hunter2\n"), 0o600))
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	require.NoError(t, os.WriteFile(authority, certificate, 0o600))
	o := NewOptions()
	o.BulkSource, o.StaleAfter, o.PrometheusURL = bulkPrometheus, 5*time.Minute, server.URL
	o.PrometheusTokenFile, o.PrometheusCAFile = token, authority
	require.Empty(t, o.Check())
	store, err := backlog.NewStore(o.RateWindow, o.StaleAfter)
	require.NoError(t, err)
	source, err := bulk(Config{Options: o, Store: store, Registerer: prometheus.NewRegistry()}, nil)
	require.NoError(t, err)
	_, err = source.FetchBulk(t.Context(), backlog.Cluster{AdminURL: "http://pulsar:8080"})
	require.Error(t, err)
	select {
	case got := <-shown:
		require.Equal(t, "Bearer hunter2", got)
	default:
		require.Fail(t, "nothing came through", err.Error())
	}
}
