// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/identity"
)

func newAuthority(t testing.TB, name string) *identity.Authority {
	t.Helper()
	authority, err := identity.NewAuthority(name)
	require.NoError(t, err)
	return authority
}

// clientPair is a certificate with its key as the parameters of the tls plugin.
func clientPair(t testing.TB, name string) (pluginParams string) {
	t.Helper()
	pair, err := newAuthority(t, "clients").Client(name)
	require.NoError(t, err)
	return pair.DataURLs()
}

// capture is a server over TLS that requests client certificates and records the credentials that it gets.
type capture struct {
	*httptest.Server

	mu sync.Mutex
	// conns and shown are guarded by mu.
	conns int
	shown []string
}

func newCapture(t testing.TB, answer http.HandlerFunc) *capture {
	t.Helper()
	c := &capture{}
	c.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown := r.Header.Get("X-Pulsar-Auth-Method-Name") + " " + r.Header.Get("Authorization")
		for _, certificate := range r.TLS.PeerCertificates {
			shown += certificate.Subject.CommonName
		}
		c.mu.Lock()
		c.shown = append(c.shown, shown)
		c.mu.Unlock()
		answer(w, r)
	}))
	c.TLS = &tls.Config{MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert}
	c.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if state == http.StateNew {
			c.conns++
		}
	}
	c.StartTLS()
	t.Cleanup(c.Close)
	return c
}

func (c *capture) seen() (conns int, shown []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conns, c.shown
}

func (c *capture) host() string { return strings.TrimPrefix(c.URL, "https://") }

func TestRedirectsKeepCredentialsOnAllowedHostsOnly(t *testing.T) {
	issuer := newIssuer(t)
	tests := map[string]struct {
		credentials backlog.Credentials
		shown       string
	}{
		"a token":       {backlog.Credentials{Plugin: "token", Params: "s3cret"}, "token Bearer s3cret"},
		"a password":    {backlog.Credentials{Plugin: "basic", Params: "me:s3cret"}, "basic Basic bWU6czNjcmV0"},
		"a certificate": {backlog.Credentials{Plugin: "tls", Params: clientPair(t, "me")}, "tls me"},
		"a token of an issuer": {
			backlog.Credentials{Plugin: "oauth2", Params: issuerParams(issuer.URL + "/realm")}, "token Bearer token-1",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var to string
			front := newCapture(t, func(w http.ResponseWriter, r *http.Request) { redirectsTo(to)(w, r) })
			owner := newCapture(t, answers(notPartitioned))
			elsewhere := newCapture(t, answers(notPartitioned))
			plain := newFakeBroker(t)
			plainAt, err := url.Parse(plain.URL)
			require.NoError(t, err)
			tt.credentials.TrustCerts = string(pemOf(front.Certificate())) // which all of them have
			source := newSource(t, Config{
				AllowedHosts: []string{front.host(), owner.host(), plainAt.Host}, AllowedIssuers: []string{issuer.URL + "/realm"},
				Credentials: &fakeCredentials{named: map[string]backlog.Credentials{"ns/secret": tt.credentials}},
			})
			fetch := func() error {
				topic := backlog.Topic{
					Cluster: backlog.Cluster{AdminURL: front.URL, Access: "ns/secret"},
					Name:    "persistent://public/default/orders",
				}
				_, err := source.Fetch(t.Context(), topic, backlog.Request{Detail: backlog.Slim})
				return err
			}
			to = elsewhere.URL
			require.ErrorIs(t, fetch(), backlog.ErrHostNotAllowed)
			to = plain.URL
			require.ErrorContains(t, fetch(), "redirects persistent://public/default/orders from https to http://")
			to = owner.URL
			require.ErrorIs(t, fetch(), backlog.ErrProtocol, "the number of partitions is no statistics")

			_, shown := owner.seen()
			require.Equal(t, tt.shown, shown[0])
			conns, _ := elsewhere.seen()
			require.Zero(t, conns, "not even a connection may be made, for a handshake shows the certificate")
			require.Empty(t, plain.requested())
		})
	}
}
