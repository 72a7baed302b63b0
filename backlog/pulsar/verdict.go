// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// What a request says about its host. A host speaks for one topic, or for one user's credentials, most of the time, and
// that must not keep others from it:
//
//	no connection, no name, connection lost          fails
//	no answer in time                                fails, unless the time was the caller's, or short, or the answer a slow one:
//	                                                 a worker's, a bulk one, or one with an age, which hangs with the storage
//	429                                              fails: the limit is the broker's
//	502, 503, 504 in other words than Pulsar's       fails: a load balancer without brokers, a broker without handlers
//	502, 503, 504 with Retry-After                   fails
//	504 without, for a slow answer                   says nothing: the load balancer was not as patient
//	502, 503, 504 in Pulsar's JSON                   answers: the topic's bundle is moving
//	500, 412, 4xx, 200 that is no good, redirects    answers
//	TLS failure                                      says nothing: what is trusted is the user's
//	a kept connection that broke                     says nothing: it was idle too long
//	canceled                                         says nothing

// step sends one request through the gate of its host.
func (e *exchange) step(ctx context.Context, u *url.URL) (next *url.URL, err error) {
	pass, closed, err := e.gate.enter(ctx, u)
	switch {
	case closed != nil:
		return nil, closedFault(e.address, u, closed, errHeldBack)
	case err != nil:
		return nil, noTurnFault(e.address, u, e.gate, err)
	}
	e.status, e.retryAfter, e.spoke = 0, 0, false
	next, err = e.send(ctx, u)
	took := time.Since(pass.admitted)
	e.sent, e.took = true, e.took+took
	if closed := pass.leave(e.verdict(err, took)); closed != nil && err != nil {
		return nil, closedFault(e.address, u, closed, err)
	}
	return next, err
}

// heard remembers of an answer what verdict needs.
func (e *exchange) heard(resp *http.Response) {
	e.status = resp.StatusCode
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		e.retryAfter = min(time.Duration(min(seconds, 3600))*time.Second, maxProbe)
	}
}

// verdict judges the host by how a request ended that took so long.
func (e *exchange) verdict(err error, took time.Duration) verdict {
	switch e.status {
	case http.StatusTooManyRequests:
		return verdict{
			kind: hostFailed, reason: backlog.ErrUnavailable, cause: "it answers 429 (httpRequestsMaxPerSecond)",
			retryAfter: e.retryAfter,
		}
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		switch {
		case e.retryAfter > 0:
		case e.spoke:
			return verdict{kind: hostAnswered}
		case e.slow && e.status == http.StatusGatewayTimeout:
			return verdict{}
		}
		return verdict{
			kind: hostFailed, reason: backlog.ErrUnavailable, cause: fmt.Sprintf("it answers %d", e.status),
			retryAfter: e.retryAfter,
		}
	case 0:
		return e.silence(err, took)
	default:
		if errors.Is(err, backlog.ErrUnreachable) { // the body broke off
			return e.silence(err, took)
		}
		return verdict{kind: hostAnswered}
	}
}

// silence judges a request without a complete answer.
func (e *exchange) silence(err error, took time.Duration) verdict {
	var timeout net.Error
	var fault *backlog.ReasonError
	switch {
	case !errors.As(err, &fault) || !errors.Is(err, backlog.ErrUnreachable) || errors.Is(err, context.Canceled) || e.again,
		tlsCause(err) != "" || errors.Is(err, http.ErrSchemeMismatch):
		return verdict{}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		if e.limit == 0 || e.slow || took < e.limit/2 {
			return verdict{}
		}
	}
	return verdict{kind: hostFailed, reason: backlog.ErrUnreachable, cause: transportCause(fault.Cause, e.limit)}
}

// closedFault is the fault of a request to a host that is closed, whether it was sent or not: the text is the same for
// all of them and does not change from one second to the next, since it ends up in conditions.
func closedFault(a address, u *url.URL, c *closure, cause error) error {
	f := backlog.Because(c.reason, "%s for %s: %s, since %s: one request at a time tries it again, at least every %s",
		u.Host, a.subject, c.cause, c.since.UTC().Format(time.RFC3339), maxProbe)
	f.Cause = cause
	return f
}

// noTurnFault is the fault of a request for which there was no time left to wait for its turn.
func noTurnFault(a address, u *url.URL, g *gate, err error) error {
	if errors.Is(err, context.Canceled) {
		return transportFault(a, u, err, 0)
	}
	f := backlog.Because(backlog.ErrUnavailable,
		"%s for %s: not asked, its %d connections or %d requests per second were used up until the time was over: "+
			"raise these limits if the broker can bear it, or poll less often", u.Host, a.subject, g.conns, g.perSecond)
	f.Cause = errHeldBack
	return f
}
