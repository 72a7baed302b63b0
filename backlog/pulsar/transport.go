// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/gzhttp"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
)

// idleConnTimeout is below the 30 s after which a broker closes an idle connection (httpServerIdleTimeout), so that a
// request never meets one that is being closed.
const idleConnTimeout = 20 * time.Second

// newTransport has no proxy.
func newTransport(tlsConfig *tls.Config, config Config) *http.Transport {
	return &http.Transport{
		DialContext:            config.dialer(),
		TLSClientConfig:        tlsConfig,
		TLSHandshakeTimeout:    config.RequestTimeout,
		MaxConnsPerHost:        config.MaxConnsPerHost,
		MaxIdleConnsPerHost:    config.MaxConnsPerHost,
		IdleConnTimeout:        idleConnTimeout,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// hosts has a breaker and a limit for each scheme, host and port: plain HTTP to a TLS port fails, which is independent
// of TLS there. The limit bounds the concurrent requests, and their rate. Owners take turns before, see doc.go.
type hosts struct {
	conns, perSecond int
	// waits observes how long requests waited; nil for none.
	waits prometheus.Observer

	// mu guards states and their content, except slots and pace.
	mu                sync.Mutex
	states            map[string]*hostState
	inFlight, waiting atomic.Int64
}

type hostState struct {
	health
	// slots has one token for each active request.
	slots chan struct{}
	pace  *rate.Limiter
	// users is the number of permits, and of waiting and active requests.
	users int
	used  time.Time
}

func newHosts(conns, perSecond int, waits prometheus.Observer) *hosts {
	return &hosts{conns: conns, perSecond: perSecond, waits: waits, states: map[string]*hostState{}}
}

// over returns the RoundTripper that comes after the authentication. It decodes gzip as net/http would, with half the
// garbage, so limits apply to the decoded text.
func (h *hosts) over(connections http.RoundTripper) http.RoundTripper {
	return hostTransport{hosts: h, next: gzhttp.Transport(connections, gzhttp.TransportEnableZstd(false))}
}

// acquire waits until a request may be sent, and returns a function to call with its outcome; nil if the request must
// not be sent.
func (h *hosts) acquire(ctx context.Context, u *url.URL) (release func(outcome)) {
	permit, open := h.allow(u)
	if open != nil {
		return nil
	}
	done, err := h.takeTurn(ctx, u)
	if err != nil {
		permit.report(outcome{})
		return nil
	}
	if permit.withdrawn() != nil {
		done()
		permit.report(outcome{})
		return nil
	}
	return func(o outcome) {
		done()
		permit.report(o)
	}
}

// maxHosts bounds the hosts with a state; beyond it the least recently used idle host is dropped.
const maxHosts = 1024

// of returns the state of a host, or creates it; nil if too many hosts are all in use, or the URL has no host.
func (h *hosts) of(u *url.URL, now time.Time) *hostState {
	name, ok := canonicalHost(u.Hostname())
	if !ok { // AllowedHosts refuses such a host
		return nil
	}
	key := u.Scheme + "://" + name + ":" + portOf(u)
	if known := h.states[key]; known != nil {
		return known
	}
	if len(h.states) >= maxHosts && !h.dropOldest() {
		return nil
	}
	fresh := &hostState{
		slots: make(chan struct{}, h.conns), pace: rate.NewLimiter(rate.Limit(h.perSecond), h.perSecond), used: now,
	}
	h.states[key] = fresh
	return fresh
}

func (h *hosts) dropOldest() bool {
	oldest := ""
	for key, host := range h.states {
		if host.users == 0 && (oldest == "" || host.used.Before(h.states[oldest].used)) {
			oldest = key
		}
	}
	delete(h.states, oldest)
	return oldest != ""
}
