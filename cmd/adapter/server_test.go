// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/server/healthz"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider/fake"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// goodToken is the only token that the fake API server accepts.
const goodToken = "good"

// fakeAPIServer serves delegated authentication and authorization: goodToken permits everything.
func fakeAPIServer(t *testing.T) *httptest.Server {
	t.Helper()
	reply := func(w http.ResponseWriter, format string, args ...any) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, format, args...)
	}
	aggregator, _ := newAuthority(t, "aggregator")
	configMap := authenticationConfig(t, aggregator, aggregator)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication",
		func(w http.ResponseWriter, _ *http.Request) { reply(w, "%s", configMap) })
	mux.HandleFunc("GET /api/v1/namespaces/kube-system/configmaps", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("sendInitialEvents") { // clients list instead
			http.Error(w, "unknown", http.StatusBadRequest)
			return
		}
		if r.URL.Query().Has("watch") {
			<-r.Context().Done()
			return
		}
		reply(w, `{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":[%s]}`, configMap)
	})
	mux.HandleFunc("POST /apis/authentication.k8s.io/v1/tokenreviews", func(w http.ResponseWriter, r *http.Request) {
		var review struct{ Spec struct{ Token string } }
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		reply(w, `{"apiVersion":"authentication.k8s.io/v1","kind":"TokenReview","status":{"authenticated":%t,"user":{"username":"hpa"}}}`,
			review.Spec.Token == goodToken)
	})
	mux.HandleFunc("POST /apis/authorization.k8s.io/v1/subjectaccessreviews",
		func(w http.ResponseWriter, r *http.Request) {
			var review struct{ Spec struct{ User string } }
			if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			reply(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SubjectAccessReview","status":{"allowed":%t}}`,
				review.Spec.User == "hpa")
		})
	for path, answer := range discovery() {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(answer)
		})
	}
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections() // ends the watches
		server.Close()
	})
	return server
}

// authenticationConfig is what kube-apiserver writes for those that delegate authentication to it, in JSON.
func authenticationConfig(t *testing.T, clients, aggregator []byte) []byte {
	t.Helper()
	configMap, err := json.Marshal(corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"},
		Data:       map[string]string{"client-ca-file": string(clients), "requestheader-client-ca-file": string(aggregator)},
	})
	require.NoError(t, err)
	return configMap
}

// runningServer is a server under test with one check of each kind.
type runningServer struct {
	url         string
	ready, live atomic.Bool
	client      *http.Client
	stop        context.CancelFunc
	stopped     chan error
}

// startServer starts a server of custom metrics, modified by change.
func startServer(t *testing.T, change ...func(*serverConfig)) *runningServer {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	o := NewOptions()
	o.Kube.Kubeconfig = fixture.Kubeconfig(t, fakeAPIServer(t).URL)
	o.ShutdownDelay = time.Millisecond
	o.Serving.SecureServing.Listener = listener
	require.NoError(t, o.Validate())
	registry, policies := prometheus.NewRegistry(), prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "pulsar_autoscaler_test", Help: "Ours."}))
	policies.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Name: "pulsar_autoscaler_policy_test", Help: "One."}))

	r := &runningServer{url: "https://" + listener.Addr().String(), stopped: make(chan error, 1)}
	r.live.Store(true)
	check := func(name string, ok *atomic.Bool) healthz.HealthChecker {
		return healthz.NamedCheck(name, func(*http.Request) error {
			if !ok.Load() {
				return errors.New("not " + name)
			}
			return nil
		})
	}
	config := serverConfig{
		Options: o, Metrics: fake.NewProvider(), Registry: registry,
		PolicyMetrics: func() iter.Seq[*dto.MetricFamily] {
			families, err := policies.Gather()
			require.NoError(t, err)
			return slices.Values(families)
		},
		Ready: []healthz.HealthChecker{check("caches-filled", &r.ready)},
		Live:  []healthz.HealthChecker{check("poll-loop", &r.live)},
	}
	for _, c := range change {
		c(&config)
	}
	s, err := newServer(config)
	require.NoError(t, err)
	require.Equal(t, o.ShutdownDelay, s.ShutdownDelayDuration)
	certificate, _ := s.SecureServingInfo.Cert.CurrentCertKeyContent() // generated in memory, without files
	roots := x509.NewCertPool()
	require.True(t, roots.AppendCertsFromPEM(certificate))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	r.client = &http.Client{Transport: transport}
	var ctx context.Context
	ctx, r.stop = context.WithCancel(t.Context())
	go func() { r.stopped <- s.PrepareRun().RunWithContext(ctx) }()
	t.Cleanup(func() {
		r.stop()
		transport.CloseIdleConnections()
	})
	return r
}

// get returns status and body of a response; 0 without one.
func (r *runningServer) get(t *testing.T, path, token string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+path, nil)
	require.NoError(t, err)
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := r.client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(body)
}

// eventually polls a path until the response has the status.
func (r *runningServer) eventually(t *testing.T, path string, status int) {
	t.Helper()
	require.Eventually(t, func() bool {
		got, _ := r.get(t, path, "")
		return got == status
	}, time.Minute, 20*time.Millisecond, "%s never answered %d", path, status)
}

func TestServer(t *testing.T) {
	r := startServer(t)

	// Probes need no credentials, and name the failed check.
	r.eventually(t, "/livez", http.StatusOK)
	status, body := r.get(t, "/readyz?verbose", "")
	require.Equal(t, http.StatusInternalServerError, status)
	require.Contains(t, body, "[-]caches-filled failed")
	require.NotContains(t, body, "poll-loop")
	r.ready.Store(true)
	r.eventually(t, "/readyz", http.StatusOK)
	r.live.Store(false)
	r.eventually(t, "/livez", http.StatusInternalServerError)
	r.eventually(t, "/readyz", http.StatusOK)

	// Everything else does need them.
	const metric = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/shop/functions.compute.functionmesh.io/orders/some_metric"
	const schemas = "/openapi/v3/apis/custom.metrics.k8s.io/v1beta2"
	for _, path := range []string{metric, "/metrics", "/openapi/v2", schemas} {
		status, _ = r.get(t, path, "")
		require.Equal(t, http.StatusForbidden, status, path)
		status, _ = r.get(t, path, "bad")
		require.Equal(t, http.StatusUnauthorized, status, path)
		status, _ = r.get(t, path, goodToken)
		require.Equal(t, http.StatusOK, status, path)
	}
	status, _ = r.get(t, "/debug/pprof/", goodToken)
	require.Equal(t, http.StatusNotFound, status)

	_, body = r.get(t, schemas, goodToken)
	require.Contains(t, body, `"io.k8s.api.core.v1.ObjectReference"`)
	require.Contains(t, body, `"io.k8s.metrics.pkg.apis.custom_metrics.v1beta2.MetricValueList"`)

	_, body = r.get(t, "/metrics", goodToken)
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	require.NoError(t, err, "duplicate or inconsistent families")
	for _, name := range []string{
		"pulsar_autoscaler_test", "pulsar_autoscaler_policy_test", "go_goroutines", "process_start_time_seconds",
		"apiserver_request_total", "metrics_apiserver_metric_freshness_seconds",
	} {
		require.Contains(t, families, name)
	}
	require.Len(t, families["go_goroutines"].GetMetric(), 1)

	_, body = r.get(t, "/metrics?name[]=go_goroutines&name[]=pulsar_autoscaler_policy_test", goodToken)
	families, err = parser.TextToMetricFamilies(strings.NewReader(body))
	require.NoError(t, err)
	require.Len(t, families, 2)
	require.Contains(t, families, "pulsar_autoscaler_policy_test")

	r.stop()
	require.NoError(t, <-r.stopped)
}

func TestExternalMetricsAreServedWhenAskedFor(t *testing.T) {
	tests := map[string]struct {
		change func(*serverConfig)
		status int
	}{
		"not by default": {func(*serverConfig) {}, http.StatusNotFound},
		"with the flag":  {func(c *serverConfig) { c.External = fake.NewProvider() }, http.StatusOK},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := startServer(t, tt.change)
			r.eventually(t, "/livez", http.StatusOK)
			for _, path := range []string{
				"/apis/external.metrics.k8s.io/v1beta1",
				"/apis/external.metrics.k8s.io/v1beta1/namespaces/shop/some_metric",
			} {
				status, body := r.get(t, path, goodToken)
				require.Equal(t, tt.status, status, "%s: %s", path, body)
			}
			status, _ := r.get(t, "/apis/custom.metrics.k8s.io/v1beta2", goodToken)
			require.Equal(t, http.StatusOK, status)
			_, groups := r.get(t, "/apis", goodToken)
			require.Equal(t, tt.status == http.StatusOK, strings.Contains(groups, "external.metrics.k8s.io"), groups)
			r.stop()
			require.NoError(t, <-r.stopped)
		})
	}
}

func TestAServerWithoutAnAPIServerDoesNotStart(t *testing.T) {
	o := NewOptions()
	o.Kube.Kubeconfig = filepath.Join(t.TempDir(), "missing")
	_, err := newServer(serverConfig{Options: o, Metrics: fake.NewProvider(), Registry: prometheus.NewRegistry()})
	require.ErrorContains(t, err, "configuring the metrics API server: ")
	_, err = o.Kube.RESTConfig()
	require.ErrorContains(t, err, "--kubeconfig is ")
}
