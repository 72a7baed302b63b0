// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"crypto/tls"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"time"

	"github.com/klauspost/compress/gzhttp"
)

// idleConnTimeout is below the 30 s after which a broker closes an idle connection (httpServerIdleTimeout), so that a
// request never meets one that is being closed.
const idleConnTimeout = 20 * time.Second

// newTransport has no proxy.
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

// over returns the RoundTripper that comes after the authentication. It decodes gzip as net/http would, with half the
// garbage, so limits apply to the decoded text.
func (c chain) over(connections http.RoundTripper) http.RoundTripper {
	decoding := gzhttp.Transport(connections, gzhttp.TransportEnableZstd(false))
	limited := limiterTransport{limiter: c.limiter, next: sender{next: decoding}}
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

// maxHosts bounds the hosts with a state; beyond it the least recently used idle host is dropped.
const maxHosts = 1024

// perHost keeps a state for each scheme, host and port: plain HTTP to a TLS port fails, which is independent of TLS
// there. Its owner's mutex guards it.
type perHost[S any] struct {
	build  func() S
	states map[string]*hostState[S]
}

type hostState[S any] struct {
	state S
	// users is the number of waiting and active requests.
	users int
	used  time.Time
}

func newPerHost[S any](build func() S) perHost[S] {
	return perHost[S]{build: build, states: map[string]*hostState[S]{}}
}

// of returns the state of a host, or creates it; nil if too many hosts are all in use, or the URL has no host.
func (p perHost[S]) of(u *url.URL, now time.Time) *hostState[S] {
	host, ok := canonicalHost(u.Hostname())
	if !ok { // AllowedHosts refuses such a host
		return nil
	}
	key := u.Scheme + "://" + host + ":" + portOf(u)
	if known := p.states[key]; known != nil {
		return known
	}
	if len(p.states) >= maxHosts && !p.dropOldest() {
		return nil
	}
	fresh := &hostState[S]{state: p.build(), used: now}
	p.states[key] = fresh
	return fresh
}

func (p perHost[S]) dropOldest() bool {
	oldest := ""
	for key, host := range p.states {
		if host.users == 0 && (oldest == "" || host.used.Before(p.states[oldest].used)) {
			oldest = key
		}
	}
	delete(p.states, oldest)
	return oldest != ""
}
