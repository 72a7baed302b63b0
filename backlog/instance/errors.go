// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package instance

import (
	"context"
	"errors"
	"fmt"
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
	fault := backlog.Errorf(reason, "%s at %s: %s", backlog.Quote(address.ID), backlog.Quote(address.HostPort),
		backlog.Quote(words))
	fault.Cause = cause
	return fault
}

func statusFault(address backlog.InstanceAddress, status int) error {
	answered := fmt.Sprintf("it answered %d", status)
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return newFault(backlog.ErrForbidden, address, nil,
			answered+", which instances never do: does a service mesh in between refuse it?")
	case status == http.StatusTooManyRequests || status >= http.StatusInternalServerError:
		return newFault(backlog.ErrUnavailable, address, nil, answered+": retried soon")
	default:
		return newFault(backlog.ErrProtocol, address, nil, answered+": is that the metrics port of an instance?")
	}
}

// noAnswer is the fault for a request without a complete answer.
func (s *Scraper) noAnswer(ctx context.Context, address backlog.InstanceAddress, err error) error {
	limit := s.timeout
	if ctx.Err() != nil {
		limit = 0 // the time of the caller was over before
	}
	words := backlog.ConnectionCause(err, limit)
	switch {
	case errors.Is(err, context.Canceled):
		words = "canceled"
	case errors.Is(err, syscall.ECONNREFUSED):
		words += ": is it still starting?"
	case limit > 0 && backlog.TimedOut(err):
		words += ": does a network policy close its metrics port?"
	}
	return newFault(backlog.ErrUnreachable, address, err, words)
}

// resultLabel is the label of the result in the metrics.
func resultLabel(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, context.Canceled):
		return "canceled"
	default:
		return backlog.ReasonLabel(err)
	}
}
