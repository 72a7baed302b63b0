// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
)

// Fault answers a request in place of the broker, which it may ask for the truth.
type Fault struct {
	// On says which requests are answered wrongly.
	On func(r *http.Request) bool
	// Answer is the wrong answer.
	Answer func(w http.ResponseWriter, r *http.Request, broker http.Handler)
}

// Always is how often a fault may be told to answer for as long as it lasts.
const Always = -1

// Proxy stands before a broker's admin service. It is honest until Falsify.
type Proxy struct {
	broker http.Handler

	// mu guards the rest.
	mu    sync.Mutex
	fault *Fault
	// left is how many answers the fault has, or Always.
	left int
	// told is how many wrong answers were given.
	told int
}

// NewProxy returns a proxy before the admin URL.
func NewProxy(adminURL string) (*Proxy, error) {
	base, err := url.Parse(adminURL)
	if err != nil {
		return nil, fmt.Errorf("reading the admin URL: %w", err)
	}
	return &Proxy{broker: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(base)
		r.Out.Header.Del("Accept-Encoding") // faults edit plain answers
	}}}, nil
}

// Falsify has the fault answer so many requests, or all of them with Always.
func (p *Proxy) Falsify(fault Fault, answers int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.left, p.told = &fault, answers, 0
}

// Tell the truth again; it returns how many wrong answers there were.
func (p *Proxy) Tell() (wrong int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault = nil
	return p.told
}

// Told is how many wrong answers there were since Falsify.
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

// take uses up one of the fault's answers.
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
