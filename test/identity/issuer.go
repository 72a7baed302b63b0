// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"
)

// Issuer is an OAuth2 issuer for client credentials, over TLS, with discovery and keys of OpenID Connect.
type Issuer struct {
	*Signer

	server  *httptest.Server
	secrets map[string]string
}

// issuedLife is the lifetime of tokens.
const issuedLife = time.Hour

// NewIssuer starts an issuer that knows the clients by name and secret. Its tokens have the client as subject, and the
// requested audience. It runs until Close.
func NewIssuer(authority *Authority, signer *Signer, secrets map[string]string) (*Issuer, error) {
	pair, err := authority.Server("issuer")
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair([]byte(pair.Certificate), []byte(pair.Key))
	if err != nil {
		return nil, fmt.Errorf("reading the issuer's certificate: %w", err)
	}
	i := &Issuer{Signer: signer, secrets: secrets}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discovery)
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, i.jwks()) })
	mux.HandleFunc("POST /token", i.token)
	i.server = httptest.NewUnstartedServer(mux)
	i.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}
	i.server.StartTLS()
	return i, nil
}

// URL names the issuer, in discovery and in tokens.
func (i *Issuer) URL() string { return i.server.URL }

// Close stops it.
func (i *Issuer) Close() { i.server.Close() }

func (i *Issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{
		"issuer": i.URL(), "token_endpoint": i.URL() + "/token", "jwks_uri": i.URL() + "/keys",
		"authorization_endpoint": i.URL() + "/authorize", "response_types_supported": []string{"code"},
		"subject_types_supported": []string{"public"}, "id_token_signing_alg_values_supported": []string{"RS256"},
	})
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	client := r.PostFormValue("client_id")
	secret, known := i.secrets[client]
	switch {
	case r.PostFormValue("grant_type") != "client_credentials":
		answer(w, http.StatusBadRequest, map[string]string{"error": "unsupported_grant_type"})
	case !known || secret != r.PostFormValue("client_secret"):
		answer(w, http.StatusUnauthorized,
			map[string]string{"error": "invalid_client", "error_description": "no such client or secret"})
	default:
		i.grant(w, client, r.PostFormValue("audience"))
	}
}

func (i *Issuer) grant(w http.ResponseWriter, client, audience string) {
	now := time.Now()
	// A broker's AuthenticationProviderOpenID requires all of these, including nbf.
	signed, err := i.Sign(map[string]any{
		"iss": i.URL(), "sub": client, "aud": audience, "iat": now.Unix(), "nbf": now.Unix(),
		"exp": now.Add(issuedLife).Unix(),
	})
	if err != nil {
		answer(w, http.StatusInternalServerError, map[string]string{"error": "server_error"})
		return
	}
	answer(w, http.StatusOK,
		map[string]any{"access_token": signed, "token_type": "Bearer", "expires_in": int(issuedLife.Seconds())})
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // the client notices an incomplete response
}
