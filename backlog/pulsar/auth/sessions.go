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
	// maxSessions bounds the memory for credentials of users: a session has about 1 KB beside its secrets.
	maxSessions = 5000
	// maxConnections bounds the sets of connections, which differ in their certificates: about 10 KB each.
	maxConnections = 1000
	// maxNames bounds the names of sessions, about 200 bytes each.
	maxNames = 100_000
	// sessionIdle is the time after which an unused session is dropped, with its cached token.
	sessionIdle = 10 * time.Minute
)

// session is one set of credentials. It shares its connections with all that have the same certificates.
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

func newSession(m material, connections *http.Transport, config Config) (*session, error) {
	s := &session{material: m, connections: connections, chain: config.Chain(connections)}
	var err error
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

// close closes connections to an issuer.
func (s *session) close() {
	if tokens, ok := s.auth.(*tokenSource); ok {
		tokens.issuer.client.CloseIdleConnections()
	}
}

// shares reports whether another session has the same connections.
func (s *session) shares(other *session) bool { return s.connections == other.connections }

// sessions keeps one session for each set of credentials, whatever its names.
type sessions struct {
	// build creates a session, and connect connections for certificates; both send nothing.
	build   func(material, *http.Transport) (*session, error)
	connect func(material) (*http.Transport, error)
	now     func() time.Time

	// mu guards the maps: byMaterial has the sessions of byName, and connections those of both by their certificates.
	mu          sync.Mutex
	byMaterial  *backlog.Cache[material, *session]
	byName      *backlog.Cache[string, *session]
	connections *backlog.Cache[material, *http.Transport]
}

func newSessions(build func(material, *http.Transport) (*session, error),
	connect func(material) (*http.Transport, error),
) *sessions {
	return &sessions{
		build: build, connect: connect, now: time.Now,
		byMaterial:  backlog.NewCache[material, *session](sessionIdle, maxSessions),
		byName:      backlog.NewCache[string, *session](sessionIdle, maxNames),
		connections: backlog.NewCache[material, *http.Transport](sessionIdle, maxConnections),
	}
}

// open returns the session for the current credentials of the name. A session without a name is closed.
func (s *sessions) open(name string, m material) (*session, error) {
	s.mu.Lock()
	found, _ := s.byMaterial.Get(m, s.now())
	s.mu.Unlock()
	if found == nil {
		connections, err := s.connectionsFor(m)
		if err != nil {
			return nil, err
		}
		if found, err = s.build(m, connections); err != nil {
			return nil, err
		}
	}
	kept, closing := s.keep(name, found)
	for _, old := range closing {
		old.close()
	}
	return kept, nil
}

// connectionsFor returns the connections for credentials. Tokens, users and passwords are headers of each request, so
// only certificates distinguish them.
func (s *sessions) connectionsFor(m material) (*http.Transport, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	certificates := m.certificates()
	shared, known := s.connections.Get(certificates, s.now())
	if known {
		return shared, nil
	}
	shared, err := s.connect(certificates)
	if err != nil {
		return nil, err
	}
	s.keepConnections(certificates, shared)
	return shared, nil
}

// keepConnections closes others that are not in use any more.
func (s *sessions) keepConnections(certificates material, used *http.Transport) {
	for _, old := range s.connections.Put(certificates, used, s.now()) {
		old.CloseIdleConnections()
	}
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
	s.keepConnections(found.material.certificates(), found.connections)
	if named && before != found && !slices.Contains(s.byName.Values(), before) {
		s.byMaterial.Delete(before.material)
		closing = append(closing, before)
		if !slices.ContainsFunc(s.byMaterial.Values(), before.shares) { // a certificate that was replaced
			s.connections.Delete(before.material.certificates())
			before.connections.CloseIdleConnections()
		}
	}
	return found, closing
}

// close closes the connections that are not in use.
func (s *sessions) close() {
	for _, open := range s.byMaterial.Values() {
		open.close()
	}
	for _, connections := range s.connections.Values() {
		connections.CloseIdleConnections()
	}
}
