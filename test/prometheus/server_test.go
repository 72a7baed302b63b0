// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/binaries"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/prometheus"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/shared"
)

func TestMain(m *testing.M) { shared.Main(m, theBinaries) }

var theBinaries = shared.New("Prometheus", func(ctx context.Context) (binaries.Prometheus, error) {
	return binaries.BuildPrometheus(ctx, os.Stderr)
}, func(binaries.Prometheus) error { return nil })

const rules = `
groups:
- name: test
  rules:
  - alert: Two
    expr: replicas == 2
  - alert: Broken
    expr: replicas * on (namespace) replicas
`

// target serves two series to whoever has the token.
func target(t *testing.T) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_, _ = w.Write([]byte("replicas{namespace=\"media\",policy=\"a\"} 2\nreplicas{namespace=\"media\",policy=\"b\"} 3\n"))
	}))
	t.Cleanup(server.Close)
	return server
}

// start starts a server that scrapes the target with a token.
func start(t *testing.T, token string) *prometheus.Server {
	t.Helper()
	theBinaries.Need(t)
	scraped, dir := target(t), t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: scraped.Certificate().Raw})
	for name, content := range map[string]string{"ca.crt": string(ca), "token": token, "rules.yaml": rules} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	s, err := prometheus.Start(t.Context(), prometheus.Config{
		Dir: dir, RuleFiles: []string{filepath.Join(dir, "rules.yaml")},
		Jobs: []prometheus.Job{{
			Name: "test", Addresses: []string{strings.TrimPrefix(scraped.URL, "https://")}, ServerName: "example.com",
			CAFile: filepath.Join(dir, "ca.crt"), TokenFile: filepath.Join(dir, "token"),
			Labels: map[string]string{"namespace": "discovered"},
		}},
	})
	require.NoError(t, err)
	t.Cleanup(s.Kill)
	return s
}

// await waits until the condition holds.
func await(t *testing.T, what string, holds func(ctx context.Context) (bool, string, error)) {
	t.Helper()
	require.NoError(t, cluster.WaitFor(t.Context(), what, 100*time.Millisecond, holds))
}

func TestAServerScrapesEvaluatesAndAnswers(t *testing.T) {
	t.Parallel()
	s := start(t, "secret")
	await(t, "an alert", func(ctx context.Context) (bool, string, error) {
		firing, err := s.Firing(ctx)
		if len(firing) == 0 {
			return false, "none fires", err
		}
		require.Equal(t, model.LabelValue("a"), firing[0].Labels["policy"])
		return true, "", err
	})
	sum, err := s.Query(t.Context(), `sum(replicas{namespace="media"})`)
	require.NoError(t, err)
	require.Len(t, sum, 1)
	require.InDelta(t, 5, float64(sum[0].Value), 0)
	past, err := s.QueryRange(t.Context(), "replicas", time.Now().Add(-time.Minute), time.Now(), time.Second)
	require.NoError(t, err)
	require.Len(t, past, 2)
	await(t, "what Prometheus notes to be an error", func(ctx context.Context) (bool, string, error) {
		_, err := s.Query(ctx, "rate(replicas[1m])") // of two samples or more
		return err != nil && strings.Contains(err.Error(), "might not be a counter"), "no error", nil
	})
	await(t, "the error of a rule", func(ctx context.Context) (bool, string, error) {
		failed, err := s.RuleErrors(ctx)
		return len(failed) == 1 && strings.HasPrefix(failed[0], "Broken: "), strings.Join(failed, "; "), err
	})
}

func TestATargetThatRefusesTheTokenIsReported(t *testing.T) {
	t.Parallel()
	s := start(t, "wrong")
	await(t, "an error of the target", func(ctx context.Context) (bool, string, error) {
		targets, err := s.Targets(ctx)
		if err != nil || len(targets) != 1 {
			return false, "no target", err
		}
		return strings.Contains(targets[0].LastError, "403"), targets[0].LastError, nil
	})
}
