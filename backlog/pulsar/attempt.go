// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

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
	// withdrawn is why the breaker no longer allows the request, nil while it does.
	withdrawn func() *openState
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

// attemptOf returns the attempt; nil for a request without one.
func attemptOf(ctx context.Context) *attempt {
	a, _ := ctx.Value(attemptKey{}).(*attempt)
	return a
}

// record records the parts of an answer that outcome needs.
func (h *hop) record(resp *http.Response) {
	h.status = resp.StatusCode
	if seconds, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && seconds > 0 {
		h.retryAfter = min(time.Duration(min(seconds, 3600))*time.Second, maxProbe)
	}
}

// retryable reports whether a second attempt may help.
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
//	                                                 answers if the host answers a check, see breaker.go: the topic hangs
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

// outcome is the outcome of the last hop; err is the error of its connection.
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

// withoutAnswer is the outcome of a request without a complete answer.
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
