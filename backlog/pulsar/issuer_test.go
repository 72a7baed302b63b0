// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestIssuersThatDoNotGiveATokenSayWhy(t *testing.T) {
	elsewhere := newFakeBroker(t)
	document := func(fields map[string]string) http.HandlerFunc {
		text, err := json.Marshal(fields)
		require.NoError(t, err)
		return answers(string(text))
	}
	tests := map[string]struct {
		discovery, token http.HandlerFunc
		timeout          time.Duration
		reason           error
		text             string
	}{
		"the client is refused": {
			token:  sends(401, "application/json", `{"error":"invalid_client","error_description":"bad secret s3cret"}`),
			reason: backlog.ErrUnauthenticated,
			text:   `OAuth2 issuer ISSUER refuses the client: "invalid_client bad secret [secret]"`,
		},
		"the client is refused, at length": {
			token: sends(401, "application/json",
				`{"error":"invalid_client","error_description":"`+strings.Repeat("x", backlog.MostQuoted-18)+`s3cret"}`),
			reason: backlog.ErrUnauthenticated, text: `OAuth2 issuer ISSUER refuses the client: "invalid_client ` +
				strings.Repeat("x", backlog.MostQuoted-18) + `[se..."`,
		},
		"the audience is refused, with 200": {
			token:  sends(200, "application/json", `{"error":"invalid_target"}`),
			reason: backlog.ErrUnauthenticated, text: `OAuth2 issuer ISSUER refuses the client: "invalid_target"`,
		},
		"the client is refused without a word": {
			token: sends(401, "text/html", "s3cret"), reason: backlog.ErrUnauthenticated,
			text: "OAuth2 issuer ISSUER answered 401 to the request for a token: are client_id and client_secret right?",
		},
		"it is overloaded": {
			token: sends(429, "text/html", "s3cret"), reason: backlog.ErrUnavailable,
			text: "OAuth2 issuer ISSUER answered 429 to the request for a token: asked again soon",
		},
		"it breaks off": {
			token: breaks(t), reason: backlog.ErrUnreachable,
			text: "OAuth2 issuer ISSUER: the connection was closed before the answer was complete",
		},
		"it breaks off in the middle": {
			token: func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", "100")
				answers(`{"access_token":`)(w, r)
			},
			reason: backlog.ErrUnreachable,
			text:   "OAuth2 issuer ISSUER: the connection was closed before the answer was complete",
		},
		"it hangs": {
			token: hangs, timeout: 20 * time.Millisecond, reason: backlog.ErrUnreachable,
			text: "OAuth2 issuer ISSUER: no answer in time",
		},
		"it hangs before that": {
			discovery: hangs, timeout: 20 * time.Millisecond, reason: backlog.ErrUnreachable,
			text: "OAuth2 issuer ISSUER: no answer in time",
		},
		"it sends no token": {
			token: answers(`{"token_type":"s3cret"}`), reason: backlog.ErrProtocol,
			text: "OAuth2 issuer ISSUER: its answer has no token: is it the issuer's URL?",
		},
		"it sends a token that would be two headers": {
			token: answers(`{"access_token":"s3cret\r\nHost: evil"}`), reason: backlog.ErrProtocol,
			text: "OAuth2 issuer ISSUER: its token is no good: it has a space, a line break or a character outside ASCII " +
				"inside: is it the issuer's URL?",
		},
		"it sends a page": {
			token: sends(200, "text/html", "s3cret"), reason: backlog.ErrProtocol,
			text: "OAuth2 issuer ISSUER: its answer has no token: is it the issuer's URL?",
		},
		"it redirects the client's secret elsewhere": {
			token: redirectsTo(elsewhere.URL), reason: backlog.ErrProtocol,
			text: "OAuth2 issuer ISSUER answered 307 to the request for a token: is it the issuer's URL?",
		},
		"it redirects the discovery elsewhere": {
			discovery: redirectsTo(elsewhere.URL), reason: backlog.ErrProtocol,
			text: "OAuth2 issuer ISSUER answered 307 to its .well-known/openid-configuration: is it the issuer's URL?",
		},
		"it has no discovery": {
			discovery: sends(404, "text/html", ""), reason: backlog.ErrProtocol,
			text: "OAuth2 issuer ISSUER answered 404 to its .well-known/openid-configuration: is it the issuer's URL?",
		},
		"its discovery is a page": {
			discovery: sends(200, "text/html", "<html>"), reason: backlog.ErrProtocol,
			text: "OAuth2 issuer ISSUER: its .well-known/openid-configuration is no JSON: is it the issuer's URL?",
		},
		"its discovery has no end": {
			discovery: answers(`{"a":"` + strings.Repeat("x", maxDiscoveryBytes) + `"}`), reason: backlog.ErrProtocol,
			text: "OAuth2 issuer ISSUER: its .well-known/openid-configuration is no JSON: is it the issuer's URL?",
		},
		"its discovery names no endpoint": {
			discovery: document(nil), reason: backlog.ErrProtocol,
			text: "OAuth2 issuer ISSUER: its .well-known/openid-configuration has no token_endpoint with http://: is it the " +
				"issuer's URL?",
		},
		"its discovery names a file": {
			discovery: document(map[string]string{"token_endpoint": "file://host/etc/passwd"}), reason: backlog.ErrProtocol,
			text: "OAuth2 issuer ISSUER: its .well-known/openid-configuration has no token_endpoint with http://: is it the " +
				"issuer's URL?",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			issuer := newFakeIssuer(t)
			client, _ := issuer.client(t)
			client.timeout = cmp.Or(tt.timeout, time.Minute)
			issuer.on(tt.discovery, tt.token)
			_, err := client.prove(t.Context())
			require.ErrorIs(t, err, tt.reason)
			require.EqualError(t, err, tt.reason.Error()+": "+strings.ReplaceAll(tt.text, "ISSUER", issuer.URL+"/realm"))
			require.Empty(t, elsewhere.asked())
		})
	}
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
	_, err := source.Fetch(t.Context(), broker.named("orders", "trusting"), backlog.Slim)
	require.ErrorIs(t, err, backlog.ErrProtocol)
	require.ErrorContains(t, err, "has no token_endpoint with https://")
	_, err = source.Fetch(t.Context(), broker.named("orders", "careless"), backlog.Slim)
	require.ErrorIs(t, err, backlog.ErrUnreachable, "an issuer is always checked")
	require.ErrorContains(t, err, "signed by an unknown authority")
	require.Empty(t, broker.asked())
}
