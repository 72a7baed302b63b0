// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"net/url"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

// fault is that of a request without an answer, by the error of the chain.
func (e *exchange) fault(a *attempt, err error) error {
	var reason *backlog.ReasonError
	var open *openError
	var wait *waitError
	u := a.hop.url
	switch {
	case errors.As(err, &reason): // of checkRedirect or the credentials
		return reason
	case errors.As(err, &open):
		return openFault(e.address, u, open.open, errHeldBack)
	case errors.As(err, &wait):
		return noTurnFault(e.address, u, e.chain.limiter, wait.err)
	case redirectStatus(a.hop.status): // to where cannot be read
		return noHTTPRedirect(e.address, u)
	case refusesCertificate(err):
		return certificateRefused(u, err, e.credentials)
	}
	f := transportFault(e.address, u, err, e.limit)
	if a.hop.open != nil {
		return openFault(e.address, u, a.hop.open, f)
	}
	return f
}

// openFault is the fault of a request to a host whose breaker is open, whether it was sent or not: the text is the same
// for all of them and does not change from one second to the next, since it ends up in conditions.
func openFault(a address, u *url.URL, open *openState, cause error) error {
	f := backlog.Because(open.reason, "%s for %s: %s, since %s: one request at a time tries it again, at least every %s",
		u.Host, a.subject, open.cause, open.since.UTC().Format(time.RFC3339), maxProbe)
	f.Cause = cause
	return f
}

// noTurnFault is the fault of a request for which there was no time left to wait for its turn.
func noTurnFault(a address, u *url.URL, l *limiter, err error) error {
	if errors.Is(err, context.Canceled) {
		return transportFault(a, u, err, 0)
	}
	f := backlog.Because(backlog.ErrUnavailable,
		"%s for %s: not asked, its %d connections or %d requests per second were used up until the time was over: "+
			"raise these limits if the broker can bear it, or poll less often", u.Host, a.subject, l.conns, l.perSecond)
	f.Cause = errHeldBack
	return f
}
