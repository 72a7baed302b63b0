// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
)

const (
	requestTimeout = time.Minute
	// maxAnswer exceeds the result of any range query of one series.
	maxAnswer    = 64 << 20
	maxRedirects = 3
)

// Server is a Prometheus, or a server with its HTTP API: Thanos, Mimir, VictoriaMetrics.
type Server struct {
	// URL with its path prefix, such as https://prometheus.example.org or http://localhost:9090.
	URL string
	// Token is a bearer token; Username and Password are for basic authentication. At most one of both is set.
	Token, Username, Password string
	// CA are PEM certificates of further authorities; empty for those of the system.
	CA []byte
}

// connect creates the client.
func (s Server) connect() (v1.API, error) {
	address, err := url.Parse(s.URL)
	if err != nil || address.Scheme != "http" && address.Scheme != "https" || address.Host == "" {
		return nil, fmt.Errorf("the URL of Prometheus is %q: it must be http://host:port or https://host:port", s.URL)
	}
	if s.Token != "" && s.Username != "" {
		return nil, errors.New("there are a token and a user name for Prometheus: use one of them")
	}
	transport := http.DefaultTransport.(*http.Transport).Clone() // it is always one
	if len(s.CA) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			return nil, fmt.Errorf("reading the authorities of the system: %w", err)
		}
		if !pool.AppendCertsFromPEM(s.CA) {
			return nil, errors.New("the file of authorities has no certificate: it must have PEM blocks CERTIFICATE")
		}
		transport.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	}
	client, err := api.NewClient(api.Config{Address: s.URL, Client: &http.Client{
		Transport: guarded{s, transport}, Timeout: requestTimeout,
		CheckRedirect: func(request *http.Request, before []*http.Request) error {
			if len(before) >= maxRedirects || request.URL.Host != address.Host || request.URL.Scheme != address.Scheme {
				return fmt.Errorf("redirected to %s: name that as the URL of Prometheus if you trust it", request.URL.Host)
			}
			return nil
		},
	}})
	if err != nil {
		return nil, fmt.Errorf("making a client of Prometheus: %w", err)
	}
	return v1.NewAPI(client), nil
}

// guarded adds the credentials to each request, and fails responses that are too large.
type guarded struct {
	server Server
	next   http.RoundTripper
}

// RoundTrip sends a copy of the request.
func (g guarded) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	switch {
	case g.server.Token != "":
		request.Header.Set("Authorization", "Bearer "+g.server.Token)
	case g.server.Username != "":
		request.SetBasicAuth(g.server.Username, g.server.Password)
	}
	response, err := g.next.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer)
	}
	return response, err
}
