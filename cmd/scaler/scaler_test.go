// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/kedacore/keda/v2/pkg/scalers/externalscaler"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// bareAPIServer is a Kubernetes API without the scaler's kinds, and without any Lease, which it lists after events.
func bareAPIServer(t *testing.T, after ...<-chan struct{}) string {
	t.Helper()
	mux := http.NewServeMux()
	answers := map[string]string{
		"/api": `{"kind":"APIVersions","versions":["v1"]}`, "/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"coordination.k8s.io",
  "versions":[{"groupVersion":"coordination.k8s.io/v1","version":"v1"}],"preferredVersion":{"groupVersion":"coordination.k8s.io/v1","version":"v1"}}]}`,
		"/apis/coordination.k8s.io/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"coordination.k8s.io/v1","resources":[
  {"name":"leases","singularName":"lease","namespaced":true,"kind":"Lease","verbs":["get","list","watch"]}]}`,
		"/api/v1": `{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"v1","resources":[
  {"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get","list","watch"]}]}`,
	}
	for path, answer := range answers {
		mux.HandleFunc("GET "+path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		})
	}
	mux.HandleFunc("GET /apis/coordination.k8s.io/v1/namespaces/{namespace}/leases",
		func(w http.ResponseWriter, r *http.Request) {
			switch query := r.URL.Query(); {
			case query.Get("sendInitialEvents") == "true":
				http.Error(w, "lists are what there is", http.StatusBadRequest)
			case query.Has("watch"):
				<-r.Context().Done()
			default:
				for _, event := range after {
					select {
					case <-event:
					case <-r.Context().Done():
					}
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w,
					`{"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[]}`)
			}
		})
	server := httptest.NewServer(mux)
	t.Cleanup(func() {
		server.CloseClientConnections() // ends the watches
		server.Close()
	})
	return fixture.Kubeconfig(t, server.URL)
}

// fakePulsar has topic orders with 30 messages for subscription resize.
func fakePulsar(t *testing.T) string {
	t.Helper()
	const topic = "GET /admin/v2/persistent/public/default/orders/"
	mux := http.NewServeMux()
	answer := func(value any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(value)
		}
	}
	mux.Handle(topic+"partitions", answer(map[string]int{"partitions": 0}))
	mux.Handle(topic+"stats", answer(map[string]any{
		"msgInCounter": 100, "subscriptions": map[string]any{
			"resize": map[string]any{
				"msgBacklog": 30, "msgDelayed": 0, "unackedMessages": 0, "msgOutCounter": 70,
				"type": "Shared", "consumers": []any{},
			},
		},
	}))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

// startScaler runs the whole program until the test ends, and returns it with a client.
func startScaler(t *testing.T, args ...string) (*scaler, pb.ExternalScalerClient) {
	t.Helper()
	s, connection, stop, ended := runScaler(t, args...)
	t.Cleanup(func() {
		require.NoError(t, connection.Close())
		stop()
		require.NoError(t, <-ended, "every part ends with the context")
	})
	return s, pb.NewExternalScalerClient(connection)
}

// runScaler runs the whole program until stop, and returns it with a connection.
func runScaler(t *testing.T, args ...string) (s *scaler, connection *grpc.ClientConn, stop func(), ended chan error) {
	t.Helper()
	o, err := ParseOptions(append([]string{
		"--kubeconfig=" + bareAPIServer(t), "--lease-namespace=pulsar-autoscaler", "--grpc-bind-address=127.0.0.1:0",
		"--metrics-bind-address=127.0.0.1:0", "--shutdown-delay=0s", "--poll-interval=1s", "--rate-window=1s",
		"--instance-metrics=Off",
	}, args...), nil)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	s, err = newScaler(ctx, o, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	require.NoError(t, err)
	ended = make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	connection, err = grpc.NewClient(s.grpc.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	require.NoError(t, err)
	return s, connection, stop, ended
}

// get returns status and body.
func get(t *testing.T, s *scaler, path string) (code int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.http.Addr().String()+path, nil)
	require.NoError(t, err)
	response, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	content, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	return response.StatusCode, string(content)
}

const patience = 30 * time.Second

func TestATopicIsServedWithoutOurKinds(t *testing.T) {
	s, client := startScaler(t, "--pulsar-admin-url="+fakePulsar(t))
	require.Eventually(t, func() bool { code, _ := get(t, s, "/readyz"); return code == http.StatusOK }, patience,
		10*time.Millisecond)
	code, _ := get(t, s, "/healthz")
	require.Equal(t, http.StatusOK, code)

	ref := &pb.ScaledObjectRef{Namespace: "media", Name: "so", ScalerMetadata: map[string]string{
		"scalerAddress": "scaler:9090", "topic": "orders", "subscription": "resize", "messagesPerReplica": "10",
	}}
	specs, err := client.GetMetricSpec(t.Context(), ref)
	require.NoError(t, err)
	require.Len(t, specs.GetMetricSpecs(), 1)
	metric := specs.GetMetricSpecs()[0]
	require.EqualValues(t, 10, metric.GetTargetSize())

	_, err = client.IsActive(t.Context(), ref)
	require.Equal(t, codes.Unavailable, status.Code(err), "nothing is known yet: %v", err)
	request := &pb.GetMetricsRequest{ScaledObjectRef: ref, MetricName: metric.GetMetricName()}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		values, err := client.GetMetrics(t.Context(), request)
		require.NoError(c, err)
		require.Len(c, values.GetMetricValues(), 1)
		require.EqualValues(c, 30, values.GetMetricValues()[0].GetMetricValue())
	}, patience, 50*time.Millisecond)
	active, err := client.IsActive(t.Context(), ref)
	require.NoError(t, err)
	require.True(t, active.GetResult())

	_, metrics := get(t, s, "/metrics")
	for _, family := range []string{"pulsar_autoscaler_", "go_goroutines"} {
		require.Contains(t, metrics, family)
	}
}

func TestAConnectionSendsItsTokenToPulsar(t *testing.T) {
	pulsar, err := url.Parse(fakePulsar(t))
	require.NoError(t, err)
	forward := httputil.NewSingleHostReverseProxy(pulsar)
	guarded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer hunter2" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(guarded.Close)
	dir := t.TempDir()
	token, own := filepath.Join(dir, "token"), filepath.Join(dir, "own")
	file := filepath.Join(dir, "connections.yaml")
	require.NoError(t, os.WriteFile(token, []byte("hunter2"), 0o600))
	require.NoError(t, os.WriteFile(own, []byte("of the scaler"), 0o600))
	require.NoError(t,
		os.WriteFile(file,
			fmt.Appendf(nil, "connections: [{name: east, adminURL: %q, tokenFile: %q, namespaces: [media]}]", guarded.URL,
				token), 0o600))

	s, client := startScaler(t, "--connections-file="+file, "--pulsar-token-file="+own)
	ref := func(namespace string) *pb.ScaledObjectRef {
		return &pb.ScaledObjectRef{Namespace: namespace, Name: "so", ScalerMetadata: map[string]string{
			"connection": "east", "topic": "orders", "subscription": "resize", "messagesPerReplica": "10",
		}}
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		active, err := client.IsActive(t.Context(), ref("media"))
		require.NoError(c, err)
		require.True(c, active.GetResult())
	}, patience, 50*time.Millisecond)
	_, err = client.IsActive(t.Context(), ref("sales"))
	require.ErrorContains(t, err, `connection "east" is not for namespace sales`)

	_, err = s.pulsar.Source.Fetch(t.Context(), backlog.Topic{
		Cluster: backlog.Cluster{AdminURL: guarded.URL}, Name: "persistent://public/default/orders",
	}, backlog.Request{Detail: backlog.Slim})
	require.ErrorIs(t, err, backlog.ErrHostNotAllowed, "no other credentials are sent to the URL of a connection")
}

func TestMissingKindsAreReported(t *testing.T) {
	s, client := startScaler(t)
	require.Eventually(t, func() bool { code, _ := get(t, s, "/readyz"); return code == http.StatusOK }, patience,
		10*time.Millisecond)
	tests := map[string]struct {
		metadata map[string]string
		want     string
	}{
		"our own kind": {
			map[string]string{"policy": "resize"},
			"kind AutoscalingPolicy of pulsar-autoscaler.io/v1alpha1 is not installed",
		},
		"Function Mesh": {
			map[string]string{"target": "Function/resize", "messagesPerReplica": "10"},
			"Function Mesh is not installed",
		},
		"a Pulsar of the flags": {
			map[string]string{"topic": "a", "subscription": "s", "messagesPerReplica": "10"},
			"--pulsar-admin-url",
		},
		"a connection": {
			map[string]string{"topic": "a", "subscription": "s", "messagesPerReplica": "10", "connection": "eu"},
			`connection "eu" is not for namespace media, which may use none: correct connection, or have it added to --connections-file`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := client.IsActive(t.Context(),
				&pb.ScaledObjectRef{Namespace: "media", Name: "so", ScalerMetadata: test.metadata})
			require.ErrorContains(t, err, test.want)
		})
	}
}

// TestAReplicaThatHasNotReadKubernetesRefusesConnections: KEDA's client would stay with it for its errors.
func TestAReplicaThatHasNotReadKubernetesRefusesConnections(t *testing.T) {
	listed := make(chan struct{})
	s, client := startScaler(t, "--kubeconfig="+bareAPIServer(t, listed))
	ask := func() error {
		_, err := client.IsActive(t.Context(), &pb.ScaledObjectRef{
			Namespace: "media", Name: "so", ScalerMetadata: map[string]string{"policy": "resize"},
		})
		return err
	}
	require.ErrorContains(t, s.reading.Ready(), "Lease")
	refused := ask()
	require.Equal(t, codes.Unavailable, status.Code(refused))
	require.NotContains(t, refused.Error(), "AutoscalingPolicy", "the scaler does not answer")
	code, _ := get(t, s, "/healthz")
	require.Equal(t, http.StatusOK, code)
	close(listed)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.ErrorContains(c, ask(), "kind AutoscalingPolicy of pulsar-autoscaler.io/v1alpha1 is not installed")
	}, patience, 50*time.Millisecond)
}

func TestAReplicaThatCannotReadKubernetesServesAfterAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		listener, accepted := bufconn.Listen(1<<10), make(chan net.Conn)
		never := func() error { return backlog.ErrNoData }
		go func() {
			connection, err := refusing{listener, never, time.Now().Add(refuseWithin)}.Accept()
			assert.NoError(t, err)
			accepted <- connection
		}()
		time.Sleep(refuseWithin - time.Nanosecond)
		refused, err := listener.DialContext(t.Context())
		require.NoError(t, err)
		_, err = refused.Read(make([]byte, 1))
		require.ErrorIs(t, err, io.EOF)
		time.Sleep(time.Nanosecond)
		served, err := listener.DialContext(t.Context())
		require.NoError(t, err)
		require.NoError(t, errors.Join((<-accepted).Close(), served.Close(), refused.Close(), listener.Close()))
	})
}

// TestTheScalerServesAndIsNotReadyWhileItEnds: KEDA connects to other replicas meanwhile.
func TestTheScalerServesAndIsNotReadyWhileItEnds(t *testing.T) {
	s, connection, stop, ended := runScaler(t)
	t.Cleanup(func() { _ = s.http.Close() }) // an hour would delay the end of a test that fails
	t.Cleanup(stop)
	s.options.ShutdownDelay = time.Hour
	require.Eventually(t, func() bool { return s.ready() == nil }, patience, 10*time.Millisecond)
	stop()
	require.Eventually(t, func() bool { return s.ready() != nil }, patience, 10*time.Millisecond)
	code, body := get(t, s, "/readyz")
	require.Equal(t, http.StatusInternalServerError, code)
	require.Contains(t, body, "about to end")
	_, err := pb.NewExternalScalerClient(connection).IsActive(t.Context(),
		&pb.ScaledObjectRef{Namespace: "media", Name: "so", ScalerMetadata: map[string]string{"policy": "resize"}})
	require.ErrorContains(t, err, "kind AutoscalingPolicy of pulsar-autoscaler.io/v1alpha1 is not installed")
	require.NoError(t, connection.Close())

	require.Empty(t, ended)
	require.NoError(t, s.http.Close())
	require.ErrorContains(t, <-ended, "serving metrics and probes", "it does not wait when a part has failed")
}

// TestASlowScrapeIsServed: 10,000 triggers have 8 MB of series, and a busy machine is slow.
func TestASlowScrapeIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		listener, ended := bufconn.Listen(1<<10), make(chan error, 1)
		slow := func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(9 * time.Second)
			_, _ = w.Write(make([]byte, 8<<10)) // more than the buffer, where a deadline matters
		}
		go func() { ended <- serveHTTP(ctx, listener, http.HandlerFunc(slow)) }()
		defer func() {
			stop()
			require.NoError(t, <-ended)
		}()
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
		client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://scaler/metrics", http.NoBody)
		require.NoError(t, err)
		response, err := client.Do(request)
		require.NoError(t, err)
		content, err := io.ReadAll(response.Body)
		require.NoError(t, errors.Join(err, response.Body.Close()))
		require.Len(t, content, 8<<10)
	})
}

func TestAnOccupiedPortFailsAtOnce(t *testing.T) {
	s, _ := startScaler(t)
	o := *s.options
	o.GRPCBindAddress = s.grpc.Addr().String()
	_, err := newScaler(t.Context(), &o, s.logger, prometheus.NewRegistry())
	require.ErrorContains(t, err, "listening at --grpc-bind-address")
}
