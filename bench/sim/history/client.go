// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
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
		Transport: limited{credentials{s, transport}}, Timeout: requestTimeout,
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

// credentials adds them to each request.
type credentials struct {
	server Server
	next   http.RoundTripper
}

// RoundTrip sends a copy of the request with the credentials.
func (c credentials) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	switch {
	case c.server.Token != "":
		request.Header.Set("Authorization", "Bearer "+c.server.Token)
	case c.server.Username != "":
		request.SetBasicAuth(c.server.Username, c.server.Password)
	}
	return c.next.RoundTrip(request)
}

// limited fails responses that are too large.
type limited struct{ next http.RoundTripper }

// RoundTrip limits the body.
func (l limited) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = &body{ReadCloser: response.Body, left: maxAnswer}
	return response, nil
}

type body struct {
	io.ReadCloser

	left int64
}

func (b *body) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the response is larger than %d MiB: use a shorter time or a larger step", maxAnswer>>20)
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}
