// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// dialTimeout bounds a connection to the broker, which is on this machine.
const dialTimeout = 5 * time.Second

// proxy forwards requests to the broker's admin service, and can hang. It is safe for concurrent use.
type proxy struct {
	forward *httputil.ReverseProxy
	server  *http.Server
	// URL is its address.
	URL string

	// mu guards the fields below.
	mu sync.Mutex
	// target is the broker's admin service; nil before Aim.
	target *url.URL
	// resumed is closed when it responds again; nil while it responds.
	resumed chan struct{}
}

// newProxy listens on a free port until Close. It responds with an error until Aim.
func newProxy(ctx context.Context) (*proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening: %w", err)
	}
	p := &proxy{URL: "http://" + listener.Addr().String()}
	p.forward = &httputil.ReverseProxy{
		Rewrite:      p.rewrite,
		Transport:    &http.Transport{DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: time.Minute}
	go func() { _ = p.server.Serve(listener) }() // it returns an error after Close
	return p, nil
}

// Aim sets the address of the broker's admin service.
func (p *proxy) Aim(adminURL string) error {
	target, err := url.Parse(adminURL)
	if err != nil {
		return fmt.Errorf("reading the admin URL %q: %w", adminURL, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
	return nil
}

func (p *proxy) rewrite(r *httputil.ProxyRequest) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	if target == nil {
		target = &url.URL{} // dialling it fails
	}
	r.SetURL(target)
}

// Close ends it, with its open requests.
func (p *proxy) Close() {
	p.Resume()
	_ = p.server.Close() // nothing depends on the error
}

// ServeHTTP implements http.Handler.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	resumed := p.resumed
	p.mu.Unlock()
	if resumed != nil {
		select {
		case <-r.Context().Done():
			return
		case <-resumed:
		}
	}
	p.forward.ServeHTTP(w, r)
}

// Hang delays every request from now on, as a broker does without its metadata store.
func (p *proxy) Hang() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resumed == nil {
		p.resumed = make(chan struct{})
	}
}

// Resume responds again, also to delayed requests.
func (p *proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resumed != nil {
		close(p.resumed)
		p.resumed = nil
	}
}
