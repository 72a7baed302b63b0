// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// failuresToOpen is how many failures in a row open the breaker: one may be a restart, two a retry.
	failuresToOpen = 3
	// firstProbe is the time from the opening to the first request that probes the host; it doubles up to maxProbe.
	firstProbe = time.Second
	// maxProbe bounds how late a recovered host is found, and how long it may defer requests by Retry-After.
	maxProbe = 30 * time.Second
	// hostForgotten is how long after its last probe a host that fails counts as one: it may be gone for good.
	hostForgotten = 10 * maxProbe
)

// breaker is the circuit breaker of each host: it opens after failuresToOpen, and lets one probe at a time through
// then.
//
// github.com/sony/gobreaker probes at one fixed interval, which neither grows nor heeds Retry-After.
type breaker struct {
	now func() time.Time

	mu sync.Mutex
	// hosts and what is in them are guarded by mu.
	hosts perHost[health]
}

// health is what is known of one host.
type health struct {
	// failures in a row, and when the first of them was.
	failures int
	since    time.Time
	// open is why only probes are let through, nil while the breaker is closed.
	open *openState
	// wait is the time from one probe to the next, which is at next at the earliest; probing says that one is under way.
	wait    time.Duration
	next    time.Time
	probing bool
}

// openError is returned for a request that an open breaker holds back.
type openError struct{ open *openState }

func (e *openError) Error() string { return "the circuit breaker is open: " + e.open.cause }

func (e *openError) Unwrap() error { return errHeldBack }

func newBreaker() *breaker {
	return &breaker{now: time.Now, hosts: newPerHost(func() health { return health{} })}
}

// permit lets one request through; its outcome has to be reported.
type permit struct {
	breaker *breaker
	// host is nil where too many are in use to remember another.
	host  *hostState[health]
	probe bool
}

// allow returns a permit, or why the breaker is open.
func (b *breaker) allow(u *url.URL) (*permit, *openState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	p := &permit{breaker: b, host: b.hosts.of(u, now)}
	if p.host == nil {
		return p, nil
	}
	if h := &p.host.state; h.open != nil {
		if h.probing || now.Before(h.next) {
			return nil, h.open
		}
		h.probing, p.probe = true, true
	}
	p.host.users++
	p.host.used = now
	return p, nil
}

// withdrawn is why a request that waited since it was allowed is not to be sent any more, nil when it is.
func (p *permit) withdrawn() *openState {
	if p.host == nil || p.probe {
		return nil
	}
	p.breaker.mu.Lock()
	defer p.breaker.mu.Unlock()
	return p.host.state.open
}

// report says how the request went, and returns why the breaker is open now, if the request failed and it is.
func (p *permit) report(o outcome) *openState {
	if p.host == nil {
		return nil
	}
	p.breaker.mu.Lock()
	defer p.breaker.mu.Unlock()
	p.host.users--
	if p.probe {
		p.host.state.probing = false
	}
	return p.host.state.count(o, p.probe, p.breaker.now())
}

// count opens or closes the breaker.
func (h *health) count(o outcome, probe bool, now time.Time) *openState {
	switch {
	case o.kind == unknown:
		return nil
	case o.kind == answered:
		h.failures, h.open = 0, nil
		return nil
	case h.open != nil && !probe: // sent before it opened
		return h.open
	}
	if h.failures++; h.failures == 1 {
		h.since = now
	}
	switch {
	case h.open != nil:
		h.wait = min(2*h.wait, maxProbe)
	case h.failures >= failuresToOpen || o.retryAfter > 0:
		h.wait = firstProbe
	default:
		return nil
	}
	h.open = &openState{since: h.since, reason: o.reason, cause: o.cause}
	h.next = now.Add(min(max(h.wait, o.retryAfter), maxProbe))
	return h.open
}

// openHosts is what the gauge shows.
func (b *breaker) openHosts() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	open, now := 0, b.now()
	for _, h := range b.hosts.states {
		if h.state.open != nil && now.Sub(h.used) < hostForgotten {
			open++
		}
	}
	return open
}

// breakerTransport reports the outcome of a request when the body of its answer is closed.
type breakerTransport struct {
	breaker *breaker
	next    http.RoundTripper
}

func (t breakerTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	a := attemptOf(req.Context())
	if a == nil {
		a = &attempt{}
		req = req.WithContext(withAttempt(req.Context(), a))
	}
	a.hop = hop{url: req.URL}
	permit, open := t.breaker.allow(req.URL)
	if open != nil {
		return nil, &openError{open: open}
	}
	a.hop.withdrawn = permit.withdrawn
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		a.hop.keptBroke = a.hop.reused && backlog.ConnectionBroken(err)
		a.hop.open = permit.report(a.outcome(err))
		return nil, err
	}
	a.hop.record(resp)
	resp.Body = &closingBody{ReadCloser: resp.Body, closed: func() { a.hop.open = permit.report(a.outcome(a.hop.broken)) }}
	return resp, nil
}
