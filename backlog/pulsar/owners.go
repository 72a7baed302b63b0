// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// ownersTTL is how long a topic's owner is believed: after that the admin URL is asked again, which costs a redirect.
	ownersTTL = time.Minute
	// maxOwners bounds the topics whose owners are remembered, about 300 bytes each.
	maxOwners = 100_000
)

// owners remembers which broker a topic's calls were redirected to, so that the next ones go there at once: half the
// requests, and none of them on the broker that everybody's admin URL leads to.
type owners struct {
	now func() time.Time

	mu sync.Mutex
	// byTopic and swept are guarded by mu.
	byTopic map[ownedTopic]owner
	swept   time.Time
}

// ownedTopic is a topic by the path of its resource.
type ownedTopic struct {
	cluster backlog.Cluster
	path    string
}

type owner struct {
	// base is the broker's URL without a path.
	base *url.URL
	at   time.Time
}

func newOwners() *owners { return &owners{now: time.Now, byTopic: map[ownedTopic]owner{}} }

func (o *owners) lookup(topic ownedTopic) *url.URL {
	o.mu.Lock()
	defer o.mu.Unlock()
	known, ok := o.byTopic[topic]
	if !ok || o.now().Sub(known.at) >= ownersTTL {
		return nil
	}
	return known.base
}

// store also drops, once per ttl, what has expired. Of too many topics, those that are new are not remembered.
func (o *owners) store(topic ownedTopic, base *url.URL) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := o.now()
	if now.Sub(o.swept) >= ownersTTL {
		o.swept = now
		for other, known := range o.byTopic {
			if now.Sub(known.at) >= ownersTTL {
				delete(o.byTopic, other)
			}
		}
	}
	if _, known := o.byTopic[topic]; known || len(o.byTopic) < maxOwners {
		o.byTopic[topic] = owner{base: base, at: now}
	}
}

func (o *owners) forget(topic ownedTopic) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.byTopic, topic)
}

// errMoved marks a redirect from the broker that was believed to own the topic.
var errMoved = errors.New("moved")

func moved(a address, u *url.URL) error {
	f := backlog.Because(backlog.ErrUnavailable, "%s does not own %s any more: asked again soon", u.Host, a.subject)
	f.Cause = errMoved
	return f
}

// ask goes to the topic's owner as far as it is known, and to the admin URL otherwise, also when that turns out not to
// be the owner any more.
func (e *exchange) ask(ctx context.Context, call callName, query string) error {
	if base := e.owner(); base != nil {
		there := e.address
		there.base = base
		e.direct = true
		err := e.run(ctx, call, there.resource(call, query))
		e.direct = false
		if err == nil || !e.lost(err) {
			return err
		}
		e.owners.forget(e.owned())
		if ctx.Err() != nil {
			return err // no time left: the next call asks the admin URL
		}
	}
	return e.run(ctx, call, e.address.resource(call, query))
}

func (e *exchange) owned() ownedTopic {
	return ownedTopic{cluster: e.address.cluster, path: e.address.path}
}

// owner is the broker to ask, nil for the admin URL.
func (e *exchange) owner() *url.URL {
	if !e.address.owned {
		return nil
	}
	return e.owners.lookup(e.owned())
}

// learn remembers who answered about a topic, when that is not whom the admin URL names. The host is an allowed one: it
// was asked.
func (e *exchange) learn(u *url.URL) {
	if e.address.owned && !e.direct && u.Scheme == e.address.base.Scheme && u.Host != e.address.base.Host {
		e.owners.store(e.owned(), &url.URL{Scheme: u.Scheme, Host: u.Host})
	}
}

// lost says that another broker may own the topic now.
func (e *exchange) lost(err error) bool {
	switch e.status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect:
		return true // wherever to
	case http.StatusNotFound, http.StatusPreconditionFailed, http.StatusBadGateway, http.StatusServiceUnavailable:
		return true
	default:
		return errors.Is(err, errHeldBack) || (errors.Is(err, backlog.ErrUnreachable) && !errors.Is(err, context.Canceled))
	}
}
