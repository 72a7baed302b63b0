// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync"
	"time"
)

// errHeldBack marks a request that was not sent, to protect its host.
var errHeldBack = errors.New("held back")

// waitError is why the limiter did not allow a request: errHeldBack or the error of its context.
type waitError struct{ err error }

func (e *waitError) Error() string { return "waiting for a turn: " + e.err.Error() }

func (e *waitError) Unwrap() error { return e.err }

// usedUp is why a request did not get its turn.
func (h *hosts) usedUp() string {
	return fmt.Sprintf("its %d connections or %d requests per second were used up until the time was over: raise these "+
		"limits if the broker can bear it, or poll less often", h.conns, h.perSecond)
}

// takeTurn waits until the limit allows a request. The error is a waitError: there is no time left to wait.
func (h *hosts) takeTurn(ctx context.Context, u *url.URL) (release func(), err error) {
	start := time.Now()
	host := h.enqueue(u, start)
	if host == nil {
		return nil, &waitError{err: errHeldBack}
	}
	h.waiting.Add(1)
	err = host.takeSlot(ctx)
	h.waiting.Add(-1)
	if err != nil {
		h.done(host)
		return nil, &waitError{err: err}
	}
	if h.waits != nil {
		h.waits.Observe(time.Since(start).Seconds())
	}
	h.inFlight.Add(1)
	return func() {
		<-host.slots
		h.inFlight.Add(-1)
		h.done(host)
	}, nil
}

// enqueue adds a request to its host; nil if too many hosts are in use.
func (h *hosts) enqueue(u *url.URL, now time.Time) *hostState {
	h.mu.Lock()
	defer h.mu.Unlock()
	host := h.of(u, now)
	if host == nil {
		return nil
	}
	host.users++
	host.used = now
	return host
}

// done removes a request from its host.
func (h *hosts) done(host *hostState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	host.users--
}

func (h *hostState) takeSlot(ctx context.Context) error {
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := h.pace.Wait(ctx); err != nil {
		<-h.slots
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errHeldBack // its turn would come after the deadline
	}
	return nil
}

// send holds the host's slot until the body of the answer is closed. It is the last step before the connections.
func (t hostTransport) send(req *http.Request, p *permit) (*http.Response, error) {
	release, err := t.hosts.takeTurn(req.Context(), req.URL)
	if err != nil {
		return nil, err
	}
	a, start := attemptOf(req.Context()), time.Now()
	closed := func() {
		release()
		if a.hop.sent {
			a.hop.took = time.Since(start)
			a.sent, a.took = true, a.took+a.hop.took
		}
	}
	if open := p.withdrawn(); open != nil { // the breaker opened while the request waited
		closed()
		return nil, &openError{open: open}
	}
	a.hop.sent = true
	traced := httptrace.WithClientTrace(req.Context(), &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { a.hop.reused = info.Reused },
	})
	resp, err := t.next.RoundTrip(req.WithContext(traced))
	if err != nil {
		closed()
		return nil, err
	}
	resp.Body = &closingBody{ReadCloser: resp.Body, closed: sync.OnceFunc(closed)}
	return resp, nil
}
