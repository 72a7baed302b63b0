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
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
)

// errHeldBack marks a request that was not sent, to protect its host.
var errHeldBack = errors.New("held back")

// waitError is why the limiter did not allow a request: errHeldBack or the error of its context.
type waitError struct{ err error }

func (e *waitError) Error() string { return "waiting for a turn: " + e.err.Error() }

func (e *waitError) Unwrap() error { return e.err }

// limiter bounds the concurrent requests to each host, and their rate. Owners take turns before, see doc.go.
type limiter struct {
	conns, perSecond int
	// waits observes how long requests waited; nil for none.
	waits prometheus.Observer

	mu sync.Mutex
	// hosts is guarded by mu, except the content of a hostLimit.
	hosts             perHost[hostLimit]
	inFlight, waiting atomic.Int64
}

type hostLimit struct {
	// slots has one token for each active request.
	slots chan struct{}
	pace  *rate.Limiter
}

func newLimiter(conns, perSecond int, waits prometheus.Observer) *limiter {
	return &limiter{conns: conns, perSecond: perSecond, waits: waits, hosts: newPerHost(func() hostLimit {
		return hostLimit{slots: make(chan struct{}, conns), pace: rate.NewLimiter(rate.Limit(perSecond), perSecond)}
	})}
}

// usedUp is why a request did not get its turn.
func (l *limiter) usedUp() string {
	return fmt.Sprintf("its %d connections or %d requests per second were used up until the time was over: raise these "+
		"limits if the broker can bear it, or poll less often", l.conns, l.perSecond)
}

// acquire waits until a request may be sent to the host. The error is a waitError: there is no time left to wait.
func (l *limiter) acquire(ctx context.Context, u *url.URL) (release func(), err error) {
	start := time.Now()
	host := l.enqueue(u, start)
	if host == nil {
		return nil, &waitError{err: errHeldBack}
	}
	l.waiting.Add(1)
	err = host.state.wait(ctx)
	l.waiting.Add(-1)
	if err != nil {
		l.done(host)
		return nil, &waitError{err: err}
	}
	if l.waits != nil {
		l.waits.Observe(time.Since(start).Seconds())
	}
	l.inFlight.Add(1)
	return func() {
		<-host.state.slots
		l.inFlight.Add(-1)
		l.done(host)
	}, nil
}

// enqueue adds a request to its host; nil if too many hosts are in use.
func (l *limiter) enqueue(u *url.URL, now time.Time) *hostState[hostLimit] {
	l.mu.Lock()
	defer l.mu.Unlock()
	host := l.hosts.of(u, now)
	if host == nil {
		return nil
	}
	host.users++
	host.used = now
	return host
}

// done removes a request from its host.
func (l *limiter) done(host *hostState[hostLimit]) {
	l.mu.Lock()
	defer l.mu.Unlock()
	host.users--
}

func (h hostLimit) wait(ctx context.Context) error {
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

// limiterTransport holds the host's slot until the body of the answer is closed. It is the last step before the
// connections.
type limiterTransport struct {
	limiter *limiter
	next    http.RoundTripper
}

func (t limiterTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	release, err := t.limiter.acquire(req.Context(), req.URL)
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
	if open := a.hop.withdrawn(); open != nil { // the breaker opened while the request waited
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
