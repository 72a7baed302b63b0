// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"time"
)

// idleConnTimeout is below the 30 s after which a broker closes an idle connection (httpServerIdleTimeout), so that a
// request never meets one that is being closed.
const idleConnTimeout = 20 * time.Second

// newTransport has no proxy and negotiates gzip itself: net/http then limits and decodes the answer transparently.
func newTransport(tlsConfig *tls.Config, config Config) *http.Transport {
	dial := config.dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: config.RequestTimeout}).DialContext
	}
	return &http.Transport{
		DialContext:            dial,
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    config.RequestTimeout,
		MaxConnsPerHost:        config.MaxConnsPerHost,
		MaxIdleConnsPerHost:    config.MaxConnsPerHost,
		IdleConnTimeout:        idleConnTimeout,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// chain is what all credentials share: one breaker and one limit for each host.
type chain struct {
	breaker *breaker
	limiter *limiter
}

// over returns the RoundTripper that comes after the authentication.
func (c chain) over(connections http.RoundTripper) http.RoundTripper {
	limited := limiterTransport{limiter: c.limiter, next: sender{next: connections}}
	return breakerTransport{breaker: c.breaker, next: limited}
}

// attempt is what the chain notes about a request with its redirects; it is in the request's context.
type attempt struct {
	// limit is what a timeout is due to; 0 when the deadline is the caller's.
	limit time.Duration
	// slow says that the answer may take long although the host is well.
	slow bool
	// sent says that something was sent, and took how long the hops took, without the waits for their turns.
	sent bool
	took time.Duration
	hop  hop
}

// hop is the last request of an attempt: its first, or one that follows a redirect.
type hop struct {
	url    *url.URL
	permit *permit
	sent   bool
	took   time.Duration
	// reused says that the connection was a kept one.
	reused bool
	// status and retryAfter are of the answer, 0 while there is none.
	status     int
	retryAfter time.Duration
	// inPulsarsWords says that the reason of a failure is Pulsar's JSON, broken why the body ended early. The client sets
	// both before it closes the body.
	inPulsarsWords bool
	broken         error
	// keptBroke says that a kept connection broke before the answer.
	keptBroke bool
	// open is why the breaker is open after the hop, nil while it is closed.
	open *openState
}

type attemptKey struct{}

func withAttempt(ctx context.Context, a *attempt) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}

// attemptOf finds the attempt, or makes one for a request that was made without.
func attemptOf(ctx context.Context) *attempt {
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok {
		return a
	}
	return &attempt{}
}

// heard notes of an answer what outcome needs.
func (h *hop) heard(resp *http.Response) {
	h.status = resp.StatusCode
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		h.retryAfter = min(time.Duration(min(seconds, 3600))*time.Second, maxProbe)
	}
}

// retryable says that a second attempt may help.
func (h *hop) retryable() bool {
	return h.keptBroke || h.status == http.StatusBadGateway || h.status == http.StatusServiceUnavailable
}

// sender is the last before the connections: the breaker may have opened while the request waited for its turn.
type sender struct{ next http.RoundTripper }

func (s sender) RoundTrip(req *http.Request) (*http.Response, error) {
	hop := &attemptOf(req.Context()).hop
	if open := hop.permit.withdrawn(); open != nil {
		return nil, &openError{open: open}
	}
	hop.sent = true
	traced := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { hop.reused = info.Reused },
	})
	return s.next.RoundTrip(req.WithContext(traced))
}

// closingBody is a body with something to do once when it is closed.
type closingBody struct {
	io.ReadCloser

	closed func()
}

func (b *closingBody) Close() error {
	err := b.ReadCloser.Close()
	if b.closed != nil {
		b.closed()
		b.closed = nil
	}
	return err
}
