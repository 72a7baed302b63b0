// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"fmt"
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

// health is the circuit breaker of a host: it opens after failuresToOpen, and then allows one probe at a time.
//
// github.com/sony/gobreaker probes at a fixed interval, which neither grows nor respects Retry-After.
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

type openError struct{ open *openState }

func (e *openError) Error() string { return "the circuit breaker is open: " + e.open.cause }

func (e *openError) Unwrap() error { return errHeldBack }

// permit allows one request; its outcome has to be reported.
type permit struct {
	hosts *hosts
	// host is nil if too many hosts are in use to add another.
	host  *hostState
	probe bool
}

// allow returns a permit, or why the breaker is open.
func (h *hosts) allow(u *url.URL) (*permit, *openState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	p := &permit{hosts: h, host: h.of(u, now)}
	if p.host == nil {
		return p, nil
	}
	if p.host.open != nil {
		if p.host.probing || now.Before(p.host.next) {
			return nil, p.host.open
		}
		p.host.probing, p.probe = true, true
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
	p.hosts.mu.Lock()
	defer p.hosts.mu.Unlock()
	return p.host.open
}

// suspects reports whether the outcome is a timeout that would open the breaker.
func (p *permit) suspects(o outcome) bool {
	if p.host == nil || p.probe || !o.timedOut {
		return false
	}
	p.hosts.mu.Lock()
	defer p.hosts.mu.Unlock()
	return p.host.open == nil && p.host.failures+1 >= failuresToOpen
}

// report records the outcome of the request, and returns why the breaker is open, if the request failed and it is.
func (p *permit) report(o outcome) *openState {
	if p.host == nil {
		return nil
	}
	p.hosts.mu.Lock()
	defer p.hosts.mu.Unlock()
	p.host.users--
	if p.probe {
		p.host.probing = false
	}
	return p.host.count(o, p.probe, time.Now())
}

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

func (h *hosts) openHosts() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	open, now := 0, time.Now()
	for _, host := range h.states {
		if host.open != nil && now.Sub(host.used) < hostForgotten {
			open++
		}
	}
	return open
}

// hostTransport reports the outcome of a request when the body of its answer is closed.
type hostTransport struct {
	hosts *hosts
	next  http.RoundTripper
}

func (t hostTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	a := attemptOf(req.Context())
	a.hop = hop{url: req.URL}
	permit, open := t.hosts.allow(req.URL)
	if open == nil && permit.probe {
		permit, open = t.probe(permit, req)
	}
	if open != nil {
		return nil, &openError{open: open}
	}
	resp, err := t.send(req, permit)
	if err != nil {
		a.hop.keptBroke = a.hop.reused && backlog.ConnectionBroken(err)
		a.hop.open = permit.report(t.verdict(permit, req, a.outcome(err)))
		return nil, err
	}
	a.hop.record(resp)
	resp.Body = &closingBody{ReadCloser: resp.Body, closed: sync.OnceFunc(func() {
		a.hop.open = permit.report(t.verdict(permit, req, a.outcome(a.hop.broken)))
	})}
	return resp, nil
}

// verdict is the outcome of a request for its host. A host whose requests time out may be healthy, and their topics
// stuck: a cheap request checks it before its breaker opens. A check that is not sent excuses nothing: requests
// that hang may have all connections.
func (t hostTransport) verdict(p *permit, req *http.Request, o outcome) outcome {
	if !p.suspects(o) {
		return o
	}
	if checked := t.check(req); checked.kind == answered {
		return checked
	}
	return o
}

// probe checks a host whose breaker is open, before any other request is sent there.
func (t hostTransport) probe(p *permit, req *http.Request) (*permit, *openState) {
	checked := t.check(req)
	if checked.kind == unknown { // not sent: the request itself is the probe
		return p, nil
	}
	if open := p.report(checked); open != nil {
		return nil, open
	}
	return t.hosts.allow(req.URL)
}

// check asks the host of a request, with its credentials, whether it answers at all.
func (t hostTransport) check(req *http.Request) outcome {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(req.Context()), checkTimeout)
	defer cancel()
	a := &attempt{limit: checkTimeout, hop: hop{url: req.URL}}
	cheap := req.Clone(withAttempt(ctx, a))
	cheap.Method, cheap.Body, cheap.GetBody, cheap.ContentLength = http.MethodGet, http.NoBody, nil, 0
	cheap.Header.Del("Content-Type")
	u := *req.URL
	u.Path, u.RawPath, u.RawQuery = checkPath, "", ""
	cheap.URL = &u
	resp, err := t.send(cheap, &permit{probe: true})
	if err != nil {
		return a.outcome(err)
	}
	a.hop.record(resp)
	drain(resp.Body)
	_ = resp.Body.Close() // the answer was read or abandoned
	return a.outcome(nil)
}

// attempt is the state of a request with its redirects; it is in the request's context.
type attempt struct {
	// limit is the limit that a timeout reports; 0 if the deadline is the caller's.
	limit time.Duration
	// slow is true if the answer may take long although the host is healthy.
	slow bool
	// sent is true if something was sent, and took is the time of the hops, without the waits for their turns.
	sent bool
	took time.Duration
	hop  hop
}

// hop is the last request of an attempt: its first, or one that follows a redirect.
type hop struct {
	url  *url.URL
	sent bool
	took time.Duration
	// reused is true if the connection is a kept one.
	reused bool
	// status and retryAfter are from the answer, 0 while there is none.
	status     int
	retryAfter time.Duration
	// hasPulsarReason is true if a failure has Pulsar's JSON, and broken is why the body ended early. The client sets both
	// before it closes the body.
	hasPulsarReason bool
	broken          error
	// keptBroke is true if a kept connection broke before the answer.
	keptBroke bool
	// open is why the breaker is open after the hop, nil while it is closed.
	open *openState
}

type attemptKey struct{}

func withAttempt(ctx context.Context, a *attempt) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}

// attemptOf returns the attempt, which every request has.
func attemptOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

func (h *hop) record(resp *http.Response) {
	h.status = resp.StatusCode
	h.retryAfter = seconds(resp.Header.Get("Retry-After"), maxProbe)
}

func (h *hop) retryable() bool {
	return h.keptBroke || h.status == http.StatusBadGateway || h.status == http.StatusServiceUnavailable
}

// openState is why the breaker of a host is open. It is immutable.
type openState struct {
	since  time.Time
	reason error
	cause  string
}

// The effect of a request on the breaker of its host. Most requests to a host are about one topic, or use one user's
// credentials, and a failure of these must not block others:
//
//	no connection, no name, connection lost          fails
//	no answer in time                                fails, unless the limit was the caller's, or short, or the answer a
//	                                                 slow one: a worker's, one with consumers, or one with an age, which
//	                                                 hangs with the storage; the third in a row
//	                                                 answers if the host answers a check: the topic hangs
//	429                                              fails: the limit is the broker's
//	502, 503, 504 without Pulsar's JSON              fails: a load balancer without brokers, a broker without handlers
//	502, 503, 504 with Retry-After                   fails
//	504 without, for a slow answer                   unknown: the load balancer has a shorter timeout
//	502, 503, 504 in Pulsar's JSON                   answers: the topic's bundle is moving
//	500, 412, 4xx, invalid 200, redirects            answers
//	TLS failure                                      unknown: the trusted certificates are the user's
//	a kept connection that broke                     unknown: it was idle too long
//	canceled, not sent                               unknown

// outcome is the effect of a request on its host.
type outcome struct {
	kind outcomeKind
	// reason and cause of a failure, and how long the host defers requests.
	reason     error
	cause      string
	retryAfter time.Duration
	timedOut   bool
}

type outcomeKind int

const (
	// unknown: not sent, canceled, or failed for a reason that is not the host's.
	unknown outcomeKind = iota
	answered
	failed
)

func (a *attempt) outcome(err error) outcome {
	h := &a.hop
	switch {
	case !h.sent:
		return outcome{}
	case h.status == http.StatusTooManyRequests:
		return unavailable("it answers 429 (httpRequestsMaxPerSecond)", h.retryAfter)
	case h.status == http.StatusBadGateway, h.status == http.StatusServiceUnavailable,
		h.status == http.StatusGatewayTimeout:
		switch {
		case h.retryAfter > 0:
		case h.hasPulsarReason:
			return outcome{kind: answered}
		case a.slow && h.status == http.StatusGatewayTimeout:
			return outcome{}
		}
		return unavailable(fmt.Sprintf("it answers %d", h.status), h.retryAfter)
	case err != nil:
		return a.withoutAnswer(err)
	default:
		return outcome{kind: answered}
	}
}

func unavailable(cause string, retryAfter time.Duration) outcome {
	return outcome{kind: failed, reason: backlog.ErrUnavailable, cause: cause, retryAfter: retryAfter}
}

func (a *attempt) withoutAnswer(err error) outcome {
	switch {
	case errors.Is(err, context.Canceled), a.hop.keptBroke, tlsCause(err) != "", errors.Is(err, http.ErrSchemeMismatch):
		return outcome{}
	case backlog.TimedOut(err):
		if a.limit == 0 || a.slow || a.hop.took < a.limit/2 {
			return outcome{}
		}
	}
	return outcome{
		kind: failed, reason: backlog.ErrUnreachable, cause: transportCause(err, a.limit), timedOut: backlog.TimedOut(err),
	}
}
