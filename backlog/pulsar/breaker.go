// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// failuresToOpen is the number of consecutive failures that open the breaker: one may be a restart, two a retry.
	failuresToOpen = 3
	// firstProbe is the time until the first probe of the host after the breaker opens; it doubles up to maxProbe.
	firstProbe = time.Second
	// maxProbe bounds how late a recovered host is found, and how long the host may defer requests by Retry-After.
	maxProbe = 30 * time.Second
	// hostForgotten is how long after its last probe a failing host is counted: it may be gone permanently.
	hostForgotten = 10 * maxProbe
	// checkPath costs a broker nothing: it is what kubelets probe. Any answer is one, also that it may not be read.
	checkPath = "/admin/v2/brokers/ready"
	// checkTimeout bounds a check.
	checkTimeout = time.Second
)

// breaker is the circuit breaker of each host: it opens after failuresToOpen, and then allows one probe at a time.
//
// github.com/sony/gobreaker probes at a fixed interval, which neither grows nor respects Retry-After.
type breaker struct {
	now func() time.Time

	mu sync.Mutex
	// hosts and their content are guarded by mu.
	hosts perHost[health]
}

// health is the state of one host.
type health struct {
	// failures counts consecutive failures since the time in since.
	failures int
	since    time.Time
	// open is why only probes are allowed, nil while the breaker is closed.
	open *openState
	// wait is the time between two probes, next the earliest time of the next one; probing is true while one is active.
	wait    time.Duration
	next    time.Time
	probing bool
}

// openError is returned for a request that an open breaker blocks.
type openError struct{ open *openState }

func (e *openError) Error() string { return "the circuit breaker is open: " + e.open.cause }

func (e *openError) Unwrap() error { return errHeldBack }

func newBreaker() *breaker {
	return &breaker{now: time.Now, hosts: newPerHost(func() health { return health{} })}
}

// permit allows one request; its outcome has to be reported.
type permit struct {
	breaker *breaker
	// host is nil if too many hosts are in use to add another.
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

// withdrawn is why a request that waited since it was allowed must not be sent, nil if it may.
func (p *permit) withdrawn() *openState {
	if p.host == nil || p.probe {
		return nil
	}
	p.breaker.mu.Lock()
	defer p.breaker.mu.Unlock()
	return p.host.state.open
}

// suspects reports whether the outcome is a timeout that would open the breaker.
func (p *permit) suspects(o outcome) bool {
	if p.host == nil || p.probe || !o.timedOut {
		return false
	}
	p.breaker.mu.Lock()
	defer p.breaker.mu.Unlock()
	h := &p.host.state
	return h.open == nil && h.failures+1 >= failuresToOpen
}

// report records the outcome of the request, and returns why the breaker is open, if the request failed and it is.
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

// openHosts is the value of the gauge.
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
	if open == nil && permit.probe {
		permit, open = t.probe(permit, req)
	}
	if open != nil {
		return nil, &openError{open: open}
	}
	a.hop.withdrawn = permit.withdrawn
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		a.hop.keptBroke = a.hop.reused && backlog.ConnectionBroken(err)
		a.hop.open = permit.report(t.verdict(permit, req, a.outcome(err)))
		return nil, err
	}
	a.hop.record(resp)
	resp.Body = &closingBody{ReadCloser: resp.Body, closed: func() {
		a.hop.open = permit.report(t.verdict(permit, req, a.outcome(a.hop.broken)))
	}}
	return resp, nil
}

// verdict is the outcome of a request for its host. A host whose requests time out may be healthy, and their topics
// stuck: a cheap request checks it before its breaker opens. A check that is not sent excuses nothing: requests
// that hang may have all connections.
func (t breakerTransport) verdict(p *permit, req *http.Request, o outcome) outcome {
	if !p.suspects(o) {
		return o
	}
	if checked := t.check(req); checked.kind == answered {
		return checked
	}
	return o
}

// probe checks a host whose breaker is open, before any other request is sent there.
func (t breakerTransport) probe(p *permit, req *http.Request) (*permit, *openState) {
	checked := t.check(req)
	if checked.kind == unknown { // not sent: the request itself is the probe
		return p, nil
	}
	if open := p.report(checked); open != nil {
		return nil, open
	}
	return t.breaker.allow(req.URL)
}

// check asks the host of a request, with its credentials, whether it answers at all.
func (t breakerTransport) check(req *http.Request) outcome {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), checkTimeout)
	defer cancel()
	a := &attempt{limit: checkTimeout}
	a.hop = hop{url: req.URL, withdrawn: func() *openState { return nil }}
	cheap := req.Clone(withAttempt(ctx, a))
	cheap.Method, cheap.Body, cheap.GetBody, cheap.ContentLength = http.MethodGet, http.NoBody, nil, 0
	cheap.Header.Del("Content-Type")
	u := *req.URL
	u.Path, u.RawPath, u.RawQuery = checkPath, "", ""
	cheap.URL = &u
	resp, err := t.next.RoundTrip(cheap)
	if err != nil {
		return a.outcome(err)
	}
	a.hop.record(resp)
	drain(resp.Body)
	_ = resp.Body.Close() // the answer was read or abandoned
	return a.outcome(nil)
}
