// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"net/http/httptest"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestACertificateWithoutTLSInvalidatesNothing(t *testing.T) {
	broker := newOrders(t)
	known := &fakeCredentials{named: map[string]backlog.Credentials{"ns/secret": {
		Plugin: "tls",
		Params: clientPair(t, "me"),
	}}}
	_, err := newSource(t, Config{Credentials: known}, broker).Fetch(t.Context(), broker.named("orders", "ns/secret"),
		backlog.Request{Detail: backlog.Slim})

	require.ErrorIs(t, err, backlog.ErrUnsupported)
	require.EqualError(t, err,
		"not supported: a client certificate cannot be shown to "+broker.URL+": use the https port of the brokers")
	require.Empty(t, known.invalidated, "no broker has refused it")
	require.Empty(t, broker.requested())
}

func TestCertificatesAreUncheckedOnlyIfConfigured(t *testing.T) {
	broker := newOrders(t)
	secure := httptest.NewUnstartedServer(broker)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	authority := string(pemOf(secure.Certificate()))
	byIP := secure.URL
	at, err := url.Parse(secure.URL)
	require.NoError(t, err)
	port := at.Port()
	source := newSource(t, Config{AllowedHosts: []string{"127.0.0.1", "localhost"}, Credentials: &fakeCredentials{
		named: map[string]backlog.Credentials{
			"checked":            {},
			"trusted":            {TrustCerts: authority},
			"insecure":           {AllowInsecureConnection: true},
			"any-name":           {TrustCerts: authority, SkipHostnameVerification: true},
			"untrusted-any-name": {SkipHostnameVerification: true},
		},
	}})
	tests := map[string]struct {
		access, url string
		text        string
	}{
		"a stranger is refused":        {"checked", byIP, "signed by an unknown authority"},
		"one that is to be trusted is": {"trusted", byIP, ""},
		"one that is to be trusted under other names": {
			"trusted", "https://localhost:" + port,
			"its certificate is for another name",
		},
		"other names do where the name is not checked": {"any-name", "https://localhost:" + port, ""},
		"a stranger is refused though the name is not checked": {
			"untrusted-any-name", byIP,
			"signed by an unknown authority",
		},
		"an unknown certificate is accepted without a check": {"insecure", byIP, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			topic := broker.topic("orders")
			topic.Cluster = backlog.Cluster{AdminURL: tt.url, Access: tt.access}
			_, err := source.Fetch(t.Context(), topic, backlog.Request{Detail: backlog.Slim})
			if tt.text == "" {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, backlog.ErrUnreachable)
			require.ErrorContains(t, err, tt.text)
		})
	}
}
