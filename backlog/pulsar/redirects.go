// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// maxRedirects covers a lookup broker, the owner, and one move of the bundle in between.
	maxRedirects = 3
	// ownersTTL is how long a topic's owner is cached: after that the admin URL is next, which costs a redirect.
	ownersTTL = time.Minute
	// maxOwners bounds the cached owners of topics, about 400 bytes each.
	maxOwners = 100_000
)

// checkRedirect is the CheckRedirect of a call. A broker redirects to the owner of the topic, which is another host:
// the credentials are sent there if it is an allowed host, and nothing is sent to any other. direct is true if the
// request was for the owner.
func (e *exchange) checkRedirect(direct bool) func(*http.Request, []*http.Request) error {
	return func(req *http.Request, via []*http.Request) error {
		from, to := via[len(via)-1].URL, req.URL
		switch {
		case req.Method != via[0].Method: // a change that would become a GET
			return http.ErrUseLastResponse
		case (to.Scheme != "http" && to.Scheme != "https") || to.Hostname() == "" || to.User != nil:
			return noHTTPRedirect(e.address, from)
		case from.Scheme == "https" && to.Scheme == "http":
			return backlog.Errorf(backlog.ErrForbidden,
				"%s redirects %s from https to http://%s: set webServicePortTls on the brokers",
				from.Host, e.address.subject, backlog.Quote(to.Host))
		case e.barred(e.address.cluster, to) != "":
			return backlog.Errorf(backlog.ErrHostNotAllowed, "%s redirects %s to %s, which %s",
				from.Host, e.address.subject, backlog.Quote(to.Host), e.barred(e.address.cluster, to))
		case direct:
			return moved(e.address, from)
		case len(via) > maxRedirects:
			return backlog.Errorf(backlog.ErrUnavailable,
				"%s was redirected %d times, last by %s: do the brokers agree on its owner?",
				e.address.subject, len(via), from.Host)
		default:
			return nil
		}
	}
}

func noHTTPRedirect(a address, from *url.URL) error {
	return backlog.Errorf(backlog.ErrProtocol, "%s redirects %s to no HTTP URL: is it a Pulsar admin service?",
		from.Host, a.subject)
}

// ownedTopic identifies a topic by the path of its resource.
type ownedTopic struct {
	cluster backlog.Cluster
	path    string
}

func (e *exchange) owned() ownedTopic {
	return ownedTopic{cluster: e.address.cluster, path: e.address.path}
}

// errMoved marks a redirect from the broker that was the known owner of the topic.
var errMoved = errors.New("moved")

func moved(a address, u *url.URL) error {
	f := backlog.Errorf(backlog.ErrUnavailable, "%s does not own %s any more: retried soon", u.Host, a.subject)
	f.Cause = errMoved
	return f
}

// tryOwner sends the call to the topic's owner if it is known, which saves the broker of the admin URL half the
// requests. Otherwise, and if that broker is no longer the owner, it sends the call to the admin URL.
func (e *exchange) tryOwner(ctx context.Context) (retryable bool, err error) {
	if base := e.owner(); base != nil {
		a, err := e.try(ctx, base, true)
		if err == nil || !lostOwner(a, err) {
			return a.hop.retryable(), err
		}
		e.owners.Delete(e.owned())
		if ctx.Err() != nil { // no time left: the next call goes to the admin URL
			return a.hop.retryable(), err
		}
	}
	a, err := e.try(ctx, e.address.base, false)
	return a.hop.retryable(), err
}

// owner is the broker to call, nil for the admin URL.
func (e *exchange) owner() *url.URL {
	if !e.address.owned {
		return nil
	}
	base, _ := e.owners.Get(e.owned(), time.Now())
	return base
}

// learnOwner caches the broker that answered about a topic, if it is not that of the admin URL. It is an allowed host:
// the request was sent there.
func (e *exchange) learnOwner(u *url.URL) {
	if e.address.owned && u.Scheme == e.address.base.Scheme && u.Host != e.address.base.Host {
		e.owners.Put(e.owned(), &url.URL{Scheme: u.Scheme, Host: u.Host}, time.Now())
	}
}

// lostOwner reports whether another broker may own the topic now.
func lostOwner(a *attempt, err error) bool {
	switch a.hop.status {
	case http.StatusNotFound, http.StatusPreconditionFailed, http.StatusBadGateway, http.StatusServiceUnavailable:
		return true
	default:
		return redirectStatus(a.hop.status) || errors.Is(err, errHeldBack) ||
			(errors.Is(err, backlog.ErrUnreachable) && !errors.Is(err, context.Canceled))
	}
}

func redirectStatus(status int) bool {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		return true
	default:
		return false
	}
}
