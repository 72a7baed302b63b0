// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// What a request says about its host. A host speaks for one topic, or for one user's credentials, most of the time, and
// that must not keep others from it:
//
//	no connection, no name, connection lost          fails
//	no answer in time                                fails, unless the time was the caller's, or short, or the answer a
//	                                                 slow one: a worker's, a bulk one, or one with an age, which hangs
//	                                                 with the storage
//	429                                              fails: the limit is the broker's
//	502, 503, 504 in other words than Pulsar's       fails: a load balancer without brokers, a broker without handlers
//	502, 503, 504 with Retry-After                   fails
//	504 without, for a slow answer                   unknown: the load balancer was not as patient
//	502, 503, 504 in Pulsar's JSON                   answers: the topic's bundle is moving
//	500, 412, 4xx, 200 that is no good, redirects    answers
//	TLS failure                                      unknown: what is trusted is the user's
//	a kept connection that broke                     unknown: it was idle too long
//	canceled, not sent                               unknown

// outcome is what a request says about its host.
type outcome struct {
	kind outcomeKind
	// reason and cause of a failure, and how long the host asks to be left alone.
	reason     error
	cause      string
	retryAfter time.Duration
}

type outcomeKind int

const (
	// unknown: not sent, canceled, or failed for a reason that is not the host's.
	unknown outcomeKind = iota
	answered
	failed
)

// outcome is that of the last hop; err is the error of its connection.
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
		case h.inPulsarsWords:
			return outcome{kind: answered}
		case a.slow && h.status == http.StatusGatewayTimeout:
			return outcome{}
		}
		return unavailable(fmt.Sprintf("it answers %d", h.status), h.retryAfter)
	case err != nil:
		return a.silence(err)
	default:
		return outcome{kind: answered}
	}
}

func unavailable(cause string, retryAfter time.Duration) outcome {
	return outcome{kind: failed, reason: backlog.ErrUnavailable, cause: cause, retryAfter: retryAfter}
}

// silence is the outcome of a request without a complete answer.
func (a *attempt) silence(err error) outcome {
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled), a.hop.keptBroke, tlsCause(err) != "", errors.Is(err, http.ErrSchemeMismatch):
		return outcome{}
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		if a.limit == 0 || a.slow || a.hop.took < a.limit/2 {
			return outcome{}
		}
	}
	return outcome{kind: failed, reason: backlog.ErrUnreachable, cause: transportCause(err, a.limit)}
}
