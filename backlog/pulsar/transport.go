// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"crypto/tls"
	"net/http"
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

// chain has one breaker and one limit for each host.
type chain struct {
	breaker *breaker
	limiter *limiter
}

// over returns the RoundTripper that comes after the authentication. It decodes gzip as net/http would, with half the
// garbage, so limits apply to the decoded text.
func (c chain) over(connections http.RoundTripper) http.RoundTripper {
	decoding := gzhttp.Transport(connections, gzhttp.TransportEnableZstd(false))
	return breakerTransport{breaker: c.breaker, next: limiterTransport{limiter: c.limiter, next: decoding}}
}

// acquire asks the breaker and the limiter before a request, and returns a function to call with its outcome; nil if
// the request must not be sent.
func (c chain) acquire(ctx context.Context, u *url.URL) (release func(outcome)) {
	permit, open := c.breaker.allow(u)
	if open != nil {
		return nil
	}
	done, err := c.limiter.acquire(ctx, u)
	if err != nil {
		permit.report(outcome{})
		return nil
	}
	if permit.withdrawn() != nil {
		done()
		permit.report(outcome{})
		return nil
	}
	return func(o outcome) {
		done()
		permit.report(o)
	}
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
