// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"cmp"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

func TestFailuresOfIssuersAreExplained(t *testing.T) {
	called := atomic.Int64{}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called.Add(1) }))
	t.Cleanup(elsewhere.Close)
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
			text: "OAuth2 issuer ISSUER answered 429 to the request for a token: retried soon",
		},
		"a closed connection": {
			token: breaks(t), reason: backlog.ErrUnreachable,
			text: "OAuth2 issuer ISSUER: broken",
		},
		"a connection closed within the answer": {
			token: func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", "100")
				answers(`{"access_token":`)(w, r)
			},
			reason: backlog.ErrUnreachable,
			text:   "OAuth2 issuer ISSUER: broken",
		},
		"it hangs": {
			token: hangs, timeout: 20 * time.Millisecond, reason: backlog.ErrUnreachable,
			text: "OAuth2 issuer ISSUER: late",
		},
		"it hangs before that": {
			discovery: hangs, timeout: 20 * time.Millisecond, reason: backlog.ErrUnreachable,
			text: "OAuth2 issuer ISSUER: late",
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
			source, _ := issuer.source(t)
			source.issuer.config.IssuerTimeout = cmp.Or(tt.timeout, time.Minute)
			issuer.on(tt.discovery, tt.token)
			_, err := source.authenticate(t.Context())
			require.ErrorIs(t, err, tt.reason)
			require.EqualError(t, err, tt.reason.Error()+": "+strings.ReplaceAll(tt.text, "ISSUER", issuer.URL+"/realm"))
			require.Zero(t, called.Load())
		})
	}
}

func TestKeyFilesOfClients(t *testing.T) {
	good, err := decodeKeyFile(
		`{"type":"sn_service_account","client_id":"me","client_secret":"s3cret","client_email":"a@b","issuer_url":"https://x"}`)
	require.NoError(t, err)
	require.Equal(t, keyFile{Type: "sn_service_account", ClientID: "me", ClientSecret: "s3cret"}, good)
	for _, wrong := range []string{
		"", "s3cret", "{}", `{"client_id":"me"}`, `{"client_id":5,"client_secret":"s3cret"}`,
		`{"type":"s3cret","client_id":"me","client_secret":"s3cret"}`,
	} {
		_, err := decodeKeyFile(wrong)
		require.ErrorContains(t, err, "privateKey ")
		require.NotContains(t, err.Error(), "s3cret")
	}
}

// breaks sends the start of an answer and closes the connection.
func breaks(t *testing.T) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, buffer, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = buffer.WriteString("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
		_ = buffer.Flush()
		_ = conn.Close()
	}
}

// hangs sends nothing until the client has disconnected.
func hangs(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func redirectsTo(base string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", base+r.URL.RequestURI())
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}
