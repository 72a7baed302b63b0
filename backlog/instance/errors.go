// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// The table from what happened to the reason:
//
//	no connection, no whole answer in time   ErrUnreachable   noAnswer
//	401, 403                                 ErrForbidden     statusFault: instances authenticate no client
//	429, 5xx                                 ErrUnavailable   statusFault
//	any other status, redirects among them   ErrProtocol      statusFault
//	200, too long, cut off, no instance's    ErrProtocol      Scraper.scrape
//	an address that cannot be                ErrProtocol      Scraper.scrape; nothing was sent

func newFault(reason error, address backlog.InstanceAddress, cause error, words string) error {
	fault := backlog.Because(reason, "%s at %s: %s", backlog.Quote(address.ID), backlog.Quote(address.HostPort),
		backlog.Quote(words))
	fault.Cause = cause
	return fault
}

func statusFault(address backlog.InstanceAddress, status int) error {
	said := fmt.Sprintf("it answered %d", status)
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return newFault(backlog.ErrForbidden, address, nil,
			said+", which instances never do: does a service mesh in between refuse it?")
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		return newFault(backlog.ErrUnavailable, address, nil, said+": asked again soon")
	default:
		return newFault(backlog.ErrProtocol, address, nil, said+": is that the metrics port of an instance?")
	}
}

// noAnswer is the fault for a request without a complete answer.
func (s *Scraper) noAnswer(ctx context.Context, address backlog.InstanceAddress, err error) error {
	var dns *net.DNSError
	var words string
	switch {
	case errors.Is(err, context.Canceled):
		words = "canceled"
	case errors.As(err, &dns):
		words = "its name could not be looked up"
	case errors.Is(err, syscall.ECONNREFUSED):
		words = "connection refused: is it still starting?"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		words = "no route to host"
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		words = "no whole answer within " + s.timeout.String() + ": does a network policy close its metrics port?"
		if ctx.Err() != nil {
			words = "no whole answer in time"
		}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET),
		errors.Is(err, syscall.EPIPE):
		words = "the connection was closed before the answer was complete"
	default:
		words = innermost(err).Error()
	}
	return newFault(backlog.ErrUnreachable, address, err, words)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// innermost leaves out what Go's texts repeat at every layer: the method, the URL and the address.
func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// resultLabel is the result in the metrics.
func resultLabel(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.Canceled):
		return "canceled"
	case errors.Is(err, backlog.ErrUnreachable):
		return "unreachable"
	case errors.Is(err, backlog.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, backlog.ErrForbidden):
		return "forbidden"
	default:
		return "protocol"
	}
}
