// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
)

const (
	// earlyRefresh is how long before its end a token is replaced, or a fifth of its life if that is shorter: a broker's
	// clock may be ahead, and an issuer may be unavailable for a while.
	earlyRefresh = time.Minute
	// assumedLife is the life of a token without expires_in (RFC 6749 only recommends it).
	assumedLife = 5 * time.Minute
	// issuerPause is the time between two requests to an issuer that failed, and before a token that a broker refuses is
	// replaced: thousands of topics must not each send a request to an issuer.
	issuerPause = 10 * time.Second
)

// token is an access token and its times.
type token struct {
	text                  string
	issued, refresh, ends time.Time
	// invalidated is true if a broker has refused the token. It is replaced, and used until that succeeds, since other
	// clusters may accept it.
	invalidated bool
}

func newToken(text string, issued, ends time.Time) token {
	if !ends.After(issued) { // missing or invalid
		ends = issued.Add(assumedLife)
	}
	life := ends.Sub(issued)
	return token{text: text, issued: issued, refresh: ends.Add(-min(earlyRefresh, life/5)), ends: ends}
}

func (t token) authorization() authorization {
	if t.text == "" {
		return authorization{}
	}
	return bearer(authparams.OAuth2, t.text)
}

// tokenSource caches the token of an issuer, and requests the next one as part of a request that needs it, one at a
// time.
//
// oauth2.ReuseTokenSource and singleflight do not do this: the first waits without a context and fails while a valid
// token is held, and with both all requests wait while a token is replaced early.
type tokenSource struct {
	issuer *issuer
	now    func() time.Time
	// turn holds one element while the issuer is called.
	turn chan struct{}

	mu sync.Mutex
	// held, failure and failedAt are guarded by mu.
	held     token
	failure  error
	failedAt time.Time
}

func newTokenSource(m material, config Config) (*tokenSource, error) {
	i, err := newIssuer(m, config)
	if err != nil {
		return nil, err
	}
	return &tokenSource{issuer: i, now: time.Now, turn: make(chan struct{}, 1)}, nil
}

// authenticate returns a valid token. While one is held, only the request that replaces it early waits for the issuer.
func (s *tokenSource) authenticate(ctx context.Context) (authorization, error) {
	held, due, err := s.current()
	if !due {
		return held.authorization(), err
	}
	if err := s.takeTurn(ctx, held); err != nil {
		if held.text != "" {
			return held.authorization(), nil
		}
		return authorization{}, s.issuer.unreachable(err)
	}
	defer func() { <-s.turn }()
	if held, due, err = s.current(); !due { // another request has replaced it meanwhile
		return held.authorization(), err
	}
	fresh, err := s.issuer.request(ctx, s.now())
	if err == nil {
		s.remember(fresh)
		return fresh.authorization(), nil
	}
	if ctx.Err() == nil { // else the error is not the issuer's
		s.fail(err)
	}
	if held.text != "" {
		return held.authorization(), nil
	}
	return authorization{}, err
}

var errTurnTaken = errors.New("another request calls the issuer")

// takeTurn waits for the turn to call the issuer if no token is held, or one that a broker refused.
func (s *tokenSource) takeTurn(ctx context.Context, held token) error {
	if held.text != "" && !held.invalidated {
		select {
		case s.turn <- struct{}{}:
			return nil
		default:
			return errTurnTaken
		}
	}
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// current returns the held token, without a text if it has expired, and whether to call the issuer now. The error is
// that of the last attempt, if there is no token and it is too early for another one.
func (s *tokenSource) current() (held token, due bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if now.Before(s.held.ends) {
		held = s.held
	}
	switch {
	case held.text != "" && !held.invalidated && now.Before(held.refresh):
		return held, false, nil
	case s.failure == nil || now.Sub(s.failedAt) >= issuerPause:
		return held, true, nil
	case held.text != "":
		return held, false, nil
	default:
		return held, false, s.failure
	}
}

func (s *tokenSource) remember(fresh token) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held, s.failure = fresh, nil
}

func (s *tokenSource) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure, s.failedAt = err, s.now()
}

// invalidate requests the replacement of a token that a broker refuses, unless it is so young that another would not
// help.
func (s *tokenSource) invalidate(refused authorization) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if "Bearer "+s.held.text == refused.header && s.now().Sub(s.held.issued) >= issuerPause {
		s.held.invalidated = true
	}
}
