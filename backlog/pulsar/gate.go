// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
)

const (
	// maxHosts bounds the hosts that are remembered; beyond it the one that was not called for the longest time is
	// dropped.
	maxHosts = 1024
	// failuresToClose in a row close a host: one may be a restart, two a retry.
	failuresToClose = 3
	// firstProbe is the time from closing a host to the first request that tries it; it doubles up to maxProbe.
	firstProbe = time.Second
	// maxProbe bounds how late a host that is well again is found to be, and what it may ask for by Retry-After.
	maxProbe = 30 * time.Second
	// hostForgotten is how long after its last probe a host that fails counts as one: it may be gone for good.
	hostForgotten = 10 * maxProbe
)

// errHeldBack marks a request that was not sent, to spare its host.
var errHeldBack = errors.New("held back")

// gate stands between the client and every host: it bounds what is under way there, how often it is asked, and, while
// the host fails, lets one request at a time through to see whether it is well again. All others fail at once then.
type gate struct {
	conns, perSecond int
	waits            prometheus.Observer

	mu sync.Mutex
	// hosts with all that is in them but slots and pace, inFlight and waiting are guarded by mu. A host has a gate for
	// each scheme and port: plain HTTP to a port of TLS fails, which says nothing about those who speak TLS there.
	hosts             map[string]*hostGate
	inFlight, waiting int
}

// hostGate is the gate of one host.
type hostGate struct {
	// slots has one token for each request under way.
	slots chan struct{}
	pace  *rate.Limiter

	// users wait or are under way.
	users int
	used  time.Time
	// failures in a row, and when the first of them was.
	failures int
	since    time.Time
	// closed is why only probes are let through, nil while the host is well.
	closed *closure
	// wait is the time from one probe to the next, which is at next at the earliest; probing says that one is under way.
	wait    time.Duration
	next    time.Time
	probing bool
}

// closure is why a host is not asked. It does not change while it is handed around.
type closure struct {
	since  time.Time
	reason error
	cause  string
}

func newGate(conns, perSecond int, waits prometheus.Observer) *gate {
	return &gate{conns: conns, perSecond: perSecond, waits: waits, hosts: map[string]*hostGate{}}
}

// pass lets one request through. Whoever has one has to leave.
type pass struct {
	gate     *gate
	host     *hostGate
	probe    bool
	admitted time.Time
}

// enter waits until the host may be asked. The closure is not nil when it may not, because it fails; an error is one of
// ctx or errHeldBack, when there is no time left to wait for a turn.
func (g *gate) enter(ctx context.Context, u *url.URL) (*pass, *closure, error) {
	start := time.Now()
	p, closed, err := g.queue(u, start)
	if p == nil {
		return nil, closed, err
	}
	if err := p.turn(ctx); err != nil {
		p.quit()
		return nil, nil, err
	}
	g.waits.Observe(time.Since(start).Seconds())
	if closed := p.begin(); closed != nil {
		<-p.host.slots
		p.quit()
		return nil, closed, nil
	}
	return p, nil, nil
}

// queue joins those that wait for the host, unless it is closed.
func (g *gate) queue(u *url.URL, now time.Time) (*pass, *closure, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	host, ok := canonicalHost(u.Hostname())
	if !ok { // AllowedHosts never lets it come here
		return nil, nil, errHeldBack
	}
	h := g.host(u.Scheme+"://"+host+":"+portOf(u), now)
	if h == nil {
		return nil, nil, errHeldBack
	}
	p := &pass{gate: g, host: h}
	if h.closed != nil {
		if h.probing || now.Before(h.next) {
			return nil, h.closed, nil
		}
		h.probing, p.probe = true, true
	}
	h.users++
	h.used = now
	g.waiting++
	return p, nil, nil
}

// host finds the gate of a host or makes one; nil when there are too many that are all in use. mu is held.
func (g *gate) host(name string, now time.Time) *hostGate {
	if h := g.hosts[name]; h != nil {
		return h
	}
	if len(g.hosts) >= maxHosts {
		oldest := ""
		for other, h := range g.hosts {
			if h.users == 0 && (oldest == "" || h.used.Before(g.hosts[oldest].used)) {
				oldest = other
			}
		}
		if oldest == "" {
			return nil
		}
		delete(g.hosts, oldest)
	}
	h := &hostGate{
		slots: make(chan struct{}, g.conns), pace: rate.NewLimiter(rate.Limit(g.perSecond), g.perSecond),
		used: now,
	}
	g.hosts[name] = h
	return h
}

// turn waits for a slot and then for the pace.
func (p *pass) turn(ctx context.Context) error {
	select {
	case p.host.slots <- struct{}{}:
	default:
		select {
		case p.host.slots <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := p.host.pace.Wait(ctx); err != nil {
		<-p.host.slots
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return errHeldBack // its turn would come after the deadline
	}
	return nil
}

// begin is the last look before the request: the host may have been closed while it waited.
func (p *pass) begin() *closure {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	if p.host.closed != nil && !p.probe {
		return p.host.closed
	}
	p.gate.waiting--
	p.gate.inFlight++
	p.admitted = time.Now()
	return nil
}

// quit gives up before the request was sent.
func (p *pass) quit() {
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	p.gate.waiting--
	p.host.leave(p)
}

// leave says how the request went, and returns why the host is closed now, if it failed and is.
func (p *pass) leave(v verdict) *closure {
	<-p.host.slots
	p.gate.mu.Lock()
	defer p.gate.mu.Unlock()
	p.gate.inFlight--
	p.host.leave(p)
	return p.host.judge(v, p.probe, time.Now())
}

func (h *hostGate) leave(p *pass) {
	h.users--
	if p.probe {
		h.probing = false
	}
}

// verdict is what a request says about its host.
type verdict struct {
	kind verdictKind
	// reason and cause of a failure, and how long the host asks to be left alone.
	reason     error
	cause      string
	retryAfter time.Duration
}

type verdictKind int

const (
	// hostUnjudged: canceled, or failed for a reason that is not the host's.
	hostUnjudged verdictKind = iota
	hostAnswered
	hostFailed
)

// judge opens or closes the host. mu is held.
func (h *hostGate) judge(v verdict, probe bool, now time.Time) *closure {
	switch {
	case v.kind == hostUnjudged:
		return nil
	case v.kind == hostAnswered:
		h.failures, h.closed = 0, nil
		return nil
	case h.closed != nil && !probe: // sent before it was closed
		return h.closed
	}
	if h.failures++; h.failures == 1 {
		h.since = now
	}
	switch {
	case h.closed != nil:
		h.wait = min(2*h.wait, maxProbe)
	case h.failures >= failuresToClose || v.retryAfter > 0:
		h.wait = firstProbe
	default:
		return nil
	}
	h.closed = &closure{since: h.since, reason: v.reason, cause: v.cause}
	h.next = now.Add(min(max(h.wait, v.retryAfter), maxProbe))
	return h.closed
}

// flying, queued and backingOff are what the gauges show.
func (g *gate) flying() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.inFlight
}

func (g *gate) queued() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting
}

func (g *gate) backingOff() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	closed, now := 0, time.Now()
	for _, h := range g.hosts {
		if h.closed != nil && now.Sub(h.used) < hostForgotten {
			closed++
		}
	}
	return closed
}
