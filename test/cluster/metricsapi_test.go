// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/identity"
)

const metricName = "desired_replicas"

// metricsServer is a metrics API of one number. It accepts requests only from the aggregator, by its client
// certificate, and records their users.
type metricsServer struct {
	mu    sync.Mutex // guards value and users
	value int
	users map[string]bool
}

// serve answers on the listener until the test ends.
func serve(t *testing.T, listener net.Listener, server *http.Server, certFile, keyFile string) {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- server.ServeTLS(listener, certFile, keyFile) }()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-ended, http.ErrServerClosed)
	})
}

// aggregated returns a server that accepts requests only from the aggregator.
func aggregated(c *Cluster, handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second,
		ErrorLog: log.New(io.Discard, "", 0), // the test of a rejected certificate fails a hundred handshakes
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: c.ids.frontProxyCA.Pool(),
		},
	}
}

func (m *metricsServer) set(value int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.value = value
}

// callers are the users that have requested the metric.
func (m *metricsServer) callers() map[string]bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	callers := map[string]bool{}
	for user := range m.users {
		callers[user] = true
	}
	return callers
}

func (m *metricsServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer any
	switch path := r.URL.Path; {
	case r.TLS.PeerCertificates[0].Subject.CommonName != frontProxyUser:
		http.Error(w, "only the aggregator may ask", http.StatusForbidden)
		return
	case strings.Count(path, "/") == 3: // /apis/<group>/<version>
		answer = map[string]any{
			"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": strings.TrimPrefix(path, "/apis/"),
			"resources": []any{map[string]any{
				"name": "workers.test.pulsar-autoscaler.io/" +
					metricName, "namespaced": true, "kind": "MetricValueList", "verbs": []string{"get"},
			}},
		}
	case path == "/apis/custom.metrics.k8s.io/v1beta2/namespaces/default/workers.test.pulsar-autoscaler.io/counter/"+metricName:
		answer = m.metric(r.Header.Get("X-Remote-User"))
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(err)
	}
}

func (m *metricsServer) metric(user string) any {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.users[user] = true
	return metricOf("counter", fmt.Sprint(m.value))
}

// metricOf is the answer with the metric of a worker.
func metricOf(worker, value string) map[string]any {
	return map[string]any{
		"kind": "MetricValueList", "apiVersion": "custom.metrics.k8s.io/v1beta2",
		"items": []any{map[string]any{
			"describedObject": map[string]any{
				"kind": "Worker", "apiVersion": "test.pulsar-autoscaler.io/v1", "namespace": "default", "name": worker,
			},
			"metric": map[string]any{"name": metricName}, "timestamp": time.Now().UTC().Format(time.RFC3339),
			"value": value,
		}},
	}
}

// startMetricsServer registers a metrics server of the test and waits until the aggregator reaches it.
func startMetricsServer(t *testing.T, c *Cluster) *metricsServer {
	t.Helper()
	m := &metricsServer{users: map[string]bool{}}
	serveMetrics(t, c, m)
	return m
}

// serveMetrics registers a handler of the test as metrics API and waits until the aggregator reaches it.
func serveMetrics(t *testing.T, c *Cluster, handler http.Handler) {
	t.Helper()
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	certFile, keyFile, err := c.RegisterMetricsAPI(t.Context(), MetricsAPI{
		Namespace: "metrics", Service: "adapter", Port: listener.Addr().(*net.TCPAddr).Port,
	})
	require.NoError(t, err)
	serve(t, listener, aggregated(c, handler), certFile, keyFile)
	require.NoError(t, c.WaitMetricsAPI(t.Context()))
}

func TestAggregatorRefusesAMetricsServerWithAnotherCertificate(t *testing.T) {
	c := startCluster(t, Config{})
	m := &metricsServer{users: map[string]bool{}}
	var listen net.ListenConfig
	listener, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	api := MetricsAPI{Namespace: "metrics", Service: "adapter", Port: listener.Addr().(*net.TCPAddr).Port}
	_, _, err = c.RegisterMetricsAPI(t.Context(), api)
	require.NoError(t, err)
	other, err := identity.NewAuthority("another-authority")
	require.NoError(t, err)
	pair, err := other.Server("adapter.metrics.svc")
	require.NoError(t, err)
	certFile, keyFile, err := writePair(pair, t.TempDir(), "tls")
	require.NoError(t, err)
	serve(t, listener, aggregated(c, m), certFile, keyFile)

	err = WaitFor(t.Context(), "the aggregator to refuse the certificate", availablePoll,
		func(ctx context.Context) (bool, string, error) {
			var service apiregistrationv1.APIService
			if err := c.Client.Get(ctx, client.ObjectKey{Name: "v1beta2.custom.metrics.k8s.io"}, &service); err != nil {
				return false, "", err
			}
			if helper.IsAPIServiceConditionTrue(&service, apiregistrationv1.Available) {
				return false, "", errors.New("the APIService became available")
			}
			detail := fmt.Sprint(service.Status.Conditions)
			return strings.Contains(detail, "certificate signed by unknown authority"), detail, nil
		})
	require.NoError(t, err)
}

func workers() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "test.pulsar-autoscaler.io", Version: "v1", Resource: "workers"}
}

// workerOf returns a worker with only its name.
func workerOf(name string) *unstructured.Unstructured {
	return object("test.pulsar-autoscaler.io/v1", "Worker", "default", name)
}

func setStatusReplicas(t *testing.T, c *Cluster, replicas int) {
	t.Helper()
	patch := fmt.Sprintf(`{"status":{"replicas":%d,"selector":"app=counter"}}`, replicas)
	require.NoError(t,
		c.Client.Status().Patch(t.Context(), workerOf("counter"), client.RawPatch(types.MergePatchType, []byte(patch))))
}

func requireReplicas(t *testing.T, c *Cluster, want int64) {
	t.Helper()
	what := fmt.Sprintf("the HPA to set %d replicas", want)
	require.NoError(t, WaitFor(t.Context(), what, 100*time.Millisecond, func(ctx context.Context) (bool, string, error) {
		worker, hpa := workerOf("counter"), workerHPA("counter")
		err := errors.Join(c.Client.Get(ctx, client.ObjectKeyFromObject(worker), worker),
			c.Client.Get(ctx, client.ObjectKeyFromObject(hpa), hpa))
		if err != nil {
			return false, "", err
		}
		replicas, _, err := unstructured.NestedInt64(worker.Object, "spec", "replicas")
		return replicas == want, fmt.Sprintf("%d replicas, HPA conditions %v", replicas, hpa.Status.Conditions), err
	}))
}

// workerHPA follows the metric of a worker: 1 per replica, no tolerance, no windows.
func workerHPA(name string) *autoscalingv2.HorizontalPodAutoscaler {
	worker := autoscalingv2.CrossVersionObjectReference{
		APIVersion: "test.pulsar-autoscaler.io/v1", Kind: "Worker", Name: name,
	}
	rules := autoscalingv2.HPAScalingRules{
		StabilizationWindowSeconds: new(int32), Tolerance: new(resource.MustParse("0")),
		Policies: []autoscalingv2.HPAScalingPolicy{{Type: autoscalingv2.PodsScalingPolicy, Value: 100, PeriodSeconds: 1}},
	}
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: worker, MinReplicas: new(int32(1)), MaxReplicas: 20,
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &rules, ScaleDown: &rules},
			Metrics: []autoscalingv2.MetricSpec{{
				Type: autoscalingv2.ObjectMetricSourceType,
				Object: &autoscalingv2.ObjectMetricSource{
					DescribedObject: worker, Metric: autoscalingv2.MetricIdentifier{Name: metricName},
					Target: autoscalingv2.MetricTarget{
						Type: autoscalingv2.AverageValueMetricType, AverageValue: new(resource.MustParse("1")),
					},
				},
			}},
		},
	}
}
