// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/auth"
)

// issuer issues token-1 with every request.
type issuer struct {
	*httptest.Server

	mu sync.Mutex
	// requests are guarded by mu.
	requests []url.Values
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	i := &issuer{}
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/realm/.well-known/openid-configuration" {
			answers(`{"token_endpoint":"`+i.URL+`/token"}`)(w, r)
			return
		}
		_ = r.ParseForm() // an empty form fails the test
		i.mu.Lock()
		i.requests = append(i.requests, r.PostForm)
		i.mu.Unlock()
		answers(`{"access_token":"token-1","expires_in":3600,"token_type":"Bearer"}`)(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

func (i *issuer) forms() []url.Values {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.requests
}

// issuerParams are those of a client with the secret "s3cret".
func issuerParams(issuer string) string {
	return `{"issuerUrl":"` + issuer + `","privateKey":"data:,{\"client_id\":\"me\",\"client_secret\":\"s3cret\"}",` +
		`"audience":"pulsar","scope":"a b"}`
}

func TestTokensOfIssuersAreShownToBrokers(t *testing.T) {
	issuer, broker := newIssuer(t), newFakeBroker(t)
	broker.on("orders/partitions", needs("Bearer token-1", answers(notPartitioned)))
	broker.on("orders/stats", needs("Bearer token-1", answers(emptyTopic)))
	registry := prometheus.NewRegistry()
	params := issuerParams(issuer.URL + "/realm")
	source := newSource(t, Config{
		Registerer: registry, Own: auth.Own{Plugin: "oauth2", ParamsFile: writeFile(t, "params", params)},
	}, broker)
	for range 2 {
		_, err := source.Fetch(t.Context(), broker.topic("orders"), backlog.Request{Detail: backlog.Slim})
		require.NoError(t, err)
	}
	require.Equal(t, "token", broker.request(0).Header.Get("X-Pulsar-Auth-Method-Name"))
	require.Equal(t, []url.Values{{
		"grant_type": {"client_credentials"}, "client_id": {"me"}, "client_secret": {"s3cret"}, "audience": {"pulsar"},
		"scope": {"a b"},
	}}, issuer.forms(), "one token must do")
	require.Equal(t, map[string]float64{"discovery ok": 1, "token ok": 1},
		countedIn(t, registry, "pulsar_autoscaler_source_oauth2_requests_total"))
}

func TestAnIssuerWithTLSNamesNoEndpointWithout(t *testing.T) {
	secure := httptest.NewTLSServer(answers(`{"token_endpoint":"http://127.0.0.1:1/token"}`))
	t.Cleanup(secure.Close)
	broker := newOrders(t)
	params := `{"issuerUrl":"` + secure.URL + `","privateKey":"data:,{\"client_id\":\"me\",\"client_secret\":\"s3cret\"}"}`
	source := newSource(t,
		Config{AllowedIssuers: []string{secure.URL}, Credentials: &fakeCredentials{named: map[string]backlog.Credentials{
			"trusting": {Plugin: "oauth2", Params: params, TrustCerts: string(pemOf(secure.Certificate()))},
			"careless": {Plugin: "oauth2", Params: params, AllowInsecureConnection: true, SkipHostnameVerification: true},
		}}}, broker)
	_, err := source.Fetch(t.Context(), broker.named("orders", "trusting"), backlog.Request{Detail: backlog.Slim})
	require.ErrorIs(t, err, backlog.ErrProtocol)
	require.ErrorContains(t, err, "has no token_endpoint with https://")
	_, err = source.Fetch(t.Context(), broker.named("orders", "careless"), backlog.Request{Detail: backlog.Slim})
	require.ErrorIs(t, err, backlog.ErrUnreachable, "an issuer is always checked")
	require.ErrorContains(t, err, "signed by an unknown authority")
	require.Empty(t, broker.requested())
}
