// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

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

// reasonError is an error whose text is for users, with the reason for programs.
type reasonError struct {
	reason, cause error
	text          string
}

func (e *reasonError) Error() string { return e.text }

// Unwrap gives the reason, and the cause where a program may want it, such as context.Canceled.
func (e *reasonError) Unwrap() []error {
	if e.cause == nil {
		return []error{e.reason}
	}
	return []error{e.reason, e.cause}
}

func newFault(reason error, format string, args ...any) *reasonError {
	return &reasonError{reason: reason, text: reason.Error() + ": " + fmt.Sprintf(format, args...)}
}

// queryFault is the fault for a query that failed; status is 0 when there was no answer.
func queryFault(host string, status int, err error) error {
	var token tokenError
	var long tooLongError
	var words *apiv1.Error
	switch {
	case errors.As(err, &token):
		return newFault(backlog.ErrUnauthenticated, "nothing was sent to Prometheus at %s: %s", host, token)
	case errors.As(err, &long):
		return newFault(backlog.ErrProtocol, "Prometheus at %s sent more than %d bytes: raise the limit on answers, or select fewer series", host, long.limit)
	case status == 0 || !errors.As(err, &words):
		f := newFault(backlog.ErrUnreachable, "Prometheus at %s: %s", host, transportCause(err))
		f.cause = err
		return f
	case status == http.StatusUnauthorized:
		return newFault(backlog.ErrUnauthenticated, "Prometheus at %s does not accept the credentials: is the token missing or expired?", host)
	case status == http.StatusForbidden:
		return newFault(backlog.ErrForbidden, "Prometheus at %s refuses queries of this token", host)
	case status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= http.StatusInternalServerError ||
		words.Type == apiv1.ErrTimeout || words.Type == apiv1.ErrCanceled:
		return newFault(backlog.ErrUnavailable, "Prometheus at %s answered %d: %s", host, status, shorten(words.Msg))
	case status/100 == 3:
		return newFault(backlog.ErrProtocol, "Prometheus at %s redirects: give the URL that it redirects to", host)
	default:
		return newFault(backlog.ErrProtocol, "Prometheus at %s answered %d: %s", host, status, shorten(words.Msg))
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
		return shorten(err.Error())
	}
}

// maxWords bounds what is quoted from elsewhere.
const maxWords = 200

// shorten keeps the first line of foreign words, without control characters.
func shorten(words string) string {
	words, _, _ = strings.Cut(strings.TrimSpace(words), "\n")
	words = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(words, "?"))
	if len(words) <= maxWords {
		return words
	}
	return strings.ToValidUTF8(words[:maxWords], "") + "..."
}
