// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/url"

	apiv1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// The table from what happened to the reason:
//
//	the token cannot be read                            ErrUnauthenticated  nothing was sent
//	401                                                 ErrUnauthenticated
//	403                                                 ErrForbidden
//	408, 429, 5xx, an answer that Prometheus gave up    ErrUnavailable
//	no connection, no answer in time                    ErrUnreachable
//	anything else, 3xx among it                         ErrProtocol
//	no series of topics                                 ErrNoData           Source.FetchBulk
//	series of more than one Pulsar cluster              ErrUnsupported      Source.FetchBulk
//	more than one cluster without a selector            ErrUnsupported      Source.FetchBulk, nothing was sent

// queryFault is the fault for a query that failed; status is 0 when there was no answer.
func queryFault(host string, status int, err error) error {
	var token tokenError
	var long tooLongError
	var words *apiv1.Error
	switch {
	case errors.As(err, &token):
		return backlog.Because(backlog.ErrUnauthenticated, "nothing was sent to Prometheus at %s: %s", host, token)
	case errors.As(err, &long):
		return backlog.Because(backlog.ErrProtocol,
			"Prometheus at %s sent more than %d bytes: raise the limit on answers, or select fewer series", host, long.limit)
	case status == 0 || !errors.As(err, &words):
		f := backlog.Because(backlog.ErrUnreachable, "Prometheus at %s: %s", host, transportCause(err))
		f.Cause = err
		return f
	case status == http.StatusUnauthorized:
		return backlog.Because(backlog.ErrUnauthenticated,
			"Prometheus at %s does not accept the credentials: is the token missing or expired?", host)
	case status == http.StatusForbidden:
		return backlog.Because(backlog.ErrForbidden, "Prometheus at %s refuses queries of this token", host)
	case status == http.StatusRequestTimeout || status == http.StatusTooManyRequests ||
		status >= http.StatusInternalServerError ||
		words.Type == apiv1.ErrTimeout || words.Type == apiv1.ErrCanceled:
		return backlog.Because(backlog.ErrUnavailable, "Prometheus at %s answered %d: %s", host, status,
			backlog.Quote(words.Msg))
	case status/100 == 3:
		return backlog.Because(backlog.ErrProtocol, "Prometheus at %s redirects: give the URL that it redirects to", host)
	default:
		return backlog.Because(backlog.ErrProtocol, "Prometheus at %s answered %d: %s", host, status,
			backlog.Quote(words.Msg))
	}
}

// transportCause leaves out the URL, which has the whole query in it.
func transportCause(err error) string {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	var timeout net.Error
	switch {
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	default:
		return backlog.Quote(err.Error())
	}
}
