// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package pulsar

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
)

const (
	// earlyRefresh is how long before its end a token is replaced, or a fifth of its life where that is shorter: a
	// broker's clock may be ahead, and an issuer may be away for a while.
	earlyRefresh = time.Minute
	// assumedLife is that of a token whose issuer does not say (RFC 6749 only recommends expires_in).
	assumedLife = 5 * time.Minute
	// issuerPause is the time between two requests to an issuer that failed, and before a token that a broker refuses is
	// replaced: thousands of topics must not ask an issuer each on its own.
	issuerPause = 10 * time.Second
)

// issuerClient is a client of an OAuth2 issuer by client credentials. It remembers its token, and asks for another in
// the course of a request that needs it, one at a time for everybody.
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
	// doubted says that a broker has refused the token: it is to be replaced, and serves while it cannot be, for there may
	// be other clusters that take it.
	doubted bool
}

func newGrant(token string, issued, ends time.Time) grant {
	if !ends.After(issued) { // not said, or nonsense
		ends = issued.Add(assumedLife)
	}
	life := ends.Sub(issued)
	return grant{token: token, issued: issued, refreshed: ends.Add(-min(earlyRefresh, life/5)), ends: ends}
}

// prove returns a token that is good. While one is, only the one that replaces it early waits for the issuer.
func (c *issuerClient) prove(ctx context.Context) (proof, error) {
	held, due, err := c.known()
	if !due {
		return held.proof(), err
	}
	if err := c.takeTurn(ctx, held); err != nil {
		if held.token != "" {
			return held.proof(), nil
		}
		return proof{}, c.unreachable(err)
	}
	defer func() { <-c.turn }()
	if held, due, err = c.known(); !due { // somebody else has asked meanwhile
		return held.proof(), err
	}
	fresh, err := c.request(ctx)
	if err == nil {
		c.remember(fresh)
		return fresh.proof(), nil
	}
	if ctx.Err() == nil { // else it says nothing about the issuer
		c.fail(err)
	}
	if held.token != "" {
		return held.proof(), nil
	}
	return proof{}, err
}

var errTurnTaken = errors.New("somebody else asks the issuer")

// takeTurn waits for the turn to ask the issuer where no token is held, or one that may be of no use.
func (c *issuerClient) takeTurn(ctx context.Context, held grant) error {
	if held.token != "" && !held.doubted {
		select {
		case c.turn <- struct{}{}:
			return nil
		default:
			return errTurnTaken
		}
	}
	select {
	case c.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g grant) proof() proof {
	if g.token == "" {
		return proof{}
	}
	return bearer(methodOAuth2, g.token)
}

// known returns what is held, without a token when it has ended, and whether the issuer is to be asked now. The error
// is that of the last attempt, when there is no token and it is too early for another.
func (c *issuerClient) known() (held grant, due bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if now.Before(c.grant.ends) {
		held = c.grant
	}
	switch {
	case held.token != "" && !held.doubted && now.Before(held.refreshed):
		return held, false, nil
	case c.failure == nil || now.Sub(c.failedAt) >= issuerPause:
		return held, true, nil
	case held.token != "":
		return held, false, nil
	default:
		return held, false, c.failure
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

// doubt has a token replaced that a broker refuses, unless it is so young that another would be no better.
func (c *issuerClient) doubt(refused proof) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if "Bearer "+c.grant.token == refused.authorization && c.now().Sub(c.grant.issued) >= issuerPause {
		c.grant.doubted = true
	}
}

func (c *issuerClient) unreachable(cause error) error {
	f := backlog.Because(backlog.ErrUnreachable, "OAuth2 issuer %s: %s", c.issuer, transportCause(cause, 0))
	f.Cause = cause
	return f
}
