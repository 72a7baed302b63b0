// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"crypto/tls"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/test/identity"
)

// secretFile writes a file of credentials.
func secretFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// shown is what a request showed to the admin service.
type shown struct{ authorization, method, certificate string }

// securedAdmin starts an admin service with TLS. caFile has its authority.
func securedAdmin(t *testing.T) (url, caFile string, requests func() shown) {
	t.Helper()
	seen := make(chan shown, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := shown{authorization: r.Header.Get("Authorization"), method: r.Header.Get("X-Pulsar-Auth-Method-Name")}
		if certificates := r.TLS.PeerCertificates; len(certificates) > 0 {
			s.certificate = certificates[0].Subject.CommonName
		}
		seen <- s
		_, _ = io.WriteString(w, `{"partitions": 0}`)
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return server.URL, secretFile(t, "ca.crt", string(authority)), func() shown { return <-seen }
}

func TestAccessIsShownToTheAdminService(t *testing.T) {
	url, caFile, requests := securedAdmin(t)
	authority, err := identity.NewAuthority("ca")
	require.NoError(t, err)
	pair, err := authority.Client("bench")
	require.NoError(t, err)
	certFile, keyFile := secretFile(t, "tls.crt", pair.Certificate), secretFile(t, "tls.key", pair.Key)
	tokenFile := secretFile(t, "token", "secret-token\n")
	for name, test := range map[string]struct {
		access Access
		want   shown
	}{
		"nothing":      {Access{}, shown{}},
		"a token file": {Access{TokenFile: tokenFile}, shown{authorization: "Bearer secret-token", method: "token"}},
		"a token": {
			Access{Plugin: "token", ParamsFile: secretFile(t, "params", "token:other")},
			shown{authorization: "Bearer other", method: "token"},
		},
		"a token in a file that parameters name": {
			Access{Plugin: "token", ParamsFile: secretFile(t, "params", "file://"+tokenFile)},
			shown{authorization: "Bearer secret-token", method: "token"},
		},
		"a password": {
			Access{Plugin: "basic", ParamsFile: secretFile(t, "params", "user:password")},
			shown{authorization: "Basic dXNlcjpwYXNzd29yZA==", method: "basic"},
		},
		"a certificate": {
			Access{Plugin: "tls", ParamsFile: secretFile(t, "params", "tlsCertFile:"+certFile+",tlsKeyFile:"+keyFile)},
			shown{method: "tls", certificate: "bench"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.access.CAFile = caFile
			require.NoError(t, test.access.Validate())
			service, err := test.access.admin(url)
			require.NoError(t, err)
			require.NoError(t, service.check(t.Context(), topic))
			require.Equal(t, test.want, requests())
			client, err := test.access.Client("pulsar+ssl://127.0.0.1:1")
			require.NoError(t, err)
			client.Close()
		})
	}
}

func TestAccessGetsATokenOfAnIssuer(t *testing.T) {
	url, caFile, requests := securedAdmin(t)
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/.well-known/openid-configuration" {
			_, _ = io.WriteString(w, `{"token_endpoint": "http://`+r.Host+`/token"}`)
			return
		}
		_, _ = io.WriteString(w, `{"access_token": "issued", "token_type": "Bearer", "expires_in": 3600}`)
	}))
	t.Cleanup(issuer.Close)
	key := secretFile(t, "key.json", `{"type": "client_credentials", "client_id": "bench", "client_secret": "s"}`)
	access := Access{
		Plugin: "oauth2", CAFile: caFile,
		ParamsFile: secretFile(t, "params", `{"issuerUrl": "`+issuer.URL+`", "privateKey": "file://`+key+`"}`),
	}
	require.NoError(t, access.Validate())
	service, err := access.admin(url)
	require.NoError(t, err)
	require.NoError(t, service.check(t.Context(), topic))
	require.Equal(t, shown{authorization: "Bearer issued", method: "token"}, requests())
}

func TestAccessSaysWhichFlagToMend(t *testing.T) {
	for name, test := range map[string]struct {
		access Access
		want   string
	}{
		"no token file":         {Access{TokenFile: "missing"}, "--pulsar-token-file: open missing"},
		"no file of parameters": {Access{Plugin: "token", ParamsFile: "missing"}, "--pulsar-auth-params-file: open missing"},
		"no key": {
			Access{Plugin: "tls", ParamsFile: secretFile(t, "p", "tlsCertFile:/missing,tlsKeyFile:/missing")},
			"--pulsar-auth-params-file: tlsCertFile: open /missing",
		},
		"an authority for the issuer": {
			Access{Plugin: "oauth2", ParamsFile: secretFile(t, "p",
				`{"issuerUrl": "https://i", "privateKey": "data:,a", "trustCertsFilePath": "data:,b"}`)},
			"trustCertsFilePath is not supported here",
		},
		"no authority":  {Access{CAFile: "missing"}, "--pulsar-ca-file: open missing"},
		"an empty file": {Access{CAFile: secretFile(t, "ca", "")}, "has no certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.access.Validate()
			require.ErrorContains(t, err, test.want)
		})
	}
}

func TestCredentialsStayWithEncryption(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("credentials were sent without encryption")
	}))
	t.Cleanup(plain.Close)
	server := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusTemporaryRedirect))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	service, err := Access{
		TokenFile: secretFile(t, "token", "secret"), CAFile: secretFile(t, "ca.crt", string(authority)),
	}.admin(server.URL)
	require.NoError(t, err)
	_, _, err = service.once(t.Context(), call{method: http.MethodGet, path: "/", accepted: []int{http.StatusOK}})
	require.ErrorContains(t, err, "credentials stay with https")
	require.NotContains(t, err.Error(), "secret")
}
