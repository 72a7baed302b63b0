// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	certutil "k8s.io/client-go/util/cert"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/fixture"
)

// newAuthority is a certificate that signs itself, in PEM and as a client shows it.
func newAuthority(t *testing.T, name string) ([]byte, tls.Certificate) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	certificate, err := certutil.NewSelfSignedCACert(certutil.Config{CommonName: name}, key)
	require.NoError(t, err)
	encoded, err := certutil.EncodeCertificates(certificate)
	require.NoError(t, err)
	return encoded, tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

// TestAClientThatConnectsAtOnceIsKnown: its connection is made before the server has read who signs clients.
func TestAClientThatConnectsAtOnceIsKnown(t *testing.T) {
	clients, hpa := newAuthority(t, "hpa")
	aggregator, _ := newAuthority(t, "aggregator")
	configMap := authenticationConfig(t, clients, aggregator)
	release := make(chan struct{})
	kube := fakeAPIServer(t).Config.Handler
	late := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/configmaps") || r.URL.Query().Has("watch") {
			kube.ServeHTTP(w, r)
			return
		}
		<-release
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"v1","kind":"ConfigMapList","metadata":{"resourceVersion":"1"},"items":[` +
			string(configMap) + `]}`))
	}))
	t.Cleanup(func() {
		late.CloseClientConnections()
		late.Close()
	})
	r := startServer(t, func(c *serverConfig) { c.Options.Kube.Kubeconfig = fixture.Kubeconfig(t, late.URL) })
	transport, ok := r.client.Transport.(*http.Transport)
	require.True(t, ok)
	transport.TLSClientConfig.Certificates = []tls.Certificate{hpa}

	early, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	dialer := tls.Dialer{Config: transport.TLSClientConfig}
	_, err := dialer.DialContext(early, "tcp", strings.TrimPrefix(r.url, "https://"))
	require.ErrorIs(t, err, context.DeadlineExceeded, "a client was let in before the server can know it")
	close(release)
	r.eventually(t, "/livez", http.StatusOK)
	status, body := r.get(t, "/metrics", "")
	require.Equal(t, http.StatusOK, status, body)
	r.stop()
	require.NoError(t, <-r.stopped)
}

// acceptor is a listener that counts calls and accepts no connection.
type acceptor struct {
	net.Listener
	accepted, closed atomic.Int64
}

func (a *acceptor) Accept() (net.Conn, error) {
	a.accepted.Add(1)
	return nil, net.ErrClosed
}

func (a *acceptor) Close() error {
	a.closed.Add(1)
	return nil
}

func TestConnectionsWaitForTheAuthorities(t *testing.T) {
	tests := map[string]struct {
		known time.Duration
		close time.Duration
		until time.Duration
	}{
		"until they are known":               {known: time.Second, close: time.Hour, until: time.Second + 2*authoritiesTick},
		"not longer than the timeout":        {known: time.Hour, close: time.Hour, until: authoritiesTimeout},
		"not after the server stops serving": {known: time.Hour, close: time.Second, until: time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				since, under := time.Now(), &acceptor{}
				l := &authoritiesListener{
					Listener: under, closed: make(chan struct{}),
					known: func() bool { return time.Since(since) >= tt.known },
				}
				stop := time.AfterFunc(tt.close, func() { _ = l.Close() })
				defer stop.Stop()
				_, err := l.Accept()
				require.ErrorIs(t, err, net.ErrClosed)
				require.EqualValues(t, 1, under.accepted.Load())
				require.LessOrEqual(t, time.Since(since), tt.until)
				require.GreaterOrEqual(t, time.Since(since), min(tt.known, tt.close, authoritiesTimeout))

				before := time.Now()
				_, _ = l.Accept()
				require.Zero(t, time.Since(before), "only the first connection waits")
				require.NoError(t, l.Close())
				require.NoError(t, l.Close())
				require.GreaterOrEqual(t, under.closed.Load(), int64(2))
			})
		})
	}
}
