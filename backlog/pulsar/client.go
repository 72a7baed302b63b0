// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// maxRedirects covers a lookup broker, the owner, and one move of the bundle in between.
	maxRedirects = 3
	// retryPause gives a load balancer the time to notice; a poll is repeated within seconds anyway.
	retryPause = 100 * time.Millisecond
)

// client makes single calls on Pulsar's admin service.
type client struct {
	http           *http.Client
	hosts          allowedHosts
	auth           authenticator
	metrics        *metrics
	requestTimeout time.Duration
	maxAnswerBytes int64
}

// decodeFunc reads one good answer. Its errors are turned into faults by answerFault.
type decodeFunc func(io.Reader) error

// get calls once, and once more after a 502, a 503 or a kept connection that broke, all within the request timeout.
func (c *client) get(ctx context.Context, a address, call callName, query string, decode decodeFunc) error {
	limit := cmp.Or(a.patience, c.requestTimeout)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	e := &exchange{client: c, address: a, decode: decode, limit: limit}
	if end, ok := ctx.Deadline(); ok && time.Until(end) < limit {
		e.limit = 0 // a timeout will be the caller's
	}
	err := e.run(limited, call, a.resource(call, query))
	if err == nil || !e.again || !pause(limited, retryPause) {
		return err
	}
	return e.run(limited, call, a.resource(call, query))
}

// pause says whether there was time for it.
func pause(ctx context.Context, length time.Duration) bool {
	timer := time.NewTimer(length)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// exchange is one request with its redirects.
type exchange struct {
	*client
	address address
	decode  decodeFunc
	// limit is what a timeout is due to; 0 when it is not ours.
	limit time.Duration
	// again says that a retry may help.
	again bool
}

func (e *exchange) run(ctx context.Context, call callName, resource string) error {
	start := time.Now()
	err := e.follow(ctx, resource)
	e.metrics.observe(call, time.Since(start), err)
	return err
}

func (e *exchange) follow(ctx context.Context, resource string) error {
	e.again = false
	u, err := url.Parse(resource)
	if err != nil {
		return badAdminURL()
	}
	if !e.hosts.allow(u) {
		return hostNotAllowed(u.Host)
	}
	for range maxRedirects + 1 {
		next, err := e.step(ctx, u)
		if err != nil || next == nil {
			return err
		}
		u = next
	}
	return newFault(backlog.ErrUnavailable, "%s was redirected %d times, last by %s: do the brokers agree on its owner?",
		e.address.subject, maxRedirects+1, u.Host)
}

// step sends one request and reads its answer, or returns where it was redirected to.
func (e *exchange) step(ctx context.Context, u *url.URL) (next *url.URL, err error) {
	reused := false
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused },
	})
	req, err := http.NewRequestWithContext(traced, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return nil, badAdminURL()
	}
	req.Header.Set("Accept", "application/json")
	if err := e.auth.authenticate(req); err != nil {
		return nil, noCredentials(e.address, err)
	}
	resp, err := e.http.Do(req)
	if err != nil {
		e.again = reused && connectionBroken(err)
		return nil, transportFault(e.address, u, err, e.limit)
	}
	defer func() { _ = resp.Body.Close() }() // the answer was read or given up: nothing to lose
	switch {
	case resp.StatusCode == http.StatusOK:
		return nil, e.read(u, resp)
	case redirects(resp):
		drain(resp.Body)
		return e.redirect(u, resp.Header.Get("Location"))
	default:
		e.again = resp.StatusCode == http.StatusBadGateway || resp.StatusCode == http.StatusServiceUnavailable
		words := readReason(resp, strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer "))
		return nil, statusFault(e.address, u, words, req.Header.Get("Authorization") == "")
	}
}

func redirects(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
		return resp.Header.Get("Location") != ""
	default:
		return false
	}
}

// redirect decides about a redirect. A broker redirects to the owner of the topic, which is another host; net/http would
// drop the token on the way, or follow anywhere.
func (e *exchange) redirect(from *url.URL, location string) (*url.URL, error) {
	to, err := from.Parse(location)
	switch {
	case err != nil || (to.Scheme != "http" && to.Scheme != "https") || to.Hostname() == "" || to.User != nil:
		return nil, newFault(backlog.ErrProtocol, "%s redirects %s to no HTTP URL: is it a Pulsar admin service?", from.Host, e.address.subject)
	case from.Scheme == "https" && to.Scheme == "http":
		return nil, newFault(backlog.ErrForbidden, "%s redirects %s from https to http://%s: set webServicePortTls on the brokers",
			from.Host, e.address.subject, to.Host)
	case !e.hosts.allow(to):
		return nil, newFault(backlog.ErrForbidden, "%s redirects %s to %s, which is not an allowed Pulsar host: add it to %s",
			from.Host, e.address.subject, to.Host, AllowedHostsFlag)
	default:
		return to, nil
	}
}

// read decodes an answer with status 200.
func (e *exchange) read(u *url.URL, resp *http.Response) error {
	if !isJSON(resp) {
		kind := resp.Header.Get("Content-Type")
		return answerFault(e.address, u, errors.New("it sent content type "+kind))
	}
	body := &boundedBody{body: resp.Body, left: e.maxAnswerBytes, limit: e.maxAnswerBytes}
	err := e.decode(body)
	switch {
	case err == nil:
		drain(resp.Body)
		return nil
	case body.broken != nil:
		return transportFault(e.address, u, body.broken, e.limit)
	default:
		return answerFault(e.address, u, err)
	}
}
