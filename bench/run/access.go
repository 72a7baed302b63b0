// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/apache/pulsar-client-go/pulsar"
	"github.com/apache/pulsar-client-go/pulsar/auth"
	"github.com/apache/pulsar-client-go/pulsar/log"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
	credentials "github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/auth"
)

// Access configures the tool's credentials for Pulsar and the certificate authorities that it trusts. It holds file
// names only, so that no result contains a secret. The zero value has no credentials.
type Access credentials.Own

// ShowsCredentials reports whether there are credentials.
func (a Access) ShowsCredentials() bool { return a.TokenFile != "" || a.Plugin != "" }

// Validate reads the files. Its errors name flags.
func (a Access) Validate() error {
	if _, err := a.tlsConfig(); err != nil {
		return err
	}
	_, err := a.params()
	return err
}

// params reads the authentication parameters. Their values may be file names too.
func (a Access) params() (authparams.Params, error) {
	if a.TokenFile != "" {
		return authparams.Params{Method: authparams.Token, Token: authparams.Value{Path: a.TokenFile}},
			readable("--pulsar-token-file", a.TokenFile)
	}
	if a.ParamsFile == "" {
		return authparams.Params{}, nil
	}
	text, err := os.ReadFile(a.ParamsFile)
	if err != nil {
		return authparams.Params{}, fmt.Errorf("--pulsar-auth-params-file: %w", err)
	}
	p, err := authparams.Parse(a.Plugin, string(text))
	if err != nil {
		return authparams.Params{}, fmt.Errorf("--pulsar-auth-params-file: %w", err)
	}
	for _, value := range p.Values() {
		if err := readable("--pulsar-auth-params-file: "+value.Key, value.Path); err != nil {
			return authparams.Params{}, err
		}
	}
	if p.IssuerRoots != (authparams.Value{}) {
		return authparams.Params{}, errors.New("--pulsar-auth-params-file: trustCertsFilePath is not supported here: " +
			"add the certificate to those of this machine, or name a file with SSL_CERT_FILE")
	}
	return p, nil
}

// readable fails if a file cannot be opened.
func readable(what, path string) error {
	if path == "" {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return file.Close()
}

// provider authenticates to brokers and to their admin service. It reads the files again for each connection.
func (a Access) provider() (auth.Provider, error) {
	p, err := a.params()
	if err != nil {
		return nil, err
	}
	switch p.Method {
	case authparams.Token:
		if p.Token.Path != "" {
			return auth.NewAuthenticationTokenFromFile(p.Token.Path), nil
		}
		return auth.NewAuthenticationToken(p.Token.Content), nil
	case authparams.Basic:
		return auth.NewAuthenticationBasic(p.User, p.Password)
	case authparams.TLS:
		return auth.NewAuthenticationFromTLSCertSupplier(func() (*tls.Certificate, error) { return keyPair(p) }), nil
	case authparams.OAuth2:
		key := "data:;base64," + base64.StdEncoding.EncodeToString([]byte(p.Client.Content))
		if p.Client.Path != "" {
			key = "file://" + p.Client.Path
		}
		return auth.NewAuthenticationOAuth2WithParams(map[string]string{
			auth.ConfigParamType:      auth.ConfigParamTypeClientCredentials,
			auth.ConfigParamIssuerURL: p.Issuer, auth.ConfigParamAudience: p.Audience, auth.ConfigParamScope: p.Scope,
			auth.ConfigParamKeyFile: key,
		})
	case authparams.None:
	}
	return auth.NewAuthDisabled(), nil
}

// keyPair is a client certificate. Its errors show no part of the key.
func keyPair(p authparams.Params) (*tls.Certificate, error) {
	certificate, errCertificate := content(p.Certificate)
	key, errKey := content(p.Key)
	if err := errors.Join(errCertificate, errKey); err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, errors.New("tlsCertFile and tlsKeyFile must be a certificate and its key in PEM")
	}
	return &pair, nil
}

func content(value authparams.Value) ([]byte, error) {
	if value.Path == "" {
		return []byte(value.Content), nil
	}
	return os.ReadFile(value.Path)
}

func (a Access) tlsConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.CAFile == "" {
		return config, nil
	}
	pem, err := os.ReadFile(a.CAFile)
	if err != nil {
		return nil, fmt.Errorf("--pulsar-ca-file: %w", err)
	}
	config.RootCAs = x509.NewCertPool()
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("--pulsar-ca-file %s has no certificate: it must be PEM with at least one", a.CAFile)
	}
	return config, nil
}

// Client returns a client that logs nothing. It connects on first use.
func (a Access) Client(serviceURL string) (pulsar.Client, error) {
	const timeout = 10 * time.Second
	provider, err := a.provider()
	if err != nil {
		return nil, err
	}
	pulsarClient, err := pulsar.NewClient(pulsar.ClientOptions{
		URL: serviceURL, Logger: log.DefaultNopLogger(), MetricsRegisterer: prometheus.NewRegistry(),
		ConnectionTimeout: timeout, OperationTimeout: timeout,
		Authentication: provider, TLSTrustCertsFilePath: a.CAFile,
	})
	if err != nil {
		return nil, fmt.Errorf("making a client of %s: %w", serviceURL, err)
	}
	return pulsarClient, nil
}

// admin returns the admin service at a URL.
func (a Access) admin(url string) (admin, error) {
	config, err := a.tlsConfig()
	if err != nil {
		return admin{}, err
	}
	provider, err := a.provider()
	if err != nil {
		return admin{}, err
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config}
	service := admin{url: url, method: provider.Name(), http: &http.Client{Transport: transport}}
	if service.method == "" {
		return service, nil
	}
	if err := errors.Join(provider.Init(), provider.WithTransport(transport)); err != nil {
		return admin{}, fmt.Errorf("authenticating to Pulsar: %w", err)
	}
	service.http = &http.Client{Transport: provider, CheckRedirect: keepsEncryption}
	return service, nil
}

// keepsEncryption follows redirects to other brokers, but not from https to http with credentials.
func keepsEncryption(next *http.Request, before []*http.Request) error {
	const most = 10
	if len(before) >= most || next.URL.Scheme != before[0].URL.Scheme {
		return fmt.Errorf("pulsar redirects to %s://%s: credentials stay with %s, and with %d redirects", next.URL.Scheme,
			next.URL.Host, before[0].URL.Scheme, most)
	}
	return nil
}
