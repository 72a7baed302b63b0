// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/api/v1alpha1"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/cluster"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/proc"
)

// TestAnotherServerKeepsItsAPIGroup installs the chart where another server, such as prometheus-adapter, serves it.
func TestAnotherServerKeepsItsAPIGroup(t *testing.T) {
	s := openAll(t)
	const other, name = "other-metrics", "crop"
	port, err := proc.FreePort()
	require.NoError(t, err)
	certFile, keyFile, err := s.Cluster.RegisterMetricsAPI(t.Context(), cluster.MetricsAPI{
		Namespace: other, Service: other, Port: port,
	})
	require.NoError(t, err)
	serveMetrics(t, port, certFile, keyFile)
	s.awaitMetricsAPI(t)
	s.createNamespace(t, namespace)
	f := s.addFunction(t, name, serviceTime)

	s.install(t)
	endLoad := s.scales(t, f)
	p, err := f.Policy(t.Context())
	require.NoError(t, err)
	require.NotNil(t, p.Status.Actuator)
	require.Equal(t, v1alpha1.ActuatorDirect, p.Status.Actuator.Type)
	endLoad()

	s.removeRelease(t)
	service, err := s.apiService(t.Context())
	require.NoError(t, err)
	of, _, err := unstructured.NestedString(service.Object, "spec", "service", "name")
	require.NoError(t, err)
	require.Equal(t, other, of)
	s.awaitMetricsAPI(t)
	s.removeNamespace(t, namespace)
	for _, version := range cluster.CustomMetrics() {
		service.SetName(version.Version + "." + version.Group)
		require.NoError(t, s.Client.Delete(t.Context(), service))
	}
}

// serveMetrics serves discovery of the metrics API without metrics.
func serveMetrics(t *testing.T, port int, certFile, keyFile string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:"+strconv.Itoa(port))
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, request *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(metav1.APIResourceList{ // the client may have disconnected
				TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
				GroupVersion: strings.TrimPrefix(request.URL.Path, "/apis/"), APIResources: []metav1.APIResource{},
			})
		})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.ServeTLS(listener, certFile, keyFile) // returns after Close
	}()
	t.Cleanup(func() {
		require.NoError(t, server.Close())
		<-done
	})
}

// servedBy returns the certificate that the adapter at the address serves.
func servedBy(ctx context.Context, address string) (serving, error) {
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	connection, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(address, "10250"))
	if err != nil {
		return serving{}, err
	}
	leaf := connection.(*tls.Conn).ConnectionState().PeerCertificates[0]
	served := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})
	return serving{certificate: served}, connection.Close()
}

func (a serving) matches(b serving) bool { return string(a.certificate) == string(b.certificate) }
