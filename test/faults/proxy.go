// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
)

// Fault responds to requests in place of the broker, and may call the broker.
type Fault struct {
	// On selects the requests.
	On func(r *http.Request) bool
	// Answer is the faulty response.
	Answer func(w http.ResponseWriter, r *http.Request, broker http.Handler)
}

// Always is the number of responses of a fault without a limit.
const Always = -1

// Proxy forwards to a broker's admin service, correctly until Falsify.
type Proxy struct {
	broker http.Handler

	// mu guards the fields below.
	mu    sync.Mutex
	fault *Fault
	// left is the number of responses left to the fault, or Always.
	left int
	// told is the number of faulty responses.
	told int
}

// NewProxy returns a proxy for the admin URL.
func NewProxy(adminURL string) (*Proxy, error) {
	base, err := url.Parse(adminURL)
	if err != nil {
		return nil, fmt.Errorf("reading the admin URL: %w", err)
	}
	return &Proxy{broker: &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(base)
			r.Out.Header.Del("Accept-Encoding") // faults edit uncompressed responses
		},
		ErrorLog: log.New(io.Discard, "", 0), // a client that leaves is no error
	}}, nil
}

// Falsify starts a fault for that many responses, or for all of them with Always.
func (p *Proxy) Falsify(fault Fault, answers int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.left, p.told = &fault, answers, 0
}

// Tell ends the fault, and returns the number of its responses.
func (p *Proxy) Tell() (wrong int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = nil
	return p.told
}

// Told is the number of faulty responses since Falsify.
func (p *Proxy) Told() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.told
}

// ServeHTTP implements http.Handler.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if fault := p.take(r); fault != nil {
		fault.Answer(w, r, p.broker)
		return
	}
	p.broker.ServeHTTP(w, r)
}

// take uses one of the fault's responses.
func (p *Proxy) take(r *http.Request) *Fault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == nil || p.left == 0 || !p.fault.On(r) {
		return nil
	}
	if p.left > 0 {
		p.left--
	}
	p.told++
	return p.fault
}
