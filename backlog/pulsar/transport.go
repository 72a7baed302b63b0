// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"crypto/tls"
	"net/http"
	"net/http/httptrace"
	"time"
)

// idleConnTimeout is below the 30 s after which a broker closes an idle connection (httpServerIdleTimeout), so that a
// request never meets one that is being closed.
const idleConnTimeout = 20 * time.Second

// newTransport has no proxy. net/http negotiates gzip and decodes answers, so limits apply to the decoded text.
func newTransport(tlsConfig *tls.Config, config Config) *http.Transport {
	return &http.Transport{
		DialContext:            config.dialer(),
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    config.RequestTimeout,
		MaxConnsPerHost:        config.MaxConnsPerHost,
		MaxIdleConnsPerHost:    config.MaxConnsPerHost,
		IdleConnTimeout:        idleConnTimeout,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// chain is shared by all credentials: one breaker and one limit for each host.
type chain struct {
	breaker *breaker
	limiter *limiter
}

// over returns the RoundTripper that comes after the authentication.
func (c chain) over(connections http.RoundTripper) http.RoundTripper {
	limited := limiterTransport{limiter: c.limiter, next: sender{next: connections}}
	return breakerTransport{breaker: c.breaker, next: limited}
}

// sender is the last step before the connections: the breaker may have opened while the request waited for its turn.
type sender struct{ next http.RoundTripper }

func (s sender) RoundTrip(req *http.Request) (*http.Response, error) {
	hop := &attemptOf(req.Context()).hop
	if open := hop.withdrawn(); open != nil {
		return nil, &openError{open: open}
	}
	hop.sent = true
	traced := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { hop.reused = info.Reused },
	})
	return s.next.RoundTrip(req.WithContext(traced))
}
