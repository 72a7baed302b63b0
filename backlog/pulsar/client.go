// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/pulsar/auth"
)

// retryPause gives a load balancer time to react; a poll is repeated within seconds anyway.
const retryPause = 100 * time.Millisecond

type client struct {
	hosts          allowedHosts
	authenticates  bool // with credentials of the program's own
	credentials    *auth.Credentials
	chain          *hosts
	owners         *backlog.Cache[ownedTopic, *url.URL]
	metrics        *metrics
	requestTimeout time.Duration
	maxAnswerBytes int64
	budget         budget
	decoding       *atomic.Int64
	decoders       decoders
	// lookups bounds those of watches, which all begin again when a broker restarts: topics are requested beside them.
	lookups *hosts
}

// decodeFunc decodes one good answer. answerFault converts its errors to faults.
type decodeFunc func(io.Reader) error

type form struct {
	contentType string
	body        []byte
}

// exchange is one call with its retry.
type exchange struct {
	*client
	address address
	call    callName
	query   string
	decode  decodeFunc
	// header reads an answer with an unused body; nil for others.
	header func(http.Header)
	// change is the body of a PUT, which must be idempotent since it is retried as a GET is; nil for a GET.
	change *form

	credentials *auth.Transport
	// limit is the limit that a timeout reports; 0 if it is not ours.
	limit time.Duration
	// age is how long ago a cache in between got the answer; 0 without one.
	age time.Duration
}

// get sends a call, and again after a 502, a 503 or a kept connection that broke, or if refused credentials have
// changed meanwhile, all within the request timeout. Resolving the credentials has a separate timeout.
func (c *client) get(ctx context.Context, a address, call callName, query string, decode decodeFunc) error {
	_, err := c.getAged(ctx, a, call, query, decode)
	return err
}

// getAged is get, and returns the age of the answer.
func (c *client) getAged(ctx context.Context, a address, call callName, query string,
	decode decodeFunc,
) (age time.Duration, err error) {
	e := &exchange{client: c, address: a, call: call, query: query, decode: decode}
	err = e.do(ctx)
	return e.age, err
}

// barred returns why requests with the credentials of the cluster may not be sent there, as the rest of a sentence
// about the host; empty if they may.
func (c *client) barred(cluster backlog.Cluster, u *url.URL) string {
	switch {
	case c.credentials.AdministeredFor(cluster.Access, u):
		return ""
	case !c.hosts.allow(u):
		return "is not an allowed Pulsar host: add it to " + allowedHostsFix
	case c.authenticates && cluster.Access == "" && !c.hosts.allowOwn(u):
		return fmt.Sprintf("gets the autoscaler's own credentials over https only: use its https URL, or add %s://%s to "+
			"%s, which sends them in clear text", u.Scheme, backlog.Quote(u.Host), allowedHostsFix)
	default:
		return ""
	}
}

func (e *exchange) do(ctx context.Context) error {
	a := e.address
	if why := e.barred(a.cluster, a.base); why != "" {
		err := backlog.Errorf(backlog.ErrHostNotAllowed, "%s %s", backlog.Quote(a.base.Host), why)
		e.metrics.refuse(e.call, err)
		return err
	}
	var err error
	if e.credentials, err = e.client.credentials.Authenticate(ctx, a.cluster.Access); err != nil {
		err = noCredentials(a, err)
		e.metrics.refuse(e.call, err)
		return err
	}
	e.limit = cmp.Or(a.timeout, e.requestTimeout)
	limited, cancel := context.WithTimeout(ctx, e.limit)
	defer cancel()
	if end, ok := ctx.Deadline(); ok && time.Until(end) < e.limit {
		e.limit = 0 // a timeout is the caller's
	}
	retryable, err := e.tryOwner(limited)
	again := retryable && pause(limited, retryPause)
	if errors.Is(err, backlog.ErrUnauthenticated) {
		renewed := e.client.credentials.Renew(limited, e.credentials)
		if again = renewed != nil; again {
			e.credentials = renewed
		}
	}
	if err == nil || !again {
		return err
	}
	_, err = e.try(limited, a.base, false)
	return err
}

// pause reports whether there was time for it.
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

// try sends one attempt, and counts it. direct is true if base is the owner of the topic, as far as is known.
func (e *exchange) try(ctx context.Context, base *url.URL, direct bool) (*attempt, error) {
	a := &attempt{limit: e.limit, slow: e.address.timeout > 0 || e.address.large || e.call.readsStorage()}
	there := e.address
	there.base = base
	err := e.send(withAttempt(ctx, a), a, there.resource(e.call, e.query), direct)
	if a.sent {
		e.metrics.observe(e.call, a.took, err)
	} else {
		e.metrics.refuse(e.call, err)
	}
	return a, err
}

func (e *exchange) send(ctx context.Context, a *attempt, resource string, direct bool) error {
	req, err := e.request(ctx, resource)
	if err != nil {
		return badAdminURL()
	}
	a.hop.url = req.URL
	followed := &http.Client{Transport: e.credentials, CheckRedirect: e.checkRedirect(direct)}
	resp, err := followed.Do(req)
	if err != nil {
		return e.fault(a, err)
	}
	err = e.read(a, resp)
	_ = resp.Body.Close() // the answer was read or abandoned
	switch {
	case err == nil:
		if !direct {
			e.learnOwner(resp.Request.URL)
		}
		return nil
	case a.hop.open != nil:
		return openFault(e.address, a.hop.url, a.hop.open, err)
	default:
		return err
	}
}

func (e *exchange) request(ctx context.Context, resource string) (*http.Request, error) {
	method, body := http.MethodGet, io.Reader(http.NoBody)
	if e.change != nil {
		method, body = http.MethodPut, bytes.NewReader(e.change.body)
	}
	req, err := http.NewRequestWithContext(ctx, method, resource, body)
	if err != nil {
		return nil, err
	}
	if e.change != nil {
		req.Header.Set("Content-Type", e.change.contentType)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Cache-Control", "no-cache")
	req.Header.Set("Pragma", "no-cache") // for HTTP/1.0 caches
	return req, nil
}

func (e *exchange) read(a *attempt, resp *http.Response) error {
	u := resp.Request.URL
	switch {
	case e.change != nil && (resp.StatusCode == http.StatusNoContent || resp.StatusCode == http.StatusOK):
		drain(resp.Body)
		return nil
	case resp.StatusCode == http.StatusOK && e.header != nil:
		e.header(resp.Header)
		drain(resp.Body)
		return nil
	case resp.StatusCode == http.StatusOK:
		return e.readAnswer(a, resp)
	}
	failed := readError(resp, e.credentials)
	a.hop.hasPulsarReason = failed.json
	if e.change != nil && failed.json && resp.StatusCode == http.StatusBadRequest {
		return refusedChange(e.address, u, failed)
	}
	return statusFault(e.address, u, failed, e.credentials)
}

func (e *exchange) readAnswer(a *attempt, resp *http.Response) error {
	u := resp.Request.URL
	if !isJSON(resp) {
		return answerFault(e.address, u, errors.New("it sent content type "+resp.Header.Get("Content-Type")))
	}
	e.age = seconds(resp.Header.Get("Age"), maxAge)
	body := &backlog.Body{ReadCloser: resp.Body}
	counted := &answer{
		Reader: http.MaxBytesReader(nil, body, e.maxAnswerBytes), ctx: resp.Request.Context(), budget: e.budget,
		decoding: e.decoding, decoders: e.decoders,
	}
	defer counted.release()
	err := e.decode(counted)
	var wait *waitError
	switch {
	case err == nil:
		drain(resp.Body)
		return nil
	case errors.As(err, &wait):
		return noMemoryFault(e.address, u, wait.err)
	case body.Broken != nil:
		a.hop.broken = body.Broken
		return transportFault(e.address, u, body.Broken, e.limit)
	default:
		return answerFault(e.address, u, err)
	}
}

func (e *exchange) fault(a *attempt, err error) error {
	var reason *backlog.ReasonError
	var open *openError
	var wait *waitError
	u := a.hop.url
	switch {
	case errors.As(err, &reason): // of checkRedirect or the credentials
		return reason
	case errors.As(err, &open):
		return openFault(e.address, u, open.open, errHeldBack)
	case errors.As(err, &wait):
		return noTurnFault(e.address, u, e.chain.usedUp(), wait.err)
	case redirectStatus(a.hop.status): // with an invalid location
		return noHTTPRedirect(e.address, u)
	case strings.Contains(tlsAlert(err), "certificate"): // ours, or the lack of one: RFC 8446 §6.2
		return certificateRefused(u, err, e.credentials)
	}
	f := transportFault(e.address, u, err, e.limit)
	if a.hop.open != nil {
		return openFault(e.address, u, a.hop.open, f)
	}
	return f
}
