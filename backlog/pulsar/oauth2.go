// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// earlyRefresh is how long before its end a token is replaced, or a fifth of its life where that is shorter: a broker's
	// clock may be ahead, and an issuer may be away for a while.
	earlyRefresh = time.Minute
	// assumedLife is that of a token whose issuer does not say (RFC 6749 only recommends expires_in).
	assumedLife = 5 * time.Minute
	// issuerPause is the time between two requests to an issuer that failed, and before a token that a broker refuses is
	// replaced: thousands of topics must not ask an issuer each on its own.
	issuerPause = 10 * time.Second
)

// issuerClient is a client of an OAuth2 issuer by client credentials. It remembers its token, and asks for another in the
// course of a request that needs it, one at a time for everybody.
type issuerClient struct {
	params

	id, secret string
	http       *http.Client
	metrics    *metrics
	// timeout bounds each of the two requests for a token.
	timeout time.Duration
	now     func() time.Time
	// turn holds one element while somebody asks the issuer.
	turn chan struct{}

	mu sync.Mutex
	// grant, failure and failedAt are guarded by mu.
	grant    grant
	failure  error
	failedAt time.Time
}

// grant is a token and its times.
type grant struct {
	token                   string
	issued, refreshed, ends time.Time
}

func newGrant(token string, issued, ends time.Time) grant {
	if ends.IsZero() {
		ends = issued.Add(assumedLife)
	}
	life := ends.Sub(issued)
	return grant{token: token, issued: issued, refreshed: ends.Add(-min(earlyRefresh, life/5)), ends: ends}
}

// prove returns a token that is good. While one is, only the one that replaces it early waits for the issuer.
func (c *issuerClient) prove(ctx context.Context) (proof, error) {
	token, due, err := c.known()
	if !due {
		return bearer(methodOAuth2, token), err
	}
	if token != "" {
		select {
		case c.turn <- struct{}{}:
		default:
			return bearer(methodOAuth2, token), nil
		}
	} else {
		select {
		case c.turn <- struct{}{}:
		case <-ctx.Done():
			return proof{}, c.unreachable(ctx.Err())
		}
	}
	defer func() { <-c.turn }()
	if token, due, err = c.known(); !due { // somebody else has asked meanwhile
		return bearer(methodOAuth2, token), err
	}
	fresh, err := c.request(ctx)
	if err == nil {
		c.remember(fresh)
		return bearer(methodOAuth2, fresh.token), nil
	}
	if ctx.Err() == nil { // else it says nothing about the issuer
		c.fail(err)
	}
	if token != "" {
		return bearer(methodOAuth2, token), nil
	}
	return proof{}, err
}

// known returns the token while it is good, and whether the issuer is to be asked now. The error is that of the last attempt,
// when there is no token and it is too early for another.
func (c *issuerClient) known() (token string, due bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if now.Before(c.grant.ends) {
		token = c.grant.token
	}
	switch {
	case token != "" && now.Before(c.grant.refreshed):
		return token, false, nil
	case c.failure == nil || now.Sub(c.failedAt) >= issuerPause:
		return token, true, nil
	case token != "":
		return token, false, nil
	default:
		return "", false, c.failure
	}
}

func (c *issuerClient) remember(fresh grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grant, c.failure = fresh, nil
}

func (c *issuerClient) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure, c.failedAt = err, c.now()
}

// doubt forgets a token that a broker refuses, unless it is so young that another would be no better.
func (c *issuerClient) doubt(refused proof) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if "Bearer "+c.grant.token == refused.authorization && c.now().Sub(c.grant.issued) >= issuerPause {
		c.grant = grant{}
	}
}

func (c *issuerClient) unreachable(cause error) error {
	f := newFault(backlog.ErrUnreachable, "OAuth2 issuer %s: %s", c.issuer, transportCause(cause, 0))
	f.cause = cause
	return f
}
