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

// proxy stands before the broker's admin service and can stop answering. It is safe for concurrent use.
type proxy struct {
	forward *httputil.ReverseProxy
	server  *http.Server
	// URL is where it listens.
	URL string

	// mu guards the rest.
	mu sync.Mutex
	// target is the broker's admin service; nil before there is one.
	target *url.URL
	// resumed is closed when it answers again; nil while it does.
	resumed chan struct{}
}

// newProxy listens on a port of its own until Close. It answers with an error until it is aimed at a broker.
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
	go func() { _ = p.server.Serve(listener) }() // ends by Close, and says so
	return p, nil
}

// Aim says where the broker's admin service is.
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
		target = &url.URL{} // which cannot be dialled
	}
	r.SetURL(target)
}

// Close ends it, with what it is asked just now.
func (p *proxy) Close() {
	p.Resume()
	_ = p.server.Close() // nothing is left to close
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

// Hang lets every request from now on wait, as a broker does without its metadata store.
func (p *proxy) Hang() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resumed == nil {
		p.resumed = make(chan struct{})
	}
}

// Resume answers again, also what has been waiting.
func (p *proxy) Resume() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.resumed != nil {
		close(p.resumed)
		p.resumed = nil
	}
}
