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
	hosts          allowedHosts
	gate           *gate
	owners         *owners
	credentials    *credentials
	sessions       *sessions
	metrics        *metrics
	requestTimeout time.Duration
	maxAnswerBytes int64
}

// decodeFunc reads one good answer. Its errors are turned into faults by answerFault.
type decodeFunc func(io.Reader) error

// get calls once, and once more after a 502, a 503 or a kept connection that broke, or when refused credentials have
// been changed meanwhile, all within the request timeout. Finding the credentials has a time of its own.
func (c *client) get(ctx context.Context, a address, call callName, query string, decode decodeFunc) error {
	return (&exchange{client: c, address: a, decode: decode}).complete(ctx, call, query)
}

// put sends a change as get asks. A change is sent again like a question, so it must do no harm twice.
func (c *client) put(ctx context.Context, a address, call callName, change *form) error {
	return (&exchange{client: c, address: a, change: change}).complete(ctx, call, "")
}

// complete is get and put.
func (e *exchange) complete(ctx context.Context, call callName, query string) error {
	c, a := e.client, e.address
	if !c.hosts.allow(a.base) && !c.credentials.administeredFor(a.cluster.Access, a.base) {
		err := hostNotAllowed(a.base.Host)
		c.metrics.refuse(call, err)
		return err
	}
	limit := cmp.Or(a.patience, c.requestTimeout)
	e.limit, e.slow = limit, a.patience > 0 || call.readsStorage()
	if err := e.open(ctx); err != nil {
		err = noCredentials(a, err)
		c.metrics.refuse(call, err)
		return err
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if end, ok := ctx.Deadline(); ok && time.Until(end) < limit {
		e.limit = 0 // a timeout will be the caller's
	}
	resource := a.resource(call, query)
	err := e.ask(limited, call, query)
	again := e.again && pause(limited, retryPause)
	if errors.Is(err, backlog.ErrUnauthenticated) {
		again = e.renew(limited)
	}
	if err == nil || !again {
		return err
	}
	return e.run(limited, call, resource)
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
	// change is what a PUT sends; nil for a GET.
	change *form
	// session and proof are what open has found.
	session *session
	proof   proof
	// limit is what a timeout is due to; 0 when it is not ours.
	limit time.Duration
	// slow says that the answer may take long although the host is well.
	slow bool
	// again says that a retry may help.
	again bool
	// sent says that run has sent something, and took how long that took, without the waits for the hosts' turns.
	sent bool
	took time.Duration
	// status and retryAfter are of the last answer, 0 while there is none; spoke says that it was in Pulsar's words.
	status     int
	retryAfter time.Duration
	spoke      bool
	// direct says that the topic's owner was asked, and not the admin URL.
	direct bool
}

// open finds the credentials. Its errors are not faults yet.
func (e *exchange) open(ctx context.Context) error {
	access := e.address.cluster.Access
	shown, err := e.credentials.of(ctx, access)
	if err != nil {
		return err
	}
	if e.session, err = e.sessions.open(access, shown); err != nil {
		return err
	}
	e.proof, err = e.session.auth.prove(ctx)
	return err
}

// renew says whether the credentials that were refused have been replaced by others.
func (e *exchange) renew(ctx context.Context) bool {
	refused := *e
	e.session.auth.doubt(e.proof)
	e.credentials.doubt(e.address.cluster.Access)
	if err := e.open(ctx); err != nil {
		return false // the refusal is the better message, and the next call brings this one
	}
	return e.session.material != refused.session.material || e.proof.authorization != refused.proof.authorization
}

func (e *exchange) run(ctx context.Context, call callName, resource string) error {
	e.sent, e.took = false, 0
	err := e.follow(ctx, resource)
	if e.sent {
		e.metrics.observe(call, e.took, err)
	} else {
		e.metrics.refuse(call, err)
	}
	return err
}

func (e *exchange) follow(ctx context.Context, resource string) error {
	e.again = false
	u, err := url.Parse(resource)
	if err != nil {
		return badAdminURL()
	}
	for range maxRedirects + 1 {
		next, err := e.step(ctx, u)
		switch {
		case err != nil:
			return err
		case next == nil:
			e.learn(u)
			return nil
		case e.direct:
			return moved(e.address, u)
		}
		u = next
	}
	return backlog.Because(backlog.ErrUnavailable,
		"%s was redirected %d times, last by %s: do the brokers agree on its owner?",
		e.address.subject, maxRedirects+1, u.Host)
}

// send sends one request and reads its answer, or returns where it was redirected to.
func (e *exchange) send(ctx context.Context, u *url.URL) (next *url.URL, err error) {
	reused := false
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused },
	})
	req, err := e.request(traced, u)
	if err != nil {
		return nil, badAdminURL()
	}
	if e.proof.method == methodTLS && u.Scheme != "https" {
		return nil, backlog.Because(backlog.ErrUnsupported,
			"a client certificate cannot be shown to %s://%s: use the https port of the brokers",
			u.Scheme, u.Host)
	}
	req.Header.Set("Accept", "application/json")
	e.proof.put(req.Header)
	resp, err := e.session.http.Transport.RoundTrip(req) // a client would look at redirects too
	if err != nil {
		e.again = reused && connectionBroken(err)
		if refusesCertificate(err) {
			return nil, certificateRefused(u, err, e.session.material)
		}
		return nil, transportFault(e.address, u, err, e.limit)
	}
	defer func() { _ = resp.Body.Close() }() // the answer was read or given up: nothing to lose
	e.heard(resp)
	return e.answer(u, resp)
}

// answer reads what came back.
func (e *exchange) answer(u *url.URL, resp *http.Response) (next *url.URL, err error) {
	switch {
	case e.change != nil && (resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusOK):
		drain(resp.Body)
		return nil, nil
	case resp.StatusCode == http.StatusOK:
		return nil, e.read(u, resp)
	case redirects(resp) && (e.change == nil || keepsMethod(resp)):
		drain(resp.Body)
		return e.redirect(u, resp.Header.Get("Location"))
	default:
		e.again = resp.StatusCode == http.StatusBadGateway || resp.StatusCode == http.StatusServiceUnavailable
		words := readReason(resp, e.proof)
		e.spoke = words.json
		if e.change != nil && words.json && resp.StatusCode == http.StatusBadRequest {
			return nil, refusedChange(e.address, u, words)
		}
		return nil, statusFault(e.address, u, words, e.session.material)
	}
}

func redirects(resp *http.Response) bool {
	switch resp.StatusCode {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		return resp.Header.Get("Location") != ""
	default:
		return false
	}
}

// keepsMethod says that the redirected request is to be sent as it was; others would turn a change into a question.
func keepsMethod(resp *http.Response) bool {
	return resp.StatusCode == http.StatusTemporaryRedirect || resp.StatusCode == http.StatusPermanentRedirect
}

// redirect decides about a redirect. A broker redirects to the owner of the topic, which is another host; net/http
// would drop the token on the way, or follow anywhere.
func (e *exchange) redirect(from *url.URL, location string) (*url.URL, error) {
	to, err := from.Parse(location)
	switch {
	case err != nil || (to.Scheme != "http" && to.Scheme != "https") || to.Hostname() == "" || to.User != nil:
		return nil, backlog.Because(backlog.ErrProtocol, "%s redirects %s to no HTTP URL: is it a Pulsar admin service?",
			from.Host, e.address.subject)
	case from.Scheme == "https" && to.Scheme == "http":
		return nil, backlog.Because(backlog.ErrForbidden,
			"%s redirects %s from https to http://%s: set webServicePortTls on the brokers",
			from.Host, e.address.subject, backlog.Quote(to.Host))
	case !e.hosts.allow(to) && !e.credentials.administeredFor(e.address.cluster.Access, to):
		return nil, backlog.Because(backlog.ErrForbidden,
			"%s redirects %s to %s, which is not an allowed Pulsar host: add it to %s",
			from.Host, e.address.subject, backlog.Quote(to.Host), AllowedHostsFlag)
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
