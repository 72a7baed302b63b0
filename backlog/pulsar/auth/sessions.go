// Copyright The pulsar-autoscaler Authors
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog"
	"github.com/pulsar-autoscaler/pulsar-autoscaler/backlog/authparams"
)

const (
	// maxSessions bounds the memory for credentials of users: a session without connections has about 10 KB.
	maxSessions = 1000
	// maxNames bounds the names of sessions, about 200 bytes each.
	maxNames = 100_000
	// sessionIdle is the time after which an unused session is dropped, with its cached token.
	sessionIdle = 10 * time.Minute
)

// session is one set of credentials with its connections.
type session struct {
	material    material
	auth        authenticator
	connections *http.Transport
	chain       http.RoundTripper
}

// authenticator creates the authorization of a request. Its errors are texts for users and contain no secret.
type authenticator interface {
	// authenticate may call an issuer, within ctx.
	authenticate(ctx context.Context) (authorization, error)
	// invalidate reports that Pulsar refused it: a cached token must be replaced soon.
	invalidate(refused authorization)
}

// constant sends the same authorization with every request.
type constant authorization

func (c constant) authenticate(context.Context) (authorization, error) { return authorization(c), nil }

func (constant) invalidate(authorization) {}

// newSession parses keys and certificates.
func newSession(m material, config Config) (*session, error) {
	tlsConfig, err := m.tlsConfig()
	if err != nil {
		return nil, err
	}
	s := &session{material: m, connections: config.Transport(tlsConfig)}
	s.chain = config.Chain(s.connections)
	switch m.Method {
	case authparams.Token:
		s.auth = constant(bearer(authparams.Token, m.Token.Content))
	case authparams.Basic:
		s.auth = constant(basic(m.User, m.Password))
	case authparams.OAuth2:
		if s.auth, err = newTokenSource(m, config); err != nil {
			return nil, err
		}
	default:
		s.auth = constant{method: m.Method}
	}
	return s, nil
}

func (s *session) close() {
	s.connections.CloseIdleConnections()
	if tokens, ok := s.auth.(*tokenSource); ok {
		tokens.issuer.client.CloseIdleConnections()
	}
}

// sessions keeps one session for each set of credentials, whatever its names.
type sessions struct {
	// build creates a session; it sends nothing.
	build func(material) (*session, error)
	now   func() time.Time

	// mu guards both maps: byMaterial has the sessions of byName.
	mu         sync.Mutex
	byMaterial *backlog.Cache[material, *session]
	byName     *backlog.Cache[string, *session]
}

func newSessions(build func(material) (*session, error)) *sessions {
	return &sessions{
		build: build, now: time.Now,
		byMaterial: backlog.NewCache[material, *session](sessionIdle, maxSessions),
		byName:     backlog.NewCache[string, *session](sessionIdle, maxNames),
	}
}

// open returns the session for the current credentials of the name. A session without a name is closed.
func (s *sessions) open(name string, m material) (*session, error) {
	s.mu.Lock()
	found, _ := s.byMaterial.Get(m, s.now())
	s.mu.Unlock()
	if found == nil {
		var err error
		found, err = s.build(m)
		if err != nil {
			return nil, err
		}
	}
	kept, closing := s.keep(name, found)
	for _, old := range closing {
		old.close()
	}
	return kept, nil
}

// keep stores the session, or returns the one that another caller has stored meanwhile. It also returns sessions to
// close.
func (s *sessions) keep(name string, found *session) (kept *session, closing []*session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if other, ok := s.byMaterial.Get(found.material, now); ok {
		found = other
	}
	closing = s.byMaterial.Put(found.material, found, now)
	before, named := s.byName.Get(name, now)
	s.byName.Put(name, found, now)
	if named && before != found && !slices.Contains(s.byName.Values(), before) {
		s.byMaterial.Delete(before.material)
		closing = append(closing, before)
	}
	return found, closing
}

// close closes the connections that are not in use.
func (s *sessions) close() {
	for _, open := range s.byMaterial.Values() {
		open.close()
	}
}
